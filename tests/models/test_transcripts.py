"""Whatever became of a run, the next request is one that its provider accepts."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.fake_api import Asked, FakeApi, Raw
from tests.models.valid import assert_valid
from tests.models.wire import first_words
from timbal import Agent, Model
from timbal.stores import MemoryStore, SqliteStore
from timbal.tools import ask_user
from timbal.types.approval import Cancel
from timbal.types.content import ToolResultContent, ToolUseContent
from timbal.types.message import Message

Response = dict[str, Any]


def use(*calls: tuple[str, dict[str, Any]], said: str = "") -> Response:
    """A reply with tool calls."""
    called = [{"id": f"call_{i}", "name": name, "arguments": arguments} for i, (name, arguments) in enumerate(calls)]
    return {"toolCalls": called, **({"content": said} if said else {})}


def question(text: str) -> tuple[str, dict[str, Any]]:
    return "ask_user", {"question": text, "options": ["a", "b"]}


def ping() -> str:
    """Answer."""
    return "pong"


def silent() -> str:
    """Say nothing."""
    return ""


def broken() -> str:
    """Fail."""
    raise RuntimeError("out of order")


def assistant(model: Model, **options: Any) -> Agent[Any]:
    return Agent("assistant", model, [ask_user, ping, silent, broken], store=MemoryStore(), **options)


async def finish(agent: Agent[Any], api: FakeApi, parent_id: str, expected: int) -> None:
    """One more turn after what happened; every request so far was valid, and the model was asked `expected` times."""
    last = await agent("and now?", parent_id=parent_id)
    last.raise_for_status()
    assert last.output.collect_text() == "the end"
    for asked in api.requests:
        assert_valid(asked)
    assert len(api.requests) == expected


async def test_answers_that_come_one_by_one(api: FakeApi, model: Model) -> None:
    api.say(
        use(question("one"), ("ping", {}), question("two"), said="Let me ask."),
        {"content": "ok"},
        {"content": "the end"},
    )
    agent = assistant(model)
    paused = await agent("go")
    first, second = paused.pending
    half = await agent(parent_id=paused.run_id, resume={second.id: "b"})
    done = await agent(parent_id=half.run_id, resume={first.id: "a"})
    assert done.output.collect_text() == "ok"
    await finish(agent, api, done.run_id, 3)


async def test_a_question_that_a_new_message_superseded(api: FakeApi, model: Model) -> None:
    api.say(use(question("one"), ("ping", {})), {"content": "the end"})
    agent = assistant(model)
    paused = await agent("go")
    await finish(agent, api, paused.run_id, 2)


async def test_an_answered_question_beside_a_superseded_one(api: FakeApi, model: Model) -> None:
    api.say(use(question("one"), question("two")), {"content": "the end"})
    agent = assistant(model)
    paused = await agent("go")
    half = await agent(parent_id=paused.run_id, resume={paused.pending[0].id: "a"})
    await finish(agent, api, half.run_id, 2)


async def test_a_cancelled_question(api: FakeApi, model: Model) -> None:
    api.say(use(question("one"), ("ping", {})), {"content": "the end"})
    agent = assistant(model)
    paused = await agent("go")
    cancelled = await agent(parent_id=paused.run_id, resume={paused.pending[0].id: Cancel("no")})
    await finish(agent, api, cancelled.run_id, 2)


async def test_an_interrupted_run(api: FakeApi, model: Model) -> None:
    begun = asyncio.Event()

    async def forever() -> None:
        """Never end."""
        begun.set()
        await asyncio.Event().wait()

    api.say(use(("forever", {}), ("ping", {})), {"content": "the end"})
    agent: Agent[Any] = Agent("assistant", model, [forever, ping], store=MemoryStore())
    handle = agent("go")
    listening = asyncio.ensure_future(handle.collect())
    await begun.wait()
    await handle.aclose()
    await asyncio.gather(listening, return_exceptions=True)
    await finish(agent, api, handle.run_id, 2)


async def test_a_model_that_broke_off(api: FakeApi, model: Model) -> None:
    api.say({"content": "the end"})
    api.serve(Raw(first_words(model), cut=True))
    agent = assistant(model)
    failed = await agent("go")
    assert failed.status.reason == "model_error"
    await finish(agent, api, failed.run_id, 2)


async def test_tools_that_fail_are_unknown_or_say_nothing(api: FakeApi, model: Model) -> None:
    calls = use(("broken", {}), ("silent", {}), ("no_such_tool", {}), ("ping", {"loud": True}))
    api.say(calls, {"content": "hm"}, {"content": "the end"})
    agent = assistant(model)
    done = await agent("go")
    assert done.output.collect_text() == "hm"
    await finish(agent, api, done.run_id, 3)


async def test_a_turn_that_came_to_its_last_model_call(api: FakeApi, model: Model) -> None:
    api.say(use(("ping", {})), use(("ping", {})), {"content": "the end"})
    agent = assistant(model, max_iter=2)
    stopped = await agent("go")
    assert stopped.status.reason == "max_iter"
    await finish(agent, api, stopped.run_id, 3)


async def test_a_turn_that_ran_out_of_time(api: FakeApi, model: Model) -> None:
    goes_on = asyncio.Event()

    async def slow() -> None:
        """Take long."""
        await goes_on.wait()

    api.say(use(("slow", {}), ("ping", {})), {"content": "the end"})
    store = MemoryStore()
    hurried: Agent[Any] = Agent("assistant", model, [slow, ping], store=store, timeout=2)
    late = await hurried("go")
    assert late.status.reason == "timeout"
    goes_on.set()
    patient: Agent[Any] = Agent("assistant", model, [slow, ping], store=store)
    await finish(patient, api, late.run_id, 2)


async def test_words_that_are_blank(api: FakeApi, model: Model) -> None:
    api.say({"content": "the end"})
    agent = assistant(model)
    said = [Message("user", " "), Message("assistant", ["", "\n"], "stop"), Message("user", ["", "go"])]
    await agent(messages=said)
    assert_valid(api.requests[0])


async def test_replies_in_a_row_are_one(api: FakeApi, model: Model) -> None:
    api.say({"content": "the end"})
    call, result = ToolUseContent("call_0", "ping", {}), ToolResultContent("call_0", "pong")
    said = [
        Message("system", "Be kind."),
        Message("user", "go"),
        Message("assistant", ["Wait."], "stop"),
        Message("assistant", [call], "tool_use"),
        Message("tool", [result]),
        Message("user", "and?"),
    ]
    await assistant(model)(messages=said)
    assert_valid(api.requests[0])
    assert "Be kind." in str(api.requests[0].body)


class Answer(BaseModel):
    n: int


async def test_an_answer_that_had_to_be_put_right(api: FakeApi, model: Model) -> None:
    api.say({"content": "seven"}, {"content": '{"n": 7}'})
    done = await assistant(model, output_model=Answer)("go")
    assert done.output == Answer(n=7)
    for asked in api.requests:
        assert_valid(asked)


async def test_an_agent_inside_an_agent_that_asks(api: FakeApi, model: Model) -> None:
    api.say(use(question("which?")), {"content": "inner is done"}, userMessage="inner job")
    api.say(use(("inner", {"prompt": "inner job"}), ("ping", {})), {"content": "ok"}, {"content": "the end"})
    inner: Agent[Any] = Agent("inner", model, [ask_user], description="Does jobs.")
    outer: Agent[Any] = Agent("assistant", model, [inner, ping], store=MemoryStore())
    paused = await outer("go")
    done = await outer(parent_id=paused.run_id, resume={paused.pending[0].id: "a"})
    assert done.output.collect_text() == "ok"
    await finish(outer, api, done.run_id, 5)


async def test_a_conversation_that_changes_its_provider(api: FakeApi, model: Model) -> None:
    api.say({**use(("ping", {}), ("ping", {})), "reasoning": "Ping it."}, {"content": "ok"}, {"content": "the end"})
    store = MemoryStore()
    others = ("openai/gpt-5", "anthropic/claude-sonnet-4-5", "google/gemini-2.5-pro")
    done = await Agent("assistant", model, [ping], store=store)("go")
    for other in others:
        agent: Agent[Any] = Agent("assistant", other, [ping], store=store)
        last = await agent("and now?", parent_id=done.run_id)
        assert last.output.collect_text() == "the end"
    for asked in api.requests:
        assert_valid(asked)


CRASH = """
import os, sys
from timbal import Agent, Model
from timbal.stores import SqliteStore
from tests.models.test_transcripts import ping

