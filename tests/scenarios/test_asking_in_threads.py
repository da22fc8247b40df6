"""Handlers in threads that ask and work at the same moment lose nothing (S8, S9)."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import asked, ids, listen, output_text, results, tool_of, turn, use
from timbal import Agent, step, suspend
from timbal.stores.base import BaseStore
from timbal.testing import TestModel
from timbal.types.events import InteractionEvent

ROUNDS = 5


@pytest.fixture(autouse=True)
def _busy_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def ask() -> str:
    return str(suspend({"question": "Which?"}))


@step
def count(n: int) -> int:
    return n


def work() -> str:
    return "x" * 1000 + str([count(n) for n in range(5)])


async def test_s8_of_many_calls_that_ask_and_work_in_threads_each_question_is_kept_when_it_is_heard(
    world: World,
) -> None:
    uses = [use(name, f"{name} {n}") for n in range(20) for name in ("ask", "work")]

    def agent(store: BaseStore) -> Agent[Any]:
        return Agent("assistant", TestModel([turn(*uses), "done"]), [ask, work], store=store)

    for _ in range(ROUNDS):
        events, output = await listen(agent(world.store)("go"))
        heard = [event.interaction_id for event in asked(events)]
        record = await world.cold().get(output.run_id)
        kept = [fact.id for fact in record.facts if type(fact).__name__ == "Asked"]
        assert (len(heard), len(set(heard))) == (20, 20)
        assert sorted(kept) == sorted(ids(output)) == sorted(heard)
        steps = Counter(fact.key for fact in record.facts if getattr(fact, "kind", "") == "step")
        assert (len(steps), set(steps.values())) == (100, {1})
        more, output = await listen(agent(world.cold())(parent_id=output.run_id, resume=dict.fromkeys(heard, "yes")))
        assert (output_text(output), asked(more)) == ("done", [])
        found = results(await world.store.messages(output.run_id))
        assert [found[f"ask {n}"] for n in range(20)] == ["yes"] * 20


async def test_s9_many_equal_questions_of_tools_called_by_one_handler_have_an_id_each(world: World) -> None:
    async def handler() -> Any:
        return [output.output for output in await asyncio.gather(*(tool_of(ask)() for _ in range(20)))]

    for _ in range(ROUNDS):
        events, output = await listen(tool_of(handler, store=world.store)())
        heard = [event.interaction_id for event in asked(events)]
        assert (len(heard), len(set(heard)), sorted(ids(output))) == (20, 20, sorted(heard))
        given = {id: n for n, id in enumerate(heard)}
        output = await tool_of(handler, store=world.cold())(parent_id=output.run_id, resume=given)
        assert output.status.code == "success"
        assert sorted(output.output, key=int) == [str(n) for n in range(20)]


async def test_s8_a_question_of_a_thread_can_be_answered_as_soon_as_it_is_heard(world: World) -> None:
    uses = [use(name, f"{name} {n}") for n in range(10) for name in ("ask", "work")]

    def agent(store: BaseStore) -> Agent[Any]:
        return Agent("assistant", TestModel([turn(*uses), "done"]), [ask, work], store=store)

    states = []
    cold = world.cold()
    handle = agent(world.store)("go")
    async for event in handle:
        if isinstance(event, InteractionEvent):
            (receipt,) = await cold.answer(event.run_id, {event.interaction_id: "yes"})
            states.append(receipt["state"])
    assert states == ["accepted"] * 10
    output = await agent(world.cold())(parent_id=handle.run_id, resume={})
    assert output_text(output) == "done"
