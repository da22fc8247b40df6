"""Small programs for properties: what a handler or an agent does, as data that can be generated and run."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from zlib import crc32

from hypothesis import strategies as st

from timbal import Agent, Tool, step, suspend
from timbal.testing import TestModel
from timbal.types.content import ToolUseContent
from timbal.types.message import Message

#: Few, so that equal questions, steps and calls are common.
LABELS = "ab"


@dataclass(frozen=True)
class Ask:
    """A question; the answer depends on the label only."""

    label: str


@dataclass(frozen=True)
class Do:
    """A step with an effect; `fails`: it raises after it, and the handler catches that."""

    label: str
    way: str = "async"
    fails: bool = False


@dataclass(frozen=True)
class Call:
    """A nested tool; what it is called depends on what it does, as it should."""

    body: "Body"
    threaded: bool = False
    tag: str = ""


@dataclass(frozen=True)
class Together:
    """Bodies side by side."""

    bodies: tuple["Body", ...]
    group: bool = False


@dataclass(frozen=True)
class Delegate:
    """A nested agent; each turn is the tools that its model asks for at once."""

    turns: "Turns"
    tag: str = ""


Op: TypeAlias = Ask | Do | Call | Together | Delegate
Body: TypeAlias = tuple[Op, ...]
#: For each turn of an agent, the bodies of the tools that its model asks for at once.
Turns: TypeAlias = tuple[tuple[Body, ...], ...]


@dataclass
class Effects:
    """What the runs of one program did, outside of any store."""

    done: list[str] = field(default_factory=list)


class StepError(Exception):
    """What a step fails with."""


def answer_to(label: str) -> Any:
    """The answers of the person: of several types, and falsy ones among them."""
    return {"a": "", "b": {"yes": [True]}}[label[0]]


# -- running ---------------------------------------------------------------------------------------------------------


def agent(store: Any, effects: Effects, turns: Turns, name: str = "root") -> Agent[Any]:
    """An agent whose model asks for the tools of each turn and then tells all results."""

    def model(messages: Any) -> Message | str:
        replies = sum(message.role == "assistant" for message in messages)
        effects.done.append(f"model {name} {replies}")
        if replies == len(turns):
            results = [str(part.content) for m in messages if m.role == "tool" for part in m.content]
            return " ".join(results) or "nothing"
        uses = [ToolUseContent(f"{name}-{replies}-{i}", f"tool_{replies}_{i}", {}) for i in range(len(turns[replies]))]
        return Message("assistant", list(uses), "tool_use")

    tools = [
        Tool(_handler(effects, body), name=f"tool_{t}_{i}")
        for t, turn in enumerate(turns)
        for i, body in enumerate(turn)
    ]
    return Agent(name, TestModel(handler=model), tools, max_iter=len(turns) + 1, store=store)


def _handler(effects: Effects, body: Body) -> Callable[..., Awaitable[Any]]:
    async def run() -> list[Any]:
        return await _body(effects, body)

    return run


async def _body(effects: Effects, body: Body) -> list[Any]:
    return [await _op(effects, op) for op in body]


async def _op(effects: Effects, op: Op) -> Any:
    match op:
        case Ask(label):
            return suspend({"q": label})
        case Do():
            return await _do(effects, op)
        case Call(body, threaded, _):
            handler = _threaded(effects, body) if threaded else _handler(effects, body)
            return (await Tool(handler, name=_name(op))()).output
        case Together(bodies, group):
            work = [_body(effects, body) for body in bodies]
            return await (_grouped(work) if group else asyncio.gather(*work))
        case Delegate(turns, _):
            return (await agent(None, effects, turns, _name(op))(prompt="go")).output.collect_text()


def _name(op: Op) -> str:
    return f"{type(op).__name__}_{crc32(repr(op).encode()):x}"


async def _grouped(work: list[Any]) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
    return [task.result() for task in tasks]


async def _do(effects: Effects, op: Do) -> str:
    async def asynchronously(label: str) -> str:
        await asyncio.sleep(0)
        return _effect(effects, op)

    def at_once(label: str) -> str:
        return _effect(effects, op)

    argument = f"{op.label}, which fails" if op.fails else op.label
    if op.way == "sync":
        # A sync step can't wait on the loop's thread while a TaskGroup cancels the task that another record of its name
        # belongs to: it is refused, naming key= (contract section 4). So these have names of their own.
        at_once.__name__ = f"at_once_{op.label}"
    try:
        if op.way == "sync":
            return step(at_once)(argument)
        if op.way == "thread":
            return await asyncio.to_thread(step(at_once), argument)
        return await step(asynchronously)(argument)
    except StepError as error:
        return f"caught {error}"


def _effect(effects: Effects, op: Do) -> str:
    effects.done.append(f"{'failed ' if op.fails else ''}step {op.label}")
    if op.fails:
        raise StepError(f"failure of {op.label}")
    return f"did {op.label}"


def _threaded(effects: Effects, body: Body) -> Callable[[], list[Any]]:
    """A plain function with the questions and steps of a body; what needs a loop is left out."""

    def run() -> list[Any]:
        out: list[Any] = []
        for op in body:
            if isinstance(op, Ask):
                out.append(suspend({"q": op.label}))
            elif isinstance(op, Do):
                try:
                    out.append(step(lambda label, op=op: _effect(effects, op))(op.label))
                except StepError as error:
                    out.append(f"caught {error}")
        return out

    return run


# -- what it should do -------------------------------------------------------------------------------------------------


def effects_of(turns: Turns, name: str = "root") -> Counter[str]:
    """Each model call and each step, exactly once."""
    done = Counter(f"model {name} {turn}" for turn in range(len(turns) + 1))
    return sum((_effects_of_body(body) for turn in turns for body in turn), done)


def _effects_of_body(body: Body) -> Counter[str]:
    return sum((_effects_of_op(op) for op in body), Counter())


def _effects_of_op(op: Op) -> Counter[str]:
    match op:
        case Ask():
            return Counter()
        case Do(label, _, fails):
            return Counter([f"{'failed ' if fails else ''}step {label}"])
        case Call(body, threaded, _):
            return _effects_of_body(tuple(one for one in body if isinstance(one, Do)) if threaded else body)
        case Together(bodies, _):
            return sum(map(_effects_of_body, bodies), Counter())
        case Delegate(turns, _):
            return effects_of(turns, _name(op))


# -- generating ------------------------------------------------------------------------------------------------------

labels = st.sampled_from(LABELS)
asks = st.builds(Ask, labels)
#: In the handler's own task. A caught failure is recorded with the next operation, so only there it is certain to be.
own_steps = st.builds(Do, labels, st.sampled_from(["async", "sync"]), st.booleans())
#: In tasks.
task_steps = st.builds(Do, labels, st.sampled_from(["async", "sync", "thread"]))


def together(bodies: tuple[Body, ...], group: bool) -> Together:
    """Bodies side by side. Equal operations in tasks are told apart by their arrival alone, so in bodies of several
    operations they have to differ (contract section 4)."""
    plain = Together(bodies, group)
    return _tagged(plain, "") if any(len(body) > 1 for body in bodies) else plain


def _tagged(op: Together, tag: str) -> Together:
    bodies = [[_tag(one, f"{tag}{i}{j}") for j, one in enumerate(body)] for i, body in enumerate(op.bodies)]
    return replace(op, bodies=tuple(map(tuple, bodies)))


def _tag(op: Op, tag: str) -> Op:
    match op:
        case Ask() | Do():
            return replace(op, label=op.label[0] + tag)
        case Call() | Delegate():
            return replace(op, tag=tag)
        case Together():
            return _tagged(op, tag)


def _bodies(ops: st.SearchStrategy[Op], least: int = 0, most: int = 4) -> st.SearchStrategy[Body]:
    return st.lists(ops, min_size=least, max_size=most).map(tuple)


def _ops(depth: int, in_task: bool) -> st.SearchStrategy[Op]:
    leaves: list[st.SearchStrategy[Op]] = [asks, task_steps if in_task else own_steps]
    if depth == 0:
        return st.one_of(leaves)
    own, tasks = _bodies(_ops(depth - 1, False), most=3), _bodies(_ops(depth - 1, True), most=2)
    turns = st.lists(st.lists(own, min_size=1, max_size=2).map(tuple), max_size=2).map(tuple)
    return st.one_of(
        *leaves,
        *leaves,
        st.builds(Call, own, st.booleans()),
        st.builds(together, st.lists(tasks, min_size=2, max_size=3).map(tuple), st.booleans()),
        st.builds(Delegate, turns),
    )


def programs(depth: int = 2) -> st.SearchStrategy[Turns]:
    """The turns of an agent."""
    turn = st.lists(_bodies(_ops(depth, False)), min_size=1, max_size=3).map(tuple)
    return st.lists(turn, min_size=1, max_size=2).map(tuple)
