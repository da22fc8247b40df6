"""S46: code that asks for other operations than were recorded is refused before it does anything new."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from tests.scenarios.effects_tools import Log, World, ask, asked, go_on, tool_calls, tool_results, turns_so_far
from timbal import Agent, Tool, step, suspend
from timbal.testing import TestModel


class Hands(NamedTuple):
    """What the handlers below work with; each use is an operation."""

    reserve: Callable[[], str]
    charge: Callable[[], str]
    ship: Callable[[], str]
    call: Callable[[str], Awaitable[str]]


Body = Callable[[Hands], Awaitable[str]]


def hands(log: Log) -> Hands:
    def logs(what: str) -> Callable[[], str]:
        def effect() -> str:
            log.append(what)
            return what

        effect.__name__ = what
        return effect

    async def call(name: str) -> str:
        return str((await Tool(logs(name))()).output)

    return Hands(step(logs("reserve")), step(logs("charge")), step(logs("ship")), call)


async def original(h: Hands) -> str:
    done = [h.reserve(), h.charge(), await h.call("notify"), ask("go on?")]
    return "-".join([*done, h.ship()])


async def a_step_added_before(h: Hands) -> str:
    done = [h.ship(), h.reserve(), h.charge(), await h.call("notify"), ask("go on?")]
    return "-".join(done)


async def a_step_removed(h: Hands) -> str:
    done = [h.reserve(), await h.call("notify"), ask("go on?")]
    return "-".join([*done, h.ship()])


async def a_step_renamed(h: Hands) -> str:
    renamed = step(lambda: h.reserve())
    done = [renamed(), h.charge(), await h.call("notify"), ask("go on?")]
    return "-".join([*done, h.ship()])


async def two_steps_that_changed_places(h: Hands) -> str:
    done = [h.charge(), h.reserve(), await h.call("notify"), ask("go on?")]
    return "-".join([*done, h.ship()])


async def a_step_moved_after_the_question(h: Hands) -> str:
    done = [h.reserve(), await h.call("notify"), ask("go on?"), h.charge()]
    return "-".join([*done, h.ship()])


async def a_call_that_became_another_one(h: Hands) -> str:
    done = [h.reserve(), h.charge(), await h.call("telegraph"), ask("go on?")]
    return "-".join([*done, h.ship()])


async def a_call_that_became_a_step(h: Hands) -> str:
    done = [h.reserve(), h.charge(), h.ship(), ask("go on?")]
    return "-".join(done)


async def the_question_removed(h: Hands) -> str:
    done = [h.reserve(), h.charge(), await h.call("notify")]
    return "-".join([*done, h.ship()])


async def the_question_of_another_kind(h: Hands) -> str:
    done = [h.reserve(), h.charge(), await h.call("notify"), suspend({"q": "go on?"}, kind="confirm")]
    return "-".join([*done, h.ship()])


async def a_question_added_before(h: Hands) -> str:
    done = [h.reserve(), ask("really?"), h.charge(), await h.call("notify"), ask("go on?")]
    return "-".join([*done, h.ship()])


async def an_early_return(h: Hands) -> str:
    return h.reserve()


async def no_operation_at_all(h: Hands) -> str:
    return "nothing"


#: What changed, and the words that the refusal must hold: what was recorded, and what came instead (if anything did).
CHANGES: list[tuple[Body, list[str]]] = [
    (a_step_added_before, ["reserve", "ship"]),
    (a_step_removed, ["charge", "notify"]),
    (a_step_renamed, ["reserve", "lambda"]),
    (two_steps_that_changed_places, ["reserve", "charge"]),
    (a_step_moved_after_the_question, ["charge", "notify"]),
    (a_call_that_became_another_one, ["notify", "telegraph"]),
    (a_call_that_became_a_step, ["notify", "ship"]),
    (the_question_removed, ["suspend", "ship"]),
    (the_question_of_another_kind, ["suspend", "confirm"]),
    (a_question_added_before, ["charge", "suspend"]),
    (an_early_return, ["charge", "notify", "suspend"]),
    (no_operation_at_all, ["reserve", "charge"]),
]
NAMES = [body.__name__ for body, _ in CHANGES]


def fresh(world: World, log: Log, body: Body) -> Tool[..., Any]:
    async def order() -> str:
        return await body(hands(log))

    return Tool(order, store=world.cold())


@pytest.mark.parametrize(("body", "words"), CHANGES, ids=NAMES)
async def test_s46_a_handler_that_was_changed_is_refused_before_it_does_anything_new_and_goes_on_when_put_right(
    world: World, body: Body, words: list[str]
) -> None:
    log: Log = []
    paused = await fresh(world, log, original)()
    assert log == ["reserve", "charge", "notify"]
    refused = await go_on(fresh(world, log, body), paused, {"go on?": "yes"})
    assert (refused.status.code, refused.status.reason) == ("error", "replay_mismatch")
    assert [word for word in words if word not in (refused.status.message or "")] == []
    assert log == ["reserve", "charge", "notify"]
    still = await fresh(world, log, body)(parent_id=refused.run_id, resume={})
    assert still.status.reason == "replay_mismatch"
    done = await fresh(world, log, original)(parent_id=paused.run_id, resume={})
    assert done.output == "reserve-charge-notify-yes-ship"
    assert log == ["reserve", "charge", "notify", "ship"]


@pytest.mark.parametrize(("body", "words"), CHANGES, ids=NAMES)
async def test_s46_in_an_agent_a_changed_tool_is_refused_as_a_whole_and_its_siblings_lose_nothing(
    world: World, body: Body, words: list[str]
) -> None:
    log: Log = []

    def agent(body: Body) -> Agent[Any]:
        async def order() -> str:
            return await body(hands(log))

        async def sibling() -> str:
            log.append("sibling")
            return str(ask("and you?"))

        def model(messages: Any) -> Any:
            log.append("model")
            if turns_so_far(messages) == 0:
                return tool_calls(("order", {}), ("sibling", {}))
            return " ".join(map(str, tool_results(messages)))

        return Agent("desk", TestModel(handler=model), [order, sibling], store=world.cold())

    before = ["charge", "model", "notify", "reserve", "sibling"]
    paused = await agent(original)("go")
    refused = await go_on(agent(body), paused, {"go on?": "yes"})
    assert (refused.status.code, refused.status.reason) == ("error", "replay_mismatch")
    assert sorted(log) == before
    paused = await agent(original)(parent_id=refused.run_id, resume={})
    assert list(asked(paused)) == ["and you?"]
    done = await go_on(agent(original), paused, {"and you?": "fine"})
    assert done.output.collect_text() == "reserve-charge-notify-yes-ship fine"
    assert sorted(log) == sorted([*before, "ship", "sibling", "model"])


async def test_s46_what_is_added_after_the_last_recorded_operation_goes_on(world: World) -> None:
    async def longer(h: Hands) -> str:
        return await original(h) + "-" + await h.call("thank") + "-" + h.reserve()

    log: Log = []
    done = await go_on(fresh(world, log, longer), await fresh(world, log, original)(), {"go on?": "yes"})
    assert done.output == "reserve-charge-notify-yes-ship-thank-reserve"
    assert log == ["reserve", "charge", "notify", "ship", "thank", "reserve"]


async def test_s46_an_answer_given_while_the_code_was_wrong_can_not_be_given_differently_afterwards(
    world: World,
) -> None:
    log: Log = []
    paused = await fresh(world, log, original)()
    await go_on(fresh(world, log, no_operation_at_all), paused, {"go on?": "yes"})
    lost = await go_on(fresh(world, log, original), paused, {"go on?": "no"})
    assert lost.status.reason == "interaction_already_claimed"
    done = await go_on(fresh(world, log, original), paused, {"go on?": "yes"})
    if done.status.code == "error":  # the state that the winner left; `resume={}` is what goes on
        done = await fresh(world, log, original)(parent_id=paused.run_id, resume={})
    assert done.output == "reserve-charge-notify-yes-ship"


async def test_s46_a_step_of_the_same_name_in_another_place_is_told_apart_by_position_alone(world: World) -> None:
    log: Log = []

    def tool() -> Tool[..., Any]:
        @step
        def effect(what: str) -> str:
            log.append(what)
            return what

        def order() -> list[str]:
            done = [effect("a"), effect("a"), effect("b")]
            ask("go on?")
            return [*done, effect("a")]

        return Tool(order, store=world.cold())

    done = await go_on(tool(), await tool()(), {"go on?": True})
    assert done.output == log == ["a", "a", "b", "a"]
