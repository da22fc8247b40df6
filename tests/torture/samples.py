"""Handlers to be killed in: between any two lines of this file."""

import asyncio
from typing import Any

from tests.torture.diary import Diary
from timbal import Agent, Tool, step, suspend
from timbal.ports import Store
from timbal.runnables.base import Runnable
from timbal.testing import TestModel
from timbal.types.content import ToolUseContent
from timbal.types.message import Message


def steps(diary: Diary, store: Store) -> Runnable:
    @step
    def reserve() -> str:
        attempt = diary.effect("reserve")
        return attempt

    @step
    async def charge() -> str:
        await asyncio.sleep(0)
        attempt = diary.effect("charge")
        return attempt

    async def steps() -> str:
        reserve()
        await charge()
        return "done"

    return Tool(steps, store=store)


def asks(diary: Diary, store: Store) -> Runnable:
    @step
    async def effect(name: str) -> str:
        attempt = diary.effect(name)
        return attempt

    async def asks() -> str:
        await effect("before")
        first = suspend({"q": "first"})
        diary.write("got", q="first", value=first)
        await effect("between")
        second = suspend({"q": "second"}, response_type=str)
        diary.write("got", q="second", value=second)
        await effect("after")
        return "done"

    return Tool(asks, store=store)


def waits(diary: Diary, store: Store) -> Runnable:
    @step
    def effect(name: str) -> str:
        attempt = diary.effect(name)
        return attempt

    def waits() -> str:
        effect("before")
        value = suspend({"q": "sync"})
        diary.write("got", q="sync", value=value)
        effect("after")
        return "done"

    return Tool(waits, store=store)


def gathers(diary: Diary, store: Store) -> Runnable:
    @step(key=lambda name: name)
    async def effect(name: str) -> str:
        await asyncio.sleep(0)
        attempt = diary.effect(name)
        return attempt

    async def branch(name: str) -> None:
        await effect(f"{name}-before")
        value = suspend({"q": name}, key=name)
        diary.write("got", q=name, value=value)
        await effect(f"{name}-after")

    async def gathers() -> str:
        await asyncio.gather(branch("left"), branch("right"), effect("alone"))
        await effect("last")
        return "done"

    return Tool(gathers, store=store)


def delegates(diary: Diary, store: Store) -> Runnable:
    @step
    async def effect(name: str) -> str:
        attempt = diary.effect(name)
        return attempt

    async def look_up(name: str) -> str:
        await effect(name)
        return "found"

    async def order(name: str) -> str:
        await effect(f"{name}-before")
        value = suspend({"q": name})
        diary.write("got", q=name, value=value)
        await effect(f"{name}-after")
        return "ordered"

    inner: Agent[str] = Agent("inner", TestModel([_asks_for(order={"name": "inside"}), "inner is done"]), [order])
    first = _asks_for(look_up={"name": "looked"}, inner={"prompt": "go"})
    turns: list[str | Message] = [first, _asks_for(order={"name": "outside"}), "done"]
    return Agent("delegates", TestModel(turns), [look_up, order, inner], store=store)


def gated(diary: Diary, store: Store) -> Runnable:
    @step
    async def effect(name: str) -> str:
        attempt = diary.effect(name)
        return attempt

    async def gated(amount: int = 10) -> str:
        await effect("checked")
        await effect("paid")
        return "done"

    return Tool(gated, store=store, requires_approval=True)


def _asks_for(**calls: dict[str, Any]) -> Message:
    uses = [ToolUseContent(name, name, arguments) for name, arguments in calls.items()]
    return Message("assistant", uses, "tool_use")


#: Each with its input, and what it has to have done in the end.
SAMPLES: dict[str, tuple[Any, dict[str, Any], set[str]]] = {
    "steps": (steps, {}, {"reserve", "charge"}),
    "asks": (asks, {}, {"before", "between", "after"}),
    "waits": (waits, {}, {"before", "after"}),
    "gathers": (gathers, {}, {"left-before", "left-after", "right-before", "right-after", "alone", "last"}),
    "delegates": (
        delegates,
        {"prompt": "go"},
        {"looked", "inside-before", "inside-after", "outside-before", "outside-after"},
    ),
    "gated": (gated, {}, {"checked", "paid"}),
}
