"""Runs over HTTP: start them, read on from anywhere, answer what they ask."""

from .access import JwtRules
from .app import Router, create_app, lifespan, router
from .settings import Limits

__all__ = ["JwtRules", "Limits", "Router", "create_app", "lifespan", "router"]
