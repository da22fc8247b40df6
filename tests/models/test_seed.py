"""The seed's snippets run as they are written, against the fake API (the environment has its address)."""

import ast
import re
from pathlib import Path
from typing import Any

from tests.fake_api import FakeApi
from timbal import Tool
from timbal.types.events import InteractionEvent

SEED = Path(__file__).with_name("seed") / "suspend-and-interaction-tools.md"
SNIPPET = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
AGENT, TOOLS, EVENT, SCHEMA = SNIPPET.findall(SEED.read_text(encoding="utf-8"))

QUESTION = {"question": "Which database?", "options": ["postgres", "sqlite"]}
ASK = {"toolCalls": [{"id": "call_1", "name": "ask_user", "arguments": QUESTION}]}


async def run(snippet: str) -> dict[str, Any]:
    """The names that a snippet makes; it may await, as in a notebook."""
    names: dict[str, Any] = {"__name__": "seed"}
    awaited = eval(compile(snippet, SEED.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if awaited is not None:
        await awaited
    return names


async def test_the_first_snippet_asks_and_goes_on_with_the_answer(api: FakeApi) -> None:
    api.say(ASK, {"content": "Set up postgres."})
    names = await run(AGENT)
    (question,) = names["pending"]
    assert (question.kind, question.payload) == ("ask_user", QUESTION)
    assert question.tool_call_id == "call_1"
    assert (names["final"].status.code, names["final"].status.reason) == ("cancelled", "input_required")
    assert names["result"].output.collect_text() == "Set up postgres."
    results = [message for message in api.requests[-1].body["messages"] if message["role"] == "tool"]
    assert [(message["tool_call_id"], message["content"]) for message in results] == [("call_1", "postgres")]


async def test_the_tools_of_the_second_snippet_ask(api: FakeApi) -> None:
    names = await run(TOOLS)
    asked = await Tool(names["ask_user"])(question="Which?")
    assert asked.output["payload"] == {"question": "Which?", "options": None}
    answered = await Tool(names["ask_user"])(parent_id=asked.run_id, resume={asked.pending[0].id: "this"})
    assert answered.output == "this"
    sure = await Tool(names["confirm"])(action="Delete it")
    assert (await Tool(names["confirm"])(parent_id=sure.run_id, resume={sure.pending[0].id: 1})).output is True


async def test_an_interaction_event_has_the_fields_of_the_third_snippet() -> None:
    declared = re.findall(r"^    (\w+): ([^#\n]+?) *(?:#|$)", EVENT, re.MULTILINE)
    assert len(declared) == 10
    names = await run(TOOLS)
    (event,) = (await Tool(names["confirm"])(action="Delete it")).pending
    assert isinstance(event, InteractionEvent)
    kinds: dict[str, Any] = {
        "int": int,
        "str": str,
        "dict": dict,
        "dict | None": (dict, type(None)),
        "str | None": (str, type(None)),
    }
    for name, kind in declared:
        value = getattr(event, name)
        assert value == "INTERACTION" if kind.startswith("Literal") else isinstance(value, kinds[kind])


async def test_the_schema_of_the_fourth_snippet_goes_with_the_question() -> None:
    names = await run(SCHEMA)
    asked = await Tool(names["ask_age"])()
    (event,) = asked.pending
    assert isinstance(event, InteractionEvent)
    assert event.response_schema == {"type": "integer", "minimum": 0, "maximum": 130}
    assert (await Tool(names["ask_age"])(parent_id=asked.run_id, resume={event.id: 36})).output == 36
