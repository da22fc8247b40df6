"""The command `timbal`."""

from __future__ import annotations


def main() -> None:
    """The entry point."""
    from .app import app

    app()
