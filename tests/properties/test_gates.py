"""The promise of gates: whatever is decided, repeated, cut off or late, gated code runs only as a person said."""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
import time_machine
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.test_pause_resume import Stores, common
from timbal import Agent, Tool
from timbal.core.facts import Gated, Passed, Settled
from timbal.core.gates import decision
from timbal.state import get_run_context
from timbal.stores.base import BaseStore
from timbal.testing import TestModel
from timbal.types.approval import Cancel
from timbal.types.content import ToolUseContent
from timbal.types.events import OutputEvent
from timbal.types.message import Message

#: More moves than any story needs to come to its end.
MOST_ROUNDS = 40
EXPIRES_IN = 600


@dataclass(frozen=True)
class Move:
    """What is sent about each open gate (`None`: nothing), in so many deliveries at once; time passes before it."""

    decision: Any
    copies: int = 1
    seconds: int = 0


@dataclass
class Life:
    """One agent or tool, the policy's mind, how its handler ends each time, and what was seen of it."""

    verdicts: Sequence[bool]
    endings: Sequence[str]
    asked: int = 0
    ran: list[tuple[str, int]] = field(default_factory=list)
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def policy(self) -> bool:
        self.asked += 1
        return self.verdicts[(self.asked - 1) % len(self.verdicts)]

    async def pay(self, amount: int) -> str:
        call = get_run_context().call_id
        ending = self.endings[len(self.ran) % len(self.endings)]
        self.ran.append((call, amount))
        self.ended[call, ending] += 1
        await asyncio.sleep(0)
        if ending == "fails":
            raise ConnectionError("not now")
        if ending == "is cut off":
            self.begun.set()
            await asyncio.Event().wait()
        return f"paid {amount}"

    def tool(self, store: BaseStore) -> Tool[..., Any]:
        return Tool(self.pay, requires_approval=self.policy, approval_expires_in=EXPIRES_IN, store=store)

    def agent(self, store: BaseStore, turns: Sequence[Sequence[int]]) -> Agent[Any]:
        def model(messages: Any) -> Any:
            turn = sum(m.role == "assistant" for m in messages)
            if turn == len(turns):
                return "done"
            return Message(
                "assistant", [ToolUseContent(f"{turn}-{i}", "pay", {"amount": n}) for i, n in enumerate(turns[turn])]
            )

        return Agent("clerk", TestModel(handler=model), [self.tool(store)], store=store)

    async def follow(self, runnable: Any, **call: Any) -> OutputEvent | None:
        """Run it; where a handler hangs, it is cut off before its outcome is committed, and so is who waits for it."""
        self.begun.clear()
        handle = runnable(**call)
        running = asyncio.ensure_future(handle.collect())
        hangs = asyncio.ensure_future(self.begun.wait())
        await asyncio.wait([running, hangs], return_when=asyncio.FIRST_COMPLETED)
        while not running.done():
            await handle.aclose()
            await asyncio.wait([running], timeout=0.01)
        hangs.cancel()
        return None if running.cancelled() else running.result()


moves = st.builds(
    Move,
    st.sampled_from(
        [
            True,
            True,
            False,
            {"approved": True, "override_input": {"amount": 77}},
            {"approved": True, "scope": "conversation", "max_uses": 1},
            {"approved": False, "scope": "conversation"},
            {"approved": True, "expires_at": 1},
            {"approved": True, "override_input": {"amount": "much"}},
            "yes",
            Cancel("stop"),
            None,
        ]
    ),
    st.integers(1, 3),
    st.sampled_from([0, 0, 0, 0, EXPIRES_IN + 1]),
)
lives = st.builds(
    Life,
    st.lists(st.booleans(), min_size=1, max_size=4),
    st.lists(st.sampled_from(["works", "works", "fails", "is cut off"]), min_size=1, max_size=4),
)
amounts = st.lists(st.lists(st.sampled_from([1, 2]), min_size=1, max_size=3), max_size=3)


