"""S46: operations in tasks are known by name and arguments, those in the handler's own task by their position."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest

from tests.scenarios.effects_tools import Log, World, ask, go_on, tool
from timbal import Tool, step, suspend

#: Does one piece of work in a task: `(log, what) -> result`.
Work = Callable[[Log, str], Awaitable[str]]


async def async_step(log: Log, what: str) -> str:
    @step
    async def effect(what: str) -> str:
        await asyncio.sleep(0)
        log.append(what)
        return f"{what} done"

    return await effect(what)


async def sync_step(log: Log, what: str) -> str:
    @step
    def effect(what: str) -> str:
        log.append(what)
        return f"{what} done"

    return effect(what)


async def sync_step_in_a_thread(log: Log, what: str) -> str:
    @step
    def effect(what: str) -> str:
        log.append(what)
        return f"{what} done"

    return await asyncio.to_thread(effect, what)


async def nested_call(log: Log, what: str) -> str:
    def effect(what: str) -> str:
        log.append(what)
        return f"{what} done"

    return str((await tool(effect)(what=what)).output)


async def nested_call_of_an_async_tool(log: Log, what: str) -> str:
    async def effect(what: str) -> str:
        await asyncio.sleep(0)
        log.append(what)
        return f"{what} done"

    return str((await tool(effect)(what=what)).output)


WORKS: list[Work] = [async_step, sync_step, sync_step_in_a_thread, nested_call, nested_call_of_an_async_tool]


def gathering(world: World, log: Log, work: Work, order: Sequence[str]) -> Tool[..., Any]:
    """A tool that does `work` for each of `order` side by side, then asks; it tells what came of each."""

    async def side_by_side() -> list[list[str]]:
        done = await asyncio.gather(*(work(log, what) for what in order))
        ask("go on?")
        return [list(pair) for pair in zip(order, done, strict=True)]

    return Tool(side_by_side, store=world.cold())


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
@pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]], ids="".join)
async def test_s46_gathered_work_that_arrives_in_another_order_gets_its_own_result(
    world: World, work: Work, order: list[str]
) -> None:
    log: Log = []
    paused = await gathering(world, log, work, ["a", "b", "c"])()
    done = await go_on(gathering(world, log, work, order), paused, {"go on?": True})
    assert done.output == [[what, f"{what} done"] for what in order]
    assert sorted(log) == ["a", "b", "c"]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
async def test_s46_gathered_work_with_equal_arguments_has_one_record_each(world: World, work: Work) -> None:
    log: Log = []
    paused = await gathering(world, log, work, ["a", "b", "a"])()
    assert Counter(log) == {"a": 2, "b": 1}
    done = await go_on(gathering(world, log, work, ["a", "a", "b"]), paused, {"go on?": True})
    assert done.output == [["a", "a done"], ["a", "a done"], ["b", "b done"]]
    assert Counter(log) == {"a": 2, "b": 1}


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
async def test_s46_gathered_work_whose_arguments_drift_is_refused_naming_key_and_goes_on_when_put_right(
    world: World, work: Work
) -> None:
    log: Log = []
    paused = await gathering(world, log, work, ["a", "b"])()
    refused = await go_on(gathering(world, log, work, ["a", "x"]), paused, {"go on?": True})
    assert (refused.status.code, refused.status.reason) == ("error", "replay_mismatch")
    assert "key=" in (refused.status.message or "")
    assert sorted(log) == ["a", "b"]
    done = await gathering(world, log, work, ["b", "a"])(parent_id=refused.run_id, resume={})
    assert done.output == [["b", "b done"], ["a", "a done"]]
    assert sorted(log) == ["a", "b"]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
async def test_s46_new_work_that_comes_before_recorded_work_waits_until_that_is_claimed(
    world: World, work: Work
) -> None:
    log: Log = []
    paused = await gathering(world, log, work, ["a", "b"])()
    done = await go_on(gathering(world, log, work, ["new", "b", "a"]), paused, {"go on?": True})
    assert done.output == [["new", "new done"], ["b", "b done"], ["a", "a done"]]
    assert log[2:] == ["new"]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
async def test_s46_work_that_one_branch_reaches_only_after_its_answer_does_not_take_another_branch_s_record(
    world: World, work: Work
) -> None:
    log: Log = []
    recorded = asyncio.Event()

    def fresh() -> Tool[..., Any]:
        async def asks_first() -> str:
            await recorded.wait()
            answer = ask("first?")
            return await work(log, f"after {answer}")

        async def works_at_once() -> str:
            result = await work(log, "at once")
            recorded.set()
            return result

        async def side_by_side() -> list[str]:
            return list(await asyncio.gather(asks_first(), works_at_once()))

        return Tool(side_by_side, store=world.cold())

    paused = await fresh()()
    assert log == ["at once"]
    done = await go_on(fresh(), paused, {"first?": "yes"})
    assert (done.status.code, done.output) == ("success", ["after yes done", "at once done"])
    assert log == ["at once", "after yes"]


@pytest.mark.parametrize("how", ["async", "sync", "in a thread"])
async def test_s46_with_a_key_gathered_steps_may_drift_and_the_recorded_result_stands(world: World, how: str) -> None:
    log: Log = []

    def fresh(order: str) -> Tool[..., Any]:
        def body(what: str, stamp: str) -> str:
            log.append(what)
            return f"{what} {stamp}"

        async def abody(what: str, stamp: str) -> str:
            return body(what, stamp)

        def key(what: str, stamp: str) -> str:
            return what

        effect, aeffect = step(key=key)(body), step(key=key)(abody)

        async def one(what: str) -> str:
            if how == "async":
                return await aeffect(what, uuid4().hex)
            if how == "sync":
                return effect(what, uuid4().hex)
            return await asyncio.to_thread(effect, what, uuid4().hex)

        async def side_by_side() -> dict[str, str]:
            done = await asyncio.gather(*(one(what) for what in order))
            results.append(dict(zip(order, done, strict=True)))
            ask("go on?")
            return results[-1]

        return Tool(side_by_side, store=world.cold())

    results: list[dict[str, str]] = []
    done = await go_on(fresh("ba"), await fresh("ab")(), {"go on?": True})
    assert done.output == results[0] == results[1]
    assert sorted(log) == ["a", "b"]


def drifting_step(log: Log) -> Callable[[], str]:
    @step
    def effect(stamp: str) -> str:
        log.append(stamp)
        return stamp

    return lambda: effect(uuid4().hex)


def drifting_call(log: Log) -> Callable[[], str]:
    def effect(stamp: str) -> str:
        log.append(stamp)
        return stamp

    return lambda: str(Tool(effect).run_sync(stamp=uuid4().hex).output)


@pytest.mark.parametrize("make", [drifting_step, drifting_call], ids=lambda make: make.__name__)
async def test_s46_in_the_handlers_own_thread_arguments_may_drift_and_the_recorded_result_stands(
    world: World, make: Callable[[Log], Callable[[], str]]
) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        work = make(log)

        def drifts() -> list[str]:
            first = work()
            suspend({"q": "go on?", "at": uuid4().hex})
            return [first, work()]

        return Tool(drifts, store=world.cold())

    done = await go_on(fresh(), await fresh()(), {"go on?": True})
    assert done.output == log
    assert len(log) == 2


async def test_s46_in_the_handlers_own_task_arguments_may_drift_and_the_recorded_result_stands(world: World) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        async def inner(stamp: str) -> str:
            log.append(stamp)
            return stamp

        async def drifts() -> list[str]:
            call = tool(inner)
            first = (await call(stamp=uuid4().hex)).output
            second = await step(inner)(uuid4().hex)
            suspend({"q": "go on?", "at": uuid4().hex})
            return [first, second, (await call(stamp=uuid4().hex)).output]

        return Tool(drifts, store=world.cold())

    done = await go_on(fresh(), await fresh()(), {"go on?": True})
    assert done.output == log
    assert len(log) == 3
