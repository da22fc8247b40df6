"""Redaction: what is hidden is found again wherever it turns up."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from timbal.core.redaction import REDACTED, hide_all, hide_keys, holds_placeholder, scrub, secrets

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def test_keys_are_hidden_at_any_depth_and_in_any_case() -> None:
    given = {"Card": "1", "lines": [{"CARD": {"n": 1}, "x": 2}], "cards": "3"}
    assert hide_keys(given, ["card"]) == {"Card": REDACTED, "lines": [{"CARD": REDACTED, "x": 2}], "cards": "3"}
    assert hide_all({"a": 1, "b": [2]}) == {"a": REDACTED, "b": REDACTED}


def test_secrets_are_the_leaves_that_are_not_shown() -> None:
    real = {"a": "x", "b": {"c": 1, "d": ["y", None, True, ""]}, "e": [1, 2], "f": 5}
    assert secrets(real, {"a": "x", "b": REDACTED, "e": [1, 3], "f": "5"}) == [1, "y", 2, 5]
    assert secrets(real, real) == []
    assert secrets({"a": 1}, {}) == [1]


def test_a_short_secret_is_hidden_as_a_word_only() -> None:
    assert scrub("pin 12 of 1234, 12.", ["12"]) == f"pin {REDACTED} of 1234, {REDACTED}."
    assert scrub("abcd in xabcdx", ["abcd"]) == f"{REDACTED} in x{REDACTED}x"
    assert scrub({"n": 12, "m": 121, "b": True}, [12]) == {"n": REDACTED, "m": 121, "b": True}


def test_the_longest_secret_goes_first() -> None:
    assert scrub("secret-key-1 secret-key", ["secret-key", "secret-key-1"]) == f"{REDACTED} {REDACTED}"


@given(st.dictionaries(texts, json_values, max_size=3), st.lists(texts, max_size=3))
def test_nothing_hidden_is_left_in_what_is_scrubbed(real: dict[str, Any], keys: list[str]) -> None:
    hidden = secrets(real, hide_keys(real, keys))
    long = [str(one) for one in hidden if len(str(one)) >= 4 and str(one) not in REDACTED]
    for told in (f"{real}", json.dumps(real), json.dumps(real, ensure_ascii=False), " ".join(long)):
        clean = scrub(told, hidden).replace(REDACTED, "\0")
        assert not any(secret in clean for secret in long)


@given(json_values, st.lists(st.integers() | texts, max_size=3))
def test_scrubbing_keeps_the_shape_and_is_done_once(value: Any, hidden: list[Any]) -> None:
    once = scrub(value, hidden)
    assert type(once) is type(value) or once == REDACTED


def test_a_placeholder_that_comes_back_is_seen() -> None:
    assert holds_placeholder({"a": [{"b": REDACTED}]})
    assert not holds_placeholder({REDACTED: "a"})
