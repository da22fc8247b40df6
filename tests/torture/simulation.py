"""Many executions over one store in memory, where everything fails that can: a seed is one schedule, and replays."""

import asyncio
import random
import uuid
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from tests.torture.loop import run_jumping
from tests.torture.table import Counts
from timbal import Agent, Tool, idempotency_key, step, suspend
from timbal.core.codec import decode_all
from timbal.core.facts import Ended, Returned, Settled
from timbal.errors import ResumeRejected, RunExists, RunNotFound, StoreError
from timbal.ports import GONE, Lease
from timbal.state import current
from timbal.stores import MemoryStore
from timbal.stores.waiting import failed, wait
from timbal.testing import TestModel
from timbal.types.approval import Cancel, Default
from timbal.types.content import ToolUseContent
from timbal.types.events import ApprovalEvent
from timbal.types.message import Message
from timbal.worker import Worker

#: How long things fail, in the loop's own seconds; then everything works, and all has to come to its end.
TROUBLE, CALM = 4.0, 60.0
NAMES = ("asks", "gathers", "gated", "clerk")
_FAILING = ("commit", "load", "history", "settle", "acquire", "release", "due")


class Host:
    """A process of the simulation: its calls of the store fail and take their time, and it may die.

    After its death no call of it has an effect; its leases are as those of a process that is gone.
    """

    def __init__(self, world: "World") -> None:
        self.world = world
        self.dead = False
        self.leases: list[Lease] = []

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.world.store, name)
        return self._troubled(name, call) if name in _FAILING else call

    def wait(self, ref: Any) -> Future[None]:
        """As that of stores on a disk: after a while it looks for itself."""
        future: Future[None] = Future()

        def wake(_: Any = None) -> None:
            if not future.done():
                future.set_result(None)

        self.world.store.wait(ref).add_done_callback(wake)
        asyncio.get_running_loop().call_later(1.0, wake)
        return future

    def _troubled(self, name: str, call: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
        def troubled(*arguments: Any, **named: Any) -> Future[Any]:
            world = self.world
            if self.dead or world.happens(0.08):
                return failed(StoreError("the process is gone" if self.dead else "the store has failed"))
            future = call(*arguments, **named)
            self._remember(name, arguments, future)
            if world.happens(0.05) and self.leases:
                self._lose(world.chance.choice(self.leases))
            if world.happens(0.03):
                self.die()
            if self._is_gone():
                return failed(StoreError("the process is gone"))  # it was kept, and nobody has heard of it
            return world.late(future)

        return troubled

    def _remember(self, name: str, arguments: tuple[Any, ...], future: Future[Any]) -> None:
        if future.exception() is not None:
            return
        result = future.result()
        lease = arguments[0] if name == "commit" else getattr(result, "lease", result)
        if isinstance(lease, Lease) and lease not in self.leases:
            self.leases.append(lease)
        if name == "settle" and not result.conflict:
            for settlement in arguments[1]:
                for fact in decode_all([settlement.body]):
                    if isinstance(fact, Settled) and fact.state == "answered":
                        self.world.accepted.append((arguments[0].run_id, fact.id, fact.value))

    def _lose(self, lease: Lease) -> None:
        """It shows no sign of life for too long, and works on."""
        lease.holder = GONE

    def _is_gone(self) -> bool:
        return self.dead

    def die(self) -> None:
        self.dead = True
        for lease in self.leases:
            self._lose(lease)


class World:
    """The store that all processes share, and what has really happened."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = MemoryStore()
        self.trouble = True
        self.effects: dict[str, list[str]] = defaultdict(list)  # attempts by idempotency key
        self.keys: dict[tuple[str, str], set[str]] = defaultdict(set)  # keys by run and name
        self.accepted: list[tuple[str, str, Any]] = []  # run, question, value
        self.got: dict[tuple[str, str], set[Any]] = defaultdict(set)
        self.again = 0

    def happens(self, how_often: float) -> bool:
        return self.trouble and self.chance.random() < how_often

    def late(self, future: Future[Any]) -> Future[Any]:
        """The same result, some turns of the loop later."""
        turns = self.chance.choice([0, 0, 0, 1, 2, 5])
        if not turns:
            return future
        later: Future[Any] = Future()

        def turn(left: int) -> None:
            if left:
                asyncio.get_running_loop().call_soon(turn, left - 1)
            elif (error := future.exception()) is not None:
                later.set_exception(error)
            else:
                later.set_result(future.result())

        turn(turns)
        return later

    def effect(self, host: Host, name: str) -> str:
        """What can't be undone; a process that is gone does nothing any more."""
        if host.dead:
            raise StoreError("the process is gone")
        run = _run_of_this_code()
        key, lease = idempotency_key(), run.lease
        execution = lease.ref
        attempt = f"{name}.{sum(map(len, self.effects.values()))}"
        if execution.lease is lease and key in self._recorded_keys(execution):
            self.again += 1
        self.effects[key].append(attempt)
        self.keys[run.execution_id, name].add(key)
        return attempt

    def _recorded_keys(self, execution: Any) -> set[str]:
        recorded = set(recorded_attempts(execution.all_records()))
        return {key for key, attempts in self.effects.items() if recorded.intersection(attempts)}


def _run_of_this_code() -> Any:
    scope: Any = current.get()
    return scope.frame.run


def recorded_attempts(records: Any) -> list[Any]:
    return [f.output for f in decode_all(records) if isinstance(f, Returned) and f.kind == "step" and f.error is None]


def runnables(world: World, host: Host) -> dict[str, Any]:
    """The program, as each process has it."""
    store: Any = host

    @step
    async def effect(name: str) -> str:
        await asyncio.sleep(world.chance.choice([0, 0, 0.01]))
        attempt = world.effect(host, name)
        await asyncio.sleep(world.chance.choice([0, 0, 0.01]))
        return attempt

    @step(key=lambda name: name)
    async def keyed(name: str) -> str:
        await asyncio.sleep(world.chance.choice([0, 0.01]))
        return world.effect(host, name)

    def ask(q: str, key: str | None = None, expires_in: float | None = None) -> None:
        value = suspend({"q": q}, key=key, expires_in=expires_in, on_expiry=Default("too late"))
        world.got[_run_of_this_code().execution_id, q].add(value)

    async def asks() -> str:
        await effect("before")
        ask("first")
        await effect("between")
        ask("second", expires_in=0.5)
        await effect("after")
        return "done"

    async def branch(name: str) -> None:
        await keyed(f"{name}-before")
        ask(name, name)
        await keyed(f"{name}-after")

    async def gathers() -> str:
        await asyncio.gather(branch("left"), branch("right"), keyed("alone"))
        await keyed("last")
        return "done"

    async def gated(amount: int = 10) -> str:
        await effect("paid")
        return "done"

    async def order(name: str) -> str:
        await effect(f"{name}-before")
        ask(name)
        await effect(f"{name}-after")
        return "ordered"

    uses = [ToolUseContent(name, "order", {"name": name}) for name in ("one", "two")]
    clerk: Agent[str] = Agent(
        "clerk", TestModel([Message("assistant", uses, "tool_use"), "done"]), [order], store=store
    )
    made: list[Any] = [Tool(asks, store=store), Tool(gathers, store=store), clerk]
    made.append(Tool(gated, store=store, requires_approval=True))
    return {runnable.name: runnable for runnable in made}


def simulate(seed: int) -> Counts:
    """One schedule, the same for the same seed."""
    return run_jumping(_simulate(seed))


async def _simulate(seed: int) -> Counts:
    world = World(seed)
    runs = {uuid.UUID(int=world.chance.getrandbits(128)).hex: world.chance.choice(NAMES) for _ in range(8)}
    people = [asyncio.ensure_future(_person(world, runs)) for _ in range(6)]
    workers = [asyncio.ensure_future(_worker(world)) for _ in range(2)]
    await asyncio.sleep(TROUBLE)
    world.trouble = False
    await asyncio.gather(*people)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    open_still = await _calm(world, runs)
    return await _judge(world, runs, open_still, f"simulation, seed {seed}")


async def _person(world: World, runs: dict[str, str]) -> None:
    """Begins, answers, goes on and cancels, by chance, in a process that is replaced when it dies."""
    host, chance = Host(world), world.chance
    while world.trouble:
        host = Host(world) if host.dead else host
        run_id, name = chance.choice(list(runs.items()))
        with suppress(StoreError, ResumeRejected):
            await _touch(world, host, run_id, name)
        await asyncio.sleep(chance.random() * 0.3)


async def _touch(world: World, host: Host, run_id: str, name: str) -> None:
    chance, runnable = world.chance, runnables(world, host)[name]
    arguments = {"prompt": "go"} if name == "clerk" else {}
    waiting = [item for item in (await world.store.pending()).items if item.run_id == run_id]
    what = chance.choice(["begin", "answer", "answer", "answer", "in the store", "go on", "cancel"])
    with suppress(RunExists, RunNotFound):
        if what == "begin":
            await runnable(**arguments, run_id=run_id)
        elif what == "go on":
            await runnable(parent_id=run_id, resume={})
        elif waiting:
            item = chance.choice(waiting)
            answer = chance.random() < 0.9 if isinstance(item.event, ApprovalEvent) else f"a{chance.randint(0, 2)}"
            given: Any = Cancel("no") if what == "cancel" and chance.random() < 0.1 else answer
            if what == "in the store":
                (fact,) = await host.answer(run_id, {item.id: given})
                assert fact["state"] in ("accepted", "already_settled"), fact
            else:
                await runnable(parent_id=run_id, resume={item.id: given})


async def _worker(world: World) -> None:
    """Works, in a process that is replaced when it dies."""
    while True:
        host = Host(world)
        worker = Worker(list(runnables(world, host).values()), host, poll_seconds=0.1, max_attempts=10**9)
        working = asyncio.ensure_future(worker.run())
        try:
            while not host.dead:  # noqa: ASYNC110  (time costs nothing here)
                await asyncio.sleep(0.1)
        finally:
            await worker.stop(1.0)
            await working


async def _calm(world: World, runs: dict[str, str]) -> set[str]:
    """Nothing fails any more: answer what is asked, let a worker go on; gives the runs that never came to an end."""
    host = Host(world)
    program = runnables(world, host)
    worker = Worker(list(program.values()), host, poll_seconds=0.1, max_attempts=10**9)
    working = asyncio.ensure_future(worker.run())
    loop = asyncio.get_running_loop()
    until = loop.time() + CALM
    left = set(runs)
    while left and loop.time() < until:
        for run_id in sorted(left):
            if await wait(world.store.load(run_id)) is None:
                await program[runs[run_id]](**({"prompt": "go"} if runs[run_id] == "clerk" else {}), run_id=run_id)
        for item in (await world.store.pending()).items:
            with suppress(ResumeRejected):
                await host.answer(item.run_id, {item.id: True if isinstance(item.event, ApprovalEvent) else "a0"})
        await asyncio.sleep(1.0)
        left = {run_id for run_id in left if not await _is_over(world, run_id)}
        for run_id in sorted(left):
            if (await _last(world, run_id)) == "error":  # it failed with the store: somebody has to go on with it
                await program[runs[run_id]](parent_id=run_id, resume={})
    await worker.stop(1.0)
    await working
    return left


async def _last(world: World, run_id: str) -> str | None:
    ended = [fact for fact in (await world.store.get(run_id)).facts if isinstance(fact, Ended)]
    return ended[-1].code if ended else None


async def _is_over(world: World, run_id: str) -> bool:
    execution: Any = await wait(world.store.load(run_id))
    if execution is None or execution.held or execution.ref.lease is not None or execution.ref.due_at is not None:
        return False
    return await _last(world, run_id) in ("success", "cancelled") and not execution.ref.has_open_questions()


async def _judge(world: World, runs: dict[str, str], left: set[str], where: str) -> Counts:
    counts = Counts(tried=1, stuck=len(left), again=world.again)
    values: dict[tuple[str, str], Any] = {}
    for run_id in runs:
        stored = await wait(world.store.load(run_id))
        assert stored is not None
        facts = list(decode_all(stored.records))
        values.update({(run_id, fact.id): fact.value for fact in facts if isinstance(fact, Settled)})
        recorded = set(recorded_attempts(stored.records))
        keys = {key for (run, _), keys in world.keys.items() if run == run_id for key in keys}
        for key in keys:
            kept = recorded.intersection(world.effects[key])
            counts.doubled += max(0, len(kept) - 1)
            counts.cut_off += len(world.effects[key]) - len(kept)
    counts.doubled += sum(len(keys) - 1 for keys in world.keys.values())
    counts.lost += sum(values.get((run_id, id)) != value for run_id, id, value in world.accepted)
    counts.lost += sum(len(got) != 1 for got in world.got.values())
    if counts.stuck or counts.again or counts.doubled or counts.lost:
        counts.wrong.append(where)
    return counts
