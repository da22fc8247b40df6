"""S11: what a handler does in a `@step` is done once, however often the handler runs again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.effects_tools import Handler, Log, World, answers, ask, asked, async_step, go_on, sync_step
from timbal import Tool, idempotency_key, step


def threaded(log: Log) -> Handler:
    effect = sync_step(log)

    def order() -> str:
        return f"{effect('before')}-{ask('first')}-{effect('between')}-{ask('second')}-{effect('after')}"

    return order


def async_with_sync_steps(log: Log) -> Handler:
    effect = sync_step(log)

    async def order() -> str:
        return f"{effect('before')}-{ask('first')}-{effect('between')}-{ask('second')}-{effect('after')}"

    return order


def async_with_async_steps(log: Log) -> Handler:
    effect = async_step(log)

    async def order() -> str:
        before, first = await effect("before"), ask("first")
        between, second = await effect("between"), ask("second")
        return f"{before}-{first}-{between}-{second}-{await effect('after')}"

    return order


def steps_in_to_thread(log: Log) -> Handler:
    effect = sync_step(log)

    async def order() -> str:
        before, first = await asyncio.to_thread(effect, "before"), ask("first")
        between, second = await asyncio.to_thread(effect, "between"), ask("second")
        return f"{before}-{first}-{between}-{second}-{await asyncio.to_thread(effect, 'after')}"

    return order


def steps_with_keyword_arguments(log: Log) -> Handler:
    @step
    def effect(*, prefix: str = "", what: str) -> str:
        log.append(what)
        return prefix + what

    def order() -> str:
        before = effect(what="before")
        return f"{before}-{ask('first')}-{effect(what='between')}-{ask('second')}-{effect(prefix='', what='after')}"

    return order


def nested_steps(log: Log) -> Handler:
    inner = sync_step(log)

    @step
    def effect(what: str) -> str:
        return inner(what)

    def order() -> str:
        return f"{effect('before')}-{ask('first')}-{effect('between')}-{ask('second')}-{effect('after')}"

    return order


def steps_made_on_the_spot(log: Log) -> Handler:
    def noted(what: str) -> str:
        log.append(what)
        return what

    def order() -> str:
        before, first = step(lambda: noted("before"))(), ask("first")
        between, second = step(lambda: noted("between"))(), ask("second")
        return f"{before}-{first}-{between}-{second}-{step(lambda: noted('after'))()}"

    return order


def generator(log: Log) -> Handler:
    effect = sync_step(log)

    def order() -> Iterator[str]:
        yield f"{effect('before')}-{ask('first')}"
        yield f"-{effect('between')}-{ask('second')}"
        yield f"-{effect('after')}"

    return order


def async_generator(log: Log) -> Handler:
    effect = async_step(log)

    async def order() -> AsyncIterator[str]:
        yield f"{await effect('before')}-{ask('first')}"
        yield f"-{await effect('between')}-{ask('second')}"
        yield f"-{await effect('after')}"

    return order


HANDLERS = [
    threaded,
    async_with_sync_steps,
    async_with_async_steps,
    steps_in_to_thread,
    steps_with_keyword_arguments,
    nested_steps,
    steps_made_on_the_spot,
    generator,
    async_generator,
]


@pytest.mark.parametrize("make", HANDLERS, ids=lambda make: make.__name__)
async def test_s11_each_effect_is_made_once_over_any_number_of_resumes(
    world: World, make: Callable[[Log], Handler]
) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        return Tool(make(log), name="order", store=world.cold())

    start = await fresh()().collect()
    assert log == ["before"]
    for _ in range(2):
        assert asked(await fresh()(parent_id=start.run_id, resume={}).collect()) == asked(start)
    second = await go_on(fresh(), start, {"first": "yes"})
    again = await go_on(fresh(), start, {"first": "yes"})
    assert asked(again) == asked(second)
    assert log == ["before", "between"]
    done = await fresh()(parent_id=start.run_id, resume=answers(second, {"second": "no"})).collect()
    again = await go_on(fresh(), second, {"second": "no"})
    assert done.output == again.output == "before-yes-between-no-after"
    assert log == ["before", "between", "after"]


async def test_s11_a_function_that_runs_inline_has_its_steps_recorded_too(world: World) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        return Tool(threaded(log), name="order", blocking=False, store=world.cold())

    done = await go_on(fresh(), await go_on(fresh(), await fresh()(), {"first": "yes"}), {"second": "no"})
    assert (done.output, log) == ("before-yes-between-no-after", ["before", "between", "after"])


async def test_s11_outside_a_run_a_step_is_the_plain_function() -> None:
    log: Log = []
    assert sync_step(log)("here") == "here"
    assert await async_step(log)("there") == "there"
    assert log == ["here", "there"]
    assert isinstance(idempotency_key(), str)
