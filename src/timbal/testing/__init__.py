"""What tests of an agent need: a model and a person that follow scripts; and for authors of stores, what each keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .human import ScriptedHuman, Unexpected
from .model import TestModel

if TYPE_CHECKING:
    from .conformance import store_conformance

__all__ = ["ScriptedHuman", "TestModel", "Unexpected", "store_conformance"]


def __getattr__(name: str) -> Any:
    if name != "store_conformance":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pytest

    pytest.register_assert_rewrite("timbal.testing.conformance")
    from .conformance import store_conformance

    return store_conformance
