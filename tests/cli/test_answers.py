"""What somebody types is understood by the question it answers."""

from typing import Any

import pytest

from timbal.cli.answers import understand, understand_given
from timbal.cli.fields import Unfit, check, field_of, parts_of, read
from timbal.types.approval import Cancel
from timbal.types.events import ApprovalEvent, InteractionEvent


def question(kind: str = "suspend", schema: dict[str, Any] | None = None, **payload: Any) -> InteractionEvent:
    return InteractionEvent(
        run_id="1" * 32,
        parent_run_id=None,
        path="a.b",
        call_id="2" * 32,
        parent_call_id=None,
        t0=0,
        interaction_id="3" * 32,
        kind=kind,
        runnable_path="a.b",
        runnable_name="b",
        runnable_type="Tool",
        tool_call_id=None,
        payload=payload,
        response_schema=schema,
        expires_at=None,
        audience=None,
    )


def approval() -> ApprovalEvent:
    return ApprovalEvent(
        run_id="1" * 32,
        parent_run_id=None,
        path="a.b",
        call_id="2" * 32,
        parent_call_id=None,
        t0=0,
        approval_id="3" * 32,
        runnable_path="a.b",
        runnable_name="b",
        runnable_type="Tool",
        tool_call_id=None,
        input={"to": "ada"},
        input_schema=None,
        prompt=None,
        description=None,
        kind="approval",
        ui=None,
        preview=None,
        expires_at=None,
        metadata={},
    )


