"""What an edit makes of an input that somebody decides about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from .redaction import REDACTED, holds_placeholder


class Change(NamedTuple):
    """What an edit makes of an argument, both as anybody may see them."""

    name: str
    before: Any
    after: Any


def changes(shown: Mapping[str, Any], edit: Mapping[str, Any]) -> list[Change]:
    """What an edit makes of an input, argument by argument; one that is hidden is taken as changed."""
    made = []
    for name, after in edit.items():
        before = shown.get(name, REDACTED)
        if holds_placeholder(before):
            after = REDACTED
        if holds_placeholder(before) or json.dumps(before) != json.dumps(after):
            made.append(Change(name, before, after))
    return made
