"""Whatever the code does with the signal of a pause, the run pauses, and asks each question once (S4)."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import KINDS, answers, asked, ids, listen, stands, tool
from timbal import Tool, suspend
from timbal.stores.base import BaseStore

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)
SWALLOWED = "swallowed"

Ask = Callable[[], str]


def ask() -> str:
    return str(suspend({"question": "Go on?"}))


# -- ways to catch it in plain code ------------------------------------------------------------------------------------


def except_exception() -> str:
    try:
        return ask()
    except Exception:
        return SWALLOWED


def bare_except() -> str:
    try:
        return ask()
    except:  # noqa: E722
        return SWALLOWED


def except_base_exception() -> str:
    try:
        return ask()
    except BaseException:
        return SWALLOWED


def finally_return() -> str:
    result = SWALLOWED
    try:
        result = ask()
    finally:
        return result  # noqa: B012


def raise_another() -> str:
    try:
        return ask()
    except BaseException as signal:
        raise ValueError("no answer") from signal


def retry_decorator() -> str:
    def retrying(function: Ask) -> Ask:
        def attempts() -> str:
            for _ in range(5):
                try:
                    return function()
                except BaseException:
                    continue
            return SWALLOWED

        return attempts

    return retrying(ask)()


def suppress() -> str:
    with contextlib.suppress(BaseException):
        return ask()
    return SWALLOWED


class Swallower(contextlib.AbstractContextManager[None, bool]):
    def __exit__(self, *_: object) -> bool:
        return True

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> bool:
        return True


def context_manager() -> str:
    with Swallower():
        return ask()
    return SWALLOWED


def exit_stack() -> str:
    with contextlib.ExitStack[bool]() as stack:
        stack.enter_context(Swallower())
        return ask()
    return SWALLOWED


def except_star() -> str:
    answer = SWALLOWED
    try:
        answer = ask()
    except* BaseException:
        pass
    return answer


def ask_something_else_instead() -> str:
    try:
        return ask()
    except BaseException:
        return str(suspend({"question": "Shall I stop?"}))


def in_a_generator() -> str:
    def answers_of() -> Any:
        try:
            answer = ask()
        except BaseException:
            answer = SWALLOWED
        yield answer

    return str(next(answers_of()))


PLAIN: dict[str, Ask] = {
    "except Exception": except_exception,
    "bare except": bare_except,
    "except BaseException": except_base_exception,
    "finally: return": finally_return,
    "raise another": raise_another,
    "retry decorator": retry_decorator,
    "contextlib.suppress": suppress,
    "a context manager": context_manager,
    "an exit stack": exit_stack,
    "except*": except_star,
    "ask something else instead": ask_something_else_instead,
    "in a generator": in_a_generator,
}


# -- ways to catch it in async code ------------------------------------------------------------------------------------


async def asking() -> str:
    return ask()


async def wait_for() -> str:
    return await asyncio.wait_for(asking(), 30)


async def wait_for_and_catch() -> str:
    try:
        return await asyncio.wait_for(asking(), 30)
    except BaseException:
        return SWALLOWED


async def timeout() -> str:
    async with asyncio.timeout(30):
        await asyncio.sleep(0)
        return ask()


async def gather() -> str:
    return (await asyncio.gather(asking()))[0]


async def gather_with_exceptions() -> str:
    found = await asyncio.gather(asking(), return_exceptions=True)
    return found[0] if isinstance(found[0], str) else SWALLOWED


async def gather_and_catch() -> str:
    try:
        return (await asyncio.gather(asking(), asyncio.sleep(0, SWALLOWED)))[0]
    except BaseException:
        return SWALLOWED


async def task_group() -> str:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(asking())
    return task.result()


async def task_group_and_catch() -> str:
    try:
        return await task_group()
    except BaseException:
        return SWALLOWED


async def anyio_task_group() -> str:
    found = []

    async def find() -> None:
        found.append(ask())

    async with anyio.create_task_group() as group:
        group.start_soon(find)
    return found[0]


async def a_task() -> str:
    return await asyncio.create_task(asking())


async def a_task_that_catches() -> str:
    async def catching() -> str:
        return except_base_exception()

    return await asyncio.create_task(catching())


async def a_task_that_is_only_waited_for() -> str:
    task = asyncio.create_task(asking())
    await asyncio.wait([task])
    return task.result() if task.exception() is None else SWALLOWED


async def a_task_whose_end_is_called_back() -> str:
    ended = asyncio.Event()
    task = asyncio.create_task(asking())
    task.add_done_callback(lambda _: ended.set())
    await ended.wait()
    return task.result() if task.exception() is None else SWALLOWED


async def as_completed() -> str:
    for done in asyncio.as_completed([asking()]):
        with contextlib.suppress(BaseException):
            return await done
    return SWALLOWED


async def shield() -> str:
    return await asyncio.shield(asking())


async def a_thread() -> str:
    return await asyncio.to_thread(ask)


async def a_thread_that_catches() -> str:
    return await asyncio.to_thread(except_base_exception)


async def a_thread_and_catch() -> str:
    try:
        return await asyncio.to_thread(ask)
    except BaseException:
        return SWALLOWED


async def async_context_manager() -> str:
    async with Swallower():
        return ask()
    return SWALLOWED


async def ask_something_else_after_a_task() -> str:
    try:
        return await asyncio.create_task(asking())
    except BaseException:
        return str(suspend({"question": "Shall I stop?"}))


async def ask_again_in_another_task() -> str:
    for _ in range(3):
        with contextlib.suppress(BaseException):
            return await asyncio.create_task(asking())
    return SWALLOWED


async def a_called_tool() -> str:
    try:
        return str((await Tool(ask)()).output)
    except BaseException:
        return SWALLOWED


async def a_called_tool_in_a_task() -> str:
    async def calling() -> str:
        return str((await Tool(ask)()).output)

    found = await asyncio.gather(calling(), return_exceptions=True)
    return found[0] if isinstance(found[0], str) else SWALLOWED


ASYNC: list[Callable[[], Awaitable[str]]] = [
    wait_for,
    wait_for_and_catch,
    timeout,
    gather,
    gather_with_exceptions,
    gather_and_catch,
    task_group,
    task_group_and_catch,
    anyio_task_group,
    a_task,
    a_task_that_catches,
    a_task_that_is_only_waited_for,
    a_task_whose_end_is_called_back,
    as_completed,
    shield,
    a_thread,
    a_thread_that_catches,
    a_thread_and_catch,
    async_context_manager,
    ask_something_else_after_a_task,
    ask_again_in_another_task,
    a_called_tool,
    a_called_tool_in_a_task,
]


# -- the scenario ------------------------------------------------------------------------------------------------------


async def assert_asks_once_and_goes_on(world: World, make: Callable[[BaseStore], Tool[..., Any]]) -> None:
    heard, output = await listen(make(world.store)())
    assert (stands(output), len(output.pending)) == (PAUSED, 1)
    assert [e.payload for e in asked(heard)] == [{"question": "Go on?"}]
    again, same = await listen(make(world.cold())(parent_id=output.run_id, resume={}))
    assert (stands(same), ids(same), asked(again)) == (PAUSED, ids(output), [])
    more, output = await listen(make(world.cold())(parent_id=output.run_id, resume=answers(output, "yes")))
    assert (stands(output), output.output, asked(more)) == (DONE, "yes", [])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("caught", PLAIN)
async def test_s4_a_pause_that_plain_code_catches_is_still_a_pause(world: World, kind: str, caught: str) -> None:
    await assert_asks_once_and_goes_on(world, lambda store: tool(kind, PLAIN[caught], store))


@pytest.mark.parametrize("caught", ASYNC, ids=lambda function: function.__name__)
@pytest.mark.parametrize("kind", ["async", "async generator"])
async def test_s4_a_pause_that_async_code_catches_is_still_a_pause(
    world: World, kind: str, caught: Callable[[], Awaitable[str]]
) -> None:
    async def handler() -> str:
        return await caught()

    async def generator() -> Any:
        yield await caught()

    chosen = handler if kind == "async" else generator
    await assert_asks_once_and_goes_on(world, lambda store: Tool(chosen, name="handler", store=store))