TEXT = {"type": "string"}
CHOICE = question("ask_user", TEXT, question="Which?", options=["postgres", "mysql"])
OPEN = question("ask_user", TEXT, question="Which name?")
NUMBERS = question("ask_user", TEXT, question="How many?", options=["1", "3"])
MULTI = question(
    "ask_user_multi",
    {"type": "array", "items": {"type": "string", "enum": ["S", "M", "L"]}, "minItems": 1},
    question="Which?",
    options=["S", "M", "L"],
)
CONFIRM = question("confirm", {"type": "boolean"}, action="Drop it")
ANYTHING = question(message="What now?")
NUMBER = question(schema={"type": "integer", "minimum": 1})
ENUM = question(schema={"enum": ["red", "green", 3]})
MAYBE = question(schema={"anyOf": [{"type": "integer"}, {"type": "null"}]})
FORM = question(schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
DEEP = question(schema={"type": "array", "items": {"type": "object"}})

UNDERSTOOD = {
    "an option by its number": (CHOICE, "2", "mysql"),
    "an option by its words": (CHOICE, "mysql", "mysql"),
    "an option in other letters": (CHOICE, "MySQL", "mysql"),
    "somebody's own words": (CHOICE, " oracle, please ", "oracle, please"),
    "an option that is a number": (NUMBERS, "3", "3"),
    "a number that is no option": (NUMBERS, "2", "2"),
    "own words": (OPEN, "Grace", "Grace"),
    "own words that are a number": (OPEN, "5", "5"),
    "several by numbers": (MULTI, "1, 3", ["S", "L"]),
    "several by numbers and spaces": (MULTI, "3 1", ["L", "S"]),
    "several by words": (MULTI, "m,S", ["M", "S"]),
    "one twice is one": (MULTI, "1,S", ["S"]),
    "all": (MULTI, "all", ["S", "M", "L"]),
    "several as JSON": (MULTI, '["S"]', ["S"]),
    "yes": (CONFIRM, "Y", True),
    "no": (CONFIRM, "no", False),
    "JSON where anything goes": (ANYTHING, '{"a": 1}', {"a": 1}),
    "text where anything goes": (ANYTHING, "go on", "go on"),
    "a number": (NUMBER, "5", 5),
    "an enum's value": (ENUM, "green", "green"),
    "nothing where that may be": (MAYBE, "", None),
    "a form as JSON": (FORM, '{"a": 1}', {"a": 1}),
    "a list of objects as JSON": (DEEP, "[{}]", [{}]),
    "an approval": (approval(), "yes", True),
    "a denial": (approval(), "n", False),
    "a denial with a reason": (approval(), "no, too expensive", {"approved": False, "reason": "too expensive"}),
}


@pytest.mark.parametrize(("event", "text", "answer"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_it_is_understood(event: Any, text: str, answer: Any) -> None:
    understood = understand(event, text)
    assert (understood, type(understood)) == (answer, type(answer))


UNFIT = {
    "an option that does not exist": (CHOICE, "3", "there is no option 3: they are 1 to 2"),
    "an empty answer": (CHOICE, " ", "an answer is needed"),
    "neither yes nor no": (CONFIRM, "maybe", "'maybe' is neither yes nor no"),
    "yes and more": (approval(), "yes, but", "neither yes nor no"),
    "own words among options only": (MULTI, "XL", "'XL' is none of the options"),
    "nothing of several": (MULTI, ",", "choose at least one"),
    "no number": (NUMBER, "five", "'five' is no number"),
    "too small a number": (NUMBER, "0", "less than the minimum of 1"),
    "no whole number": (NUMBER, "1.5", "is not of type"),
    "a form that lacks something": (FORM, "{}", '"a" is a required property'),
    "a form that is no JSON": (FORM, "a=1", "this is no JSON"),
    "no date": (question(schema={"type": "string", "format": "date"}), "tomorrow", 'is not a "date"'),
    "a number that JSON lacks": (DEEP, "[NaN]", "this is no JSON"),
}


@pytest.mark.parametrize(("event", "text", "problem"), UNFIT.values(), ids=UNFIT)
def test_what_is_no_answer_is_told(event: Any, text: str, problem: str) -> None:
    with pytest.raises(Unfit) as caught:
        understand(event, text)
    assert problem in str(caught.value)


GIVEN = {
    "a JSON string is taken as it is": (CHOICE, '"2"', "2"),
    "plain text is understood as at the prompt": (CHOICE, "2", "mysql"),
    "yes is true": (CONFIRM, "yes", True),
    "JSON's true, too": (CONFIRM, "true", True),
    "a number stays text where text is asked for": (OPEN, "5", "5"),
    "a form": (FORM, '{"a": 2}', {"a": 2}),
    "a cancel": (CONFIRM, '{"type": "timbal.cancel", "reason": "no more"}', Cancel("no more")),
    "an approval's resolution": (approval(), '{"approved": true}', {"approved": True}),
}


@pytest.mark.parametrize(("event", "text", "answer"), GIVEN.values(), ids=GIVEN)
def test_what_is_given_beforehand_is_json_or_text(event: Any, text: str, answer: Any) -> None:
    assert understand_given(event, text) == answer


@pytest.mark.parametrize("text", ["maybe", '"yes"', "1"])
def test_what_would_not_be_taken_as_a_yes_or_no_is_refused(text: str) -> None:
    with pytest.raises(Unfit):
        understand_given(CONFIRM, text)


def test_a_form_follows_references_and_knows_what_may_be_left_out() -> None:
    schema = {
        "$defs": {"Address": {"type": "object", "properties": {"code": {"type": "string", "pattern": "^x"}}}},
        "type": "object",
        "properties": {
            "address": {"$ref": "#/$defs/Address"},
            "size": {"allOf": [{"enum": ["S"]}]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["address"],
    }
    parts = {name: (part, required) for name, part, required in parts_of(field_of(schema))}
    assert {name: part.shape for name, (part, _) in parts.items()} == {
        "address": "form",
        "size": "choice",
        "note": "text",
        "tags": "list",
    }
    assert [name for name, (_, required) in parts.items() if required] == ["address"]
    assert parts["note"][0].nullable
    assert read(parts["tags"][0], "a, b") == ["a", "b"]
    assert check(field_of(schema), {"address": {"code": "a"}}) == ['address.code: "a" does not match "^x"']


def test_a_schema_that_refers_to_itself_is_asked_for_as_json() -> None:
    schema = {"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}
    assert field_of(schema).shape == "json"
