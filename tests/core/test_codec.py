"""Facts as records: what is written is what is read, by this version and its neighbours."""

import json
import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timbal.core.codec import decode, encode
from timbal.core.facts import (
    Asked,
    Called,
    Ended,
    Fact,
    Gated,
    Noted,
    Opened,
    Passed,
    Reopened,
    Resumed,
    Returned,
    Revoked,
    Settled,
    Used,
)
from timbal.errors import StoreError, UnknownRecord

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=3)


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of a field, by its annotation."""
    if typing.get_origin(annotation) is typing.Union or "|" in str(annotation):
        return st.one_of([values_of(one) for one in typing.get_args(annotation)])
    if typing.get_origin(annotation) is list:
        return st.lists(texts, max_size=3)
    if typing.get_origin(annotation) is dict:
        _, value = typing.get_args(annotation)
        return objects if value is Any else st.dictionaries(texts, values_of(value), max_size=3)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: texts,
        int: st.integers(0, 2**53),
        bool: st.booleans(),
        type(None): st.none(),
        Any: json_values,
    }
    return simple[annotation]


def facts_of(cls: type[Fact]) -> st.SearchStrategy[Fact]:
    """Facts of one class, each field with its default often."""
    hints = typing.get_type_hints(cls)
    fields = {}
    for name in cls._fields:
        values = values_of(hints[name])
        fields[name] = st.just(cls._field_defaults[name]) | values if name in cls._field_defaults else values
    return st.builds(cls, **fields)


CLASSES: list[type[Fact]] = [
    Opened,
    Resumed,
    Called,
    Returned,
    Reopened,
    Noted,
    Asked,
    Gated,
    Passed,
    Used,
    Revoked,
    Settled,
    Ended,
]
any_facts = st.lists(st.one_of([facts_of(cls) for cls in CLASSES]), max_size=6)


def exactly(facts: list[Fact]) -> list[Any]:
    """Facts in a form in which `True` is not `1` and `1` is not `1.0`."""
    return [(type(fact), json.dumps(list(fact), sort_keys=True)) for fact in facts]


def test_every_class_of_the_sum_is_generated_here() -> None:
    assert set(CLASSES) == set(typing.get_args(Fact))


@given(any_facts)
def test_facts_are_read_as_they_were_written(facts: list[Fact]) -> None:
    assert exactly(decode(encode(facts))) == exactly(facts)


@given(any_facts)
def test_a_record_is_one_line_of_utf_8_json_and_may_be_read_as_text(facts: list[Fact]) -> None:
    record = encode(facts)
    assert len(json.loads(record)) == len(facts)
    assert b"\n" not in record
    assert exactly(decode(record.decode())) == exactly(facts)


@given(any_facts, any_facts)
def test_facts_written_in_two_records_are_those_written_in_one(some: list[Fact], others: list[Fact]) -> None:
    assert exactly(decode(encode(some)) + decode(encode(others))) == exactly(decode(encode([*some, *others])))


@given(any_facts)
def test_a_field_that_a_newer_version_added_is_ignored(facts: list[Fact]) -> None:
    written = zip(json.loads(encode(facts)), facts, strict=True)
    full = [[*fields, *fact[len(fields) - 1 :], "a new field", {"and": "another"}] for fields, fact in written]
    assert exactly(decode(json.dumps(full))) == exactly(facts)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_field_that_an_older_version_did_not_have_holds_its_default(cls: type[Fact]) -> None:
    hints = typing.get_type_hints(cls)
    required: list[Any] = [0 if hints[n] is int else "x" for n in cls._fields if n not in cls._field_defaults]
    make: Any = cls
    fact = make(*required)
    assert json.loads(encode([fact])) == [[fact_tag(fact), *required]], "a default takes no room at the end"
    assert decode(encode([fact])) == [fact]


def fact_tag(fact: Fact) -> str:
    return type(fact).__name__.lower()


@given(any_facts, st.text("abcdefghij_", min_size=1).map("future_".__add__), st.data())
def test_a_fact_that_this_version_does_not_know_is_refused_by_its_name(facts: list[Fact], tag: str, data: Any) -> None:
    items = json.loads(encode(facts))
    items.insert(data.draw(st.integers(0, len(items))), [tag, 1, 2])
    with pytest.raises(UnknownRecord, match=tag):
        decode(json.dumps(items))


@given(any_facts.filter(bool), st.data())
def test_a_torn_record_is_a_store_error_wherever_it_is_torn(facts: list[Fact], data: Any) -> None:
    record = encode(facts)
    with pytest.raises(StoreError) as error:
        decode(record[: data.draw(st.integers(0, len(record) - 1))])
    assert not isinstance(error.value, UnknownRecord), "it is damaged, and no newer version would help"


FOREIGN = {
    "empty": b"",
    "no JSON": b"SQLite format 3\x00",
    "null": b"null",
    "a number": b"1",
    "an object": b'{"fact":"opened"}',
    "facts that are no arrays": b"[1]",
    "a fact without a tag": b"[[]]",
    "a fact with too few fields": b'[["opened"]]',
    "a tag that is no text": b"[[{}]]",
    "a tag that is a list": b"[[[]]]",
    "half a character": '[["noted","a","é"]]'.encode()[:-5],
    "NaN": b'[["settled","a","b",NaN',
}


@pytest.mark.parametrize("case", FOREIGN)
def test_what_is_no_record_is_a_store_error_that_says_so(case: str) -> None:
    with pytest.raises(StoreError, match=r"damaged|not ours|newer"):
        decode(FOREIGN[case])


FROZEN: list[tuple[Fact, str]] = [
    (Opened("r", "c", "desk", "Agent", {"prompt": "hi"}, 1), '["opened","r","c","desk","Agent",{"prompt":"hi"},1]'),
    (Resumed("r", "p", 1), '["resumed","r","p",1]'),
    (Called("/t0.0", "c", "pay", "Tool", 1, 2), '["called","/t0.0","c","pay","Tool",1,2]'),
    (Returned("/t0.0", "c", "pay", "Tool", 1, 3, "done"), '["returned","/t0.0","c","pay","Tool",1,2,"done"]'),
    (Reopened("/0"), '["reopened","/0"]'),
    (Noted("/n0", "no"), '["noted","/n0","no"]'),
    (Settled("i", "answered", 1, True, "r"), '["settled","i","answered",1,true,"r"]'),
    (Ended("r", "success", 1), '["ended","r","success",1]'),
    (
        Asked("/0", "i", "r", "pay", "c", "confirm", "pay", {"q": 1}, 1),
        '["asked","/0","i","r","pay","c","confirm","pay",{"q":1},1]',
    ),
]


RUN = "01a232db22ba75c7841257d3694b4b4f"


def test_ids_and_times_are_written_by_what_differs_from_those_before() -> None:
    at = 1_796_149_551_803
    facts: list[Fact] = [
        Opened(RUN, f"{RUN[:22]}0123456789", "desk", "Agent", {}, at),
        Called("/t0.0", "f" * 32, "pay", "Tool", at - 5),
        Ended("f" * 32, "success", at),
        Ended("f" * 31, "success", 7),
        Ended("f" * 32, "success", 2 * at),
    ]
    text = (
        f'[["opened","{RUN}",["0123456789"],"desk","Agent",{{}},1796149551803],["called","/t0.0","{"f" * 32}","pay",'
        f'"Tool",-5],["ended",[""],"success",5],["ended","{"f" * 31}","success",-1796149551796],'
        f'["ended","{"f" * 32}","success",3592299103606]]'
    )
    assert encode(facts).decode() == text
    assert decode(text) == facts


@pytest.mark.parametrize(("fact", "text"), FROZEN, ids=[type(fact).__name__ for fact, _ in FROZEN])
def test_the_form_of_a_record_is_frozen(fact: Fact, text: str) -> None:
    assert encode([fact]).decode() == f"[{text}]"
    assert decode(f"[{text}]") == [fact]
