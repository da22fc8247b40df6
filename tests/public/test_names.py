"""What is promised is frozen: the public names, the JSON of each event, one stored record per released version."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from timbal import Agent, Tool, step, suspend
from timbal.core.codec import decode
from timbal.core.ledger import Ledger
from timbal.core.transcript import transcript
from timbal.stores import MemoryStore
from timbal.testing import TestModel
from timbal.types.approval import Principal
from timbal.types.content import ToolUseContent
from timbal.types.events import Event, validate_event
from timbal.types.message import Message

GOLDEN = Path(__file__).parents[1] / "golden"

NAMES = {
    "timbal": "Agent Tool Model suspend step idempotency_key __version__",
    "timbal.tools": "ask_user ask_user_multi confirm",
    "timbal.types.events": (
        "BaseEvent StartEvent DeltaEvent OutputEvent ApprovalEvent InteractionEvent Event validate_event"
    ),
    "timbal.types.approval": "ApprovalResolution ApprovalPolicyDecision Cancel Default Principal",
    "timbal.types.message": "Message",
    "timbal.types.content": "TextContent ThinkingContent ToolUseContent ToolResultContent FileContent",
    "timbal.types.run_status": "RunStatus",
    "timbal.state": "get_run_context suspend RunContext",
    "timbal.stores": "MemoryStore SqliteStore PostgresStore open_store",
    "timbal.testing": "TestModel ScriptedHuman store_conformance",
    "timbal.errors": "TimbalError StoreError LeaseLost",
}


@pytest.mark.parametrize("module", NAMES)
def test_the_public_names_are_there(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []


def test_importing_timbal_loads_no_driver_no_server_and_not_even_pydantic() -> None:
    code = (
        "import sys; from timbal import Agent, Tool, suspend; from timbal.types.events import OutputEvent;"
        "print([m for m in ('pydantic', 'sqlite3', 'typer', 'rich', 'fastapi', 'psycopg') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def plain(event: Event, names: dict[str, str]) -> Any:
    """The event's JSON with ids and times replaced by names in order of appearance."""

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(v) for v in value]
        if key in ("t0", "t1", "at", "decided_at", "settled_at"):
            return 0
        if isinstance(value, str) and len(value) == 32:
            return names.setdefault(value, f"id{len(names)}")
        return value

    return walk(json.loads(event.model_dump_json()))


async def story() -> list[Event]:
    @step
    def reserve() -> str:
        return "reserved"

    async def ask(question: str) -> str:
        reserve()
        return str(suspend({"question": question}, kind="ask_user", response_schema={"type": "string"}))

    use = Message("assistant", [ToolUseContent(id="c1", name="ask", input={"question": "Which?"})], "tool_use")
    agent: Agent[Any] = Agent("assistant", TestModel([use, "done"], chunk_size=2), [ask], store=MemoryStore())
    events = [event async for event in agent(prompt="go")]
    paused = events[-1]
    assert paused.type == "OUTPUT"
    answer = {paused.pending[0].id: "postgres"}
    return events + [event async for event in agent(parent_id=paused.run_id, resume=answer)]


async def test_the_json_of_the_events_is_as_it_was(request: pytest.FixtureRequest) -> None:
    names: dict[str, str] = {}
    lines = [json.dumps(plain(event, names)) for event in await story()]
    assert lines == (GOLDEN / "events.jsonl").read_text().splitlines()


async def story_of_a_gate() -> list[Event]:
    async def refund(amount: int, card: str) -> str:
        return f"refunded {amount}"

    use = Message(
        "assistant", [ToolUseContent(id="c1", name="refund", input={"amount": 5, "card": "4242"})], "tool_use"
    )
    tool: Tool[..., Any] = Tool(
        refund,
        requires_approval=lambda amount: {"requires_approval": True, "metadata": {"limit": 4}},
        approval_prompt="Refund?",
        approval_description="A refund",
        approval_kind="refund",
        approval_ui={"widget": "money"},
        approval_preview=lambda amount: {"left": 10 - amount},
        approval_redact_keys=["card"],
        approval_audience=["user:ada"],
    )
    agent: Agent[Any] = Agent("assistant", TestModel([use, "done"]), [tool], store=MemoryStore())
    events = [event async for event in agent(prompt="go")]
    paused = events[-1]
    assert paused.type == "OUTPUT"
    decision = {"approved": True, "override_input": {"amount": 3}, "reason": "fine"}
    resume = {paused.pending[0].id: decision}
    return events + [event async for event in agent(parent_id=paused.run_id, resume=resume, by=Principal("ada"))]


async def test_the_json_of_an_approval_is_as_it_was() -> None:
    names: dict[str, str] = {}
    events = await story_of_a_gate()
    lines = [json.dumps(plain(event, names)) for event in events if ".llm" not in event.path]
    assert lines == (GOLDEN / "approval.jsonl").read_text().splitlines()


async def test_an_event_survives_its_json() -> None:
    for event in [*await story(), *await story_of_a_gate()]:
        again = validate_event(event.model_dump_json())
        assert (type(again), again.model_dump_json()) == (type(event), event.model_dump_json())


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("record-*.jsonl")), ids=lambda path: path.stem)
def test_a_record_of_an_earlier_version_is_still_read(path: Path) -> None:
    ledger = Ledger.of(fact for line in path.read_text().splitlines() for fact in decode(line))
    assert ledger.root.name == "assistant"
    assert [m.role for m in transcript(ledger)] == ["user", "assistant", "tool", "assistant"]
    assert transcript(ledger)[-1].collect_text() == "done"
    assert [q.settled.value for q in ledger.questions.values() if q.settled] == ["postgres"]