async def play(life: Life, turns: Sequence[Sequence[int]] | None, plan: Sequence[Move], stores: Stores) -> None:
    def fresh() -> Any:
        store = stores.cold()
        return life.tool(store) if turns is None else life.agent(store, turns)

    out = await life.follow(fresh(), **({"amount": 1} if turns is None else {"prompt": "go"}))
    assert out is not None
    first, now = out.run_id, time.time()
    for round in range(MOST_ROUNDS):
        move = plan[round] if round < len(plan) else Move(True)
        if not out.pending and out.status.code == "success":
            break
        now += move.seconds
        with time_machine.travel(now, tick=False):
            resume = {} if move.decision is None else {event.id: move.decision for event in out.pending}
            sent = [life.follow(fresh(), parent_id=first, resume=resume) for _ in range(move.copies)]
            await asyncio.gather(*sent)
            last = await life.follow(fresh(), parent_id=first, resume={})
        assert last is not None
        out = last
        await check(life, stores.cold(), first)
        if out.status.code == "cancelled" and out.status.reason not in ("approval_required", "interrupted"):
            break


async def check(life: Life, store: BaseStore, run_id: str) -> None:
    """Each time the handler ran, a person (or its policy) had said so, with that input; and it ran once for it."""
    facts = (await store.get(run_id)).facts
    decisions = {fact.id: decision(fact) for fact in facts if isinstance(fact, Settled)}
    gates: dict[str, list[Gated]] = {}
    for fact in facts:
        if isinstance(fact, Gated):
            gates.setdefault(fact.call_id, []).append(fact)
    free = {fact.key: fact for fact in facts if isinstance(fact, Passed) and fact.approval_id is None}
    times = Counter(call for call, _ in life.ran)
    for call, amount in life.ran:
        said = [decisions[gate.id] for gate in gates.get(call, []) if gate.id in decisions]
        if call in gates:
            approved = [one for one in said if one.approved]
            assert approved, f"{call} ran, and nobody had approved it"
            assert amount in [{**gates[call][0].proposed, **one.edit}["amount"] for one in approved]
        else:
            assert free or not all(life.verdicts), f"{call} ran, and nobody was asked"
        more = life.ended[call, "is cut off"] + life.ended[call, "fails"]
        assert times[call] <= 1 + more, f"{call} ran {times[call]} times"
    grants = [id for id, one in decisions.items() if one.approved and one.standing]
    passes = Counter(fact.grant["approval_id"] for fact in free.values() if fact.grant is not None)
    assert all(id in grants and n <= 1 for id, n in passes.items()), "a grant for one call let more pass"


def run(life: Life, turns: Any, plan: Sequence[Move], on_disk: bool) -> None:
    async def main(folder: str | None) -> None:
        async with AsyncExitStack() as stack:
            await play(life, turns, plan, Stores(folder, stack))

    if on_disk:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(folder))
    else:
        asyncio.run(main(None))


plans = st.lists(moves, max_size=8)


@pytest.mark.slow
@settings(common, max_examples=200)
@given(lives, st.none() | amounts, plans)
def test_gated_code_runs_at_most_once_per_approval_with_what_was_approved(life: Life, turns: Any, plan: Any) -> None:
    run(life, turns, plan, on_disk=False)


@pytest.mark.slow
@settings(common, max_examples=30)
@given(lives, st.none() | amounts, plans)
def test_gated_code_runs_at_most_once_per_approval_with_a_store_on_disk(life: Life, turns: Any, plan: Any) -> None:
    run(life, turns, plan, on_disk=True)


def test_the_stories_get_to_all_the_ends() -> None:
    """The moves above are not all refused for some trivial reason."""
    life = Life([True], ["is cut off", "fails", "works"])
    run(life, None, [Move("yes"), Move(True, 3), Move(None, 2), Move(None)], on_disk=False)
    assert [amount for _, amount in life.ran] == [1, 1, 1]
