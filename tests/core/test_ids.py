"""Ids and keys: the same wherever they are computed, and different where they have to be."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timbal.core.ids import (
    ROOT,
    canonical_json,
    child,
    digest,
    interaction_id,
    model_segment,
    parent,
    segment_of,
    spawned_segment,
    tool_segment,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
payloads = st.dictionaries(texts, json_values, max_size=3)
segments = st.one_of(
    st.integers(0, 99).map(str),
    st.integers(0, 99).map(model_segment),
    st.builds(tool_segment, st.integers(0, 99), st.integers(0, 99)),
    st.builds(spawned_segment, st.sampled_from(["call", "step"]), texts, texts, st.integers(0, 99)),
)
questions = st.tuples(texts, payloads, st.none() | texts, st.integers(0, 3))


def shuffled(value: Any, keys: Any) -> Any:
    """The same JSON, its objects with another order of keys."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], keys) for key in keys(list(value))}
    return [shuffled(item, keys) for item in value] if isinstance(value, list) else value


@given(json_values, st.data())
def test_equal_json_has_one_canonical_form_whatever_the_order_of_keys(value: Any, data: Any) -> None:
    other = shuffled(value, lambda keys: data.draw(st.permutations(keys)))
    assert canonical_json(other) == canonical_json(value)
    assert json.loads(canonical_json(value)) == value


@given(json_values, json_values)
def test_different_json_has_different_digests(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) == (json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True))


@given(questions)
def test_an_interaction_id_is_the_digest_that_the_contract_gives(
    question: tuple[str, dict[str, Any], str | None, int],
) -> None:
    path, payload, tool_call_id, count = question
    name: dict[str, Any] = {"path": path, "payload": payload}
    if tool_call_id is not None:
        name["tool_call_id"] = tool_call_id
    if count:
        name["count"] = count
    text = json.dumps(name, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert interaction_id(path, payload, tool_call_id, count) == hashlib.sha256(text.encode()).hexdigest()[:32]


@given(questions, questions)
def test_questions_that_differ_in_anything_have_different_ids(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (interaction_id(*one) == interaction_id(*other)) == same


FROZEN = {
    "a direct call": (("ask", {"q": 1}, None, 0), "a04d3af18a7aa58678e65b94af8420e8"),
    "in an agent": (("desk.ask", {"q": 1}, "call_1", 0), "33a7823aade5c27bbbe7942b86369fdf"),
    "asked again": (("desk.ask", {"q": 1}, "call_1", 2), "cadbd5baf09e2f82df8e3bffc36c9d5c"),
    "with umlauts": (("ask", {"frage": "Größe?"}, None, 0), "fd9ace53a91966d8ae998e8493b9daaa"),
}


@pytest.mark.parametrize("case", FROZEN)
def test_the_ids_of_questions_are_frozen(case: str) -> None:
    question, expected = FROZEN[case]
    assert interaction_id(*question) == expected


@given(st.lists(segments, min_size=1, max_size=5))
def test_a_key_is_taken_apart_as_it_was_put_together(path: list[str]) -> None:
    key = ROOT
    for segment in path:
        above, key = key, child(key, segment)
        assert (parent(key), segment_of(key)) == (above, segment)
    assert key.count("/") == len(path)


@given(st.lists(segments, max_size=4), st.lists(segments, max_size=4))
def test_different_places_have_different_keys(one: list[str], other: list[str]) -> None:
    def key_of(path: list[str]) -> str:
        key = ROOT
        for segment in path:
            key = child(key, segment)
        return key

    assert (key_of(one) == key_of(other)) == (one == other)


@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), texts)
def test_segments_of_different_kinds_of_calls_never_meet(position: int, turn: int, index: int, name: str) -> None:
    made = [str(position), model_segment(turn), tool_segment(turn, index), spawned_segment("step", name, "x", index)]
    assert len(set(made)) == 4
