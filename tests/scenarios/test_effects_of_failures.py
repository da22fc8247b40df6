"""S11: steps that fail: what was caught stays recorded, what ended the handler is tried again, and nothing else is."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.scenarios.effects_tools import Log, World, ask, async_step, go_on, sync_step, tool
from timbal import Tool, idempotency_key, step
from timbal.errors import StepFailed


class DeclinedError(Exception):
    """An exception that needs more than a message."""

    def __init__(self, card: str, code: int) -> None:
        super().__init__(f"{card} was declined with {code}")
        self.card, self.code = card, code


FAILURES: dict[str, Callable[[], Exception]] = {
    "a builtin": lambda: ValueError("no funds"),
    "one whose text is not its argument": lambda: KeyError("account"),
    "one with two arguments": lambda: FileNotFoundError(2, "No such file or directory"),
    "one that takes more than a message": lambda: json.JSONDecodeError("Expecting value", "{", 1),
    "one of the program's own": lambda: DeclinedError("4000", 51),
    "one without arguments": lambda: TimeoutError(),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_s11_a_failure_that_was_caught_is_raised_again_as_the_same_class_and_the_step_does_not_run_again(
    world: World, case: str
) -> None:
    log: Log = []
    caught: list[tuple[type, str]] = []

    def fresh() -> Tool[..., Any]:
        @step
        def charge() -> None:
            log.append("charge")
            error = FAILURES[case]()
            raise error

        def order() -> str:
            try:
                charge()
            except Exception as error:
                caught.append((type(error), str(error)))
            return f"then {ask('what now?')}"

        return Tool(order, store=world.cold())

    done = await go_on(fresh(), await fresh()(), {"what now?": "cash"})
    assert (done.output, log) == ("then cash", ["charge"])
    assert caught == [(type(FAILURES[case]()), str(FAILURES[case]()))] * 2


async def in_its_own_task(question: str) -> str:
    return str(ask(question))


async def in_tasks(question: str) -> str:
    return "".join(map(str, await asyncio.gather(in_its_own_task(question), asyncio.sleep(0, ""))))


async def in_a_nested_tool(question: str) -> str:
    def inner() -> str:
        return str(ask(question))

    return str((await tool(inner)()).output)


async def in_a_nested_tool_in_a_task(question: str) -> str:
    return "".join(map(str, await asyncio.gather(in_a_nested_tool(question), asyncio.sleep(0, ""))))


NEXT = [in_its_own_task, in_tasks, in_a_nested_tool, in_a_nested_tool_in_a_task]


@pytest.mark.parametrize("way", ["sync", "async", "nested call"])
@pytest.mark.parametrize("then", NEXT, ids=lambda then: then.__name__)
async def test_s11_a_caught_failure_is_recorded_with_the_next_operation_wherever_that_is(
    world: World, then: Callable[[str], Awaitable[str]], way: str
) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        def fails() -> None:
            log.append("failed")
            raise ConnectionError("the line is bad")

        async def fails_later() -> None:
            fails()

        async def order() -> str:
            first = ask("first?")
            try:
                if way == "sync":
                    step(fails)()
                elif way == "async":
                    await step(fails_later)()
                else:
                    (await tool(fails)()).raise_for_status()
            except ConnectionError as error:
                return f"{first} {error} {await then('second?')} {await then('third?')}"
            return "it did not fail"

        return Tool(order, store=world.cold())

    out = await fresh()()
    for question in ("first?", "second?", "third?"):
        out = await go_on(fresh(), out, {question: question[0]})
    assert (out.output, log) == ("f the line is bad s t", ["failed"])


async def test_s11_a_caught_failure_whose_class_cannot_be_imported_comes_back_as_step_failed(world: World) -> None:
    class HiddenError(Exception):
        pass

    caught: list[Exception] = []

    def fresh() -> Tool[..., Any]:
        @step
        async def charge() -> None:
            raise HiddenError("out of sight")

        async def order() -> str:
            try:
                await charge()
            except Exception as error:
                caught.append(error)
            return str(ask("what now?"))

        return Tool(order, store=world.cold())

    await go_on(fresh(), await fresh()(), {"what now?": "cash"})
    first, second = caught
    assert isinstance(first, HiddenError)
    assert isinstance(second, StepFailed)
    assert (second.type, second.message) == ("HiddenError", "out of sight")


def raise_it(error: Exception) -> None:
    raise error


def wrap_it(error: Exception) -> None:
    raise RuntimeError("the order failed") from error


def replace_it(error: Exception) -> None:
    raise RuntimeError("the order failed")


@pytest.mark.parametrize("leave", [raise_it, wrap_it, replace_it], ids=lambda leave: leave.__name__)
@pytest.mark.parametrize("way", ["sync", "async", "gathered"])
async def test_s11_a_failure_that_ends_the_handler_leaves_the_step_open_and_resume_tries_only_that_again(
    world: World, way: str, leave: Callable[[Exception], None]
) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        def flaky(what: str) -> str:
            log.append(what)
            if log.count(what) < 3:
                raise ConnectionError("the line is bad")
            return what

        @step
        async def charge(what: str) -> str:
            return flaky(what)

        async def order() -> str:
            effect = async_step(log)
            await effect("reserve")
            answer = ask("how?")
            done = ""
            try:
                if way == "sync":
                    done = step(flaky)("charge")
                elif way == "async":
                    done = await charge("charge")
                else:
                    _, done = await asyncio.gather(effect("mail"), charge("charge"))
            except ConnectionError as error:
                leave(error)
            return f"{done} {answer} {await effect('ship')}"

        return Tool(order, store=world.cold())

    paused = await fresh()()
    failed = await go_on(fresh(), paused, {"how?": "by card"})
    assert (failed.status.code, failed.status.reason) == ("error", None)
    again = await fresh()(parent_id=failed.run_id, resume={})
    assert again.status.code == "error"
    done = await fresh()(parent_id=paused.run_id, resume={})
    assert done.output == "charge by card ship"
    assert sorted(log) == sorted(["reserve", *["mail"] * (way == "gathered"), *["charge"] * 3, "ship"])


@pytest.mark.parametrize("same_step", [True, False], ids=["with the same step", "with another step"])
async def test_s11_a_failure_that_was_caught_and_made_up_for_stays_when_the_handler_is_gone_on_with(
    world: World, same_step: bool
) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        def order() -> str:
            effect = sync_step(log)
            clean_up = effect if same_step else step(lambda what: log.append(what))

            @step
            def charge() -> None:
                log.append("charge")
                if log.count("charge") == 1:
                    raise ConnectionError("the line is bad")

            try:
                charge()
            except ConnectionError:
                clean_up("apologise")
                raise
            return effect("ship")

        return Tool(order, store=world.cold())

    failed = await fresh()()
    done = await fresh()(parent_id=failed.run_id, resume={})
    assert (done.status.code, (done.error or {})["type"], log) == ("error", "ConnectionError", ["charge", "apologise"])


async def test_s11_what_a_failed_step_had_done_in_steps_of_its_own_is_not_done_again(world: World) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        inner = sync_step(log)

        @step
        def outer() -> str:
            inner("inner")
            log.append("outer")
            if log.count("outer") == 1:
                raise ConnectionError("the line is bad")
            return "done"

        def order() -> str:
            return outer()

        return Tool(order, store=world.cold())

    failed = await fresh()()
    assert failed.status.code == "error"
    done = await fresh()(parent_id=failed.run_id, resume={})
    assert (done.output, log) == ("done", ["inner", "outer", "outer"])


async def test_s11_idempotency_keys_stay_over_attempts_and_differ_between_steps_calls_and_executions(
    world: World,
) -> None:
    keys: dict[str, list[str]] = {}

    def note(what: str) -> str:
        keys.setdefault(what, []).append(idempotency_key())
        return keys[what][-1]

    def fresh() -> Tool[..., Any]:
        @step
        def pay(what: str, fail: bool = False) -> str:
            key = note(what)
            if fail and len(keys[what]) == 1:
                raise ConnectionError("the line is bad")
            return key

        def order() -> list[str]:
            note("handler")
            got = [pay("one"), pay("one"), pay("two")]
            ask("go on?")
            return [*got, pay("flaky", fail=True)]

        return Tool(order, store=world.cold())

    failed = await go_on(fresh(), await fresh()(), {"go on?": True})
    done = await fresh()(parent_id=failed.run_id, resume={})
    assert len(set(keys["handler"])) == 1
    assert len(keys["handler"]) == 3
    assert len(keys["flaky"]) == 2
    assert len(set(keys["flaky"])) == 1
    assert done.output == [*keys["one"], *keys["two"], keys["flaky"][0]]
    assert len({*done.output, *keys["handler"]}) == 5
    before = set(done.output)
    keys.clear()
    await fresh()()
    assert not before & {*keys["one"], *keys["two"]}
