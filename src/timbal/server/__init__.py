"""Runs over HTTP: start them, read on from anywhere, answer what they ask."""

from .access import JwtRules
from .app import create_app, lifespan, router
from .routes import Router
from .settings import Limits

__all__ = ["JwtRules", "Limits", "Router", "create_app", "lifespan", "router"]