def crash():
    os._exit(7)

Agent("assistant", sys.argv[1], [ping, crash], store=SqliteStore(sys.argv[2])).run_sync("go", run_id=sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openai/gpt-5", "anthropic/claude-sonnet-4-5", "google/gemini-2.5-pro"])
async def test_a_process_that_crashed(api: FakeApi, tmp_path: Path, name: str) -> None:
    api.say(use(("crash", {}), ("ping", {})), {"content": "the end"})
    store, run_id = tmp_path / "runs.db", "0" * 32
    command = [sys.executable, "-c", CRASH, name, str(store), run_id]
    crashed = await asyncio.to_thread(subprocess.run, command, env=os.environ, cwd=Path(__file__).parents[2])
    assert crashed.returncode == 7

    def crash() -> str:
        """Work, this time."""
        return "fine"

    async with SqliteStore(store) as again:
        agent: Agent[Any] = Agent("assistant", name, [ping, crash], store=again)
        done = await agent(parent_id=run_id, resume={})
        assert done.output.collect_text() == "the end"
    for asked in api.requests:
        assert_valid(asked)


# -- the rules themselves can fail -------------------------------------------------------------------------------------

CALL = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
INVALID = {
    "chat: no result": (
        "/v1/chat/completions",
        {"messages": [{"role": "assistant", "tool_calls": [CALL]}, {"role": "user", "content": "go"}]},
    ),
    "chat: two results": (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "assistant", "tool_calls": [CALL]},
                *[{"role": "tool", "tool_call_id": "c1", "content": "pong"}] * 2,
            ]
        },
    ),
    "chat: empty": ("/v1/chat/completions", {"messages": [{"role": "user", "content": ""}]}),
    "responses: no output": (
        "/v1/responses",
        {"input": [{"type": "function_call", "call_id": "c1"}, {"role": "user", "content": "go"}]},
    ),
    "claude: two in a row": ("/v1/messages", {"messages": [{"role": "user", "content": "go"}] * 2}),
    "claude: no result": (
        "/v1/messages",
        {
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1"}]},
                {"role": "user", "content": "go"},
            ]
        },
    ),
    "gemini: no response": (
        "/v1beta/models/g:streamGenerateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "go"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "ping"}}]},
                {"role": "user", "parts": [{"text": "go"}]},
            ]
        },
    ),
}


@pytest.mark.parametrize(("path", "body"), INVALID.values(), ids=INVALID)
def test_a_request_against_the_rules_is_found(path: str, body: Any) -> None:
    with pytest.raises(AssertionError):
        assert_valid(Asked(path, {}, body))
