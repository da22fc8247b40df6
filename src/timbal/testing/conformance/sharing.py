"""A store object works from any thread and loop, and other processes on the same data see the same rules."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ...core.facts import Noted
from ...errors import StoreError
from ...stores.base import BaseStore
from ...stores.waiting import wait
from .facts import PATIENCE, answer, begin, done, going_on, load, notes
from .facts import settled as settled_in
from .stores import OnAStore, Open, Stores

PROCESSES = 3
ANSWERERS = 6


class Sharing(OnAStore):
    """Threads, loops, processes and forks."""

    def test_one_object_serves_several_loops_and_threads(self, store: BaseStore) -> None:
        works = [begin(store) for _ in range(6)]

        async def on_a_loop(i: int) -> None:
            await asyncio.gather(*(wait(works[i].commit(Noted("/n", str(n)))) for n in range(20)))
            await store.pending()

        def in_a_thread(i: int) -> None:
            for n in range(20):
                works[i].note(str(n))

        with ThreadPoolExecutor(6) as threads:
            jobs = [threads.submit(lambda i=i: asyncio.run(on_a_loop(i))) for i in range(3)]  # type: ignore[misc]
            jobs += [threads.submit(in_a_thread, i) for i in range(3, 6)]
            for job in jobs:
                job.result(PATIENCE)
        assert all(notes(store, work.run_id) == [str(n) for n in range(20)] for work in works)

    def test_a_loop_that_is_closed_leaves_its_commits_alone(self, store: BaseStore) -> None:
        work = begin(store)
        futures = []

        async def submit() -> None:
            futures.append(work.commit(Noted("/n", "a")))

        asyncio.run(submit())
        done(futures[0])
        assert notes(store, work.run_id) == ["a"]

    def test_of_answers_from_several_processes_one_wins(self, stores: Stores) -> None:
        store = stores.open()
        work = begin(store)
        work.pause("q")
        spawn = multiprocessing.get_context("spawn")
        processes, pipes = [], []
        for i in range(PROCESSES):
            here, there = spawn.Pipe()
            process = spawn.Process(target=_answer_many, args=(self.open_at, stores.folder, work.run_id, i, there))
            process.start()
            processes.append(process)
            pipes.append(here)
        for pipe in pipes:
            assert pipe.poll(2 * PATIENCE), "a process has not opened the store"
            pipe.recv()
        for pipe in pipes:
            pipe.send("go")
        won = [value for pipe in pipes for value in pipe.recv()]
        for process in processes:
            process.join(PATIENCE)
        assert len(won) == 1
        assert settled_in(store, work.run_id) == {"q": won[0]}

    def test_after_a_fork_the_child_has_a_store_or_an_error_and_the_parent_is_as_before(self, store: BaseStore) -> None:
        work = begin(store)
        work.note("before")
        told = _in_a_fork(lambda: notes(store, work.run_id), lambda: begin(store).note("mine"))
        assert told in ("['before'], None", "StoreError")
        work.note("after")
        assert notes(store, work.run_id) == ["before", "after"]

    def test_a_lease_stays_with_the_process_that_has_it(self, store: BaseStore) -> None:
        work = begin(store)
        told = _in_a_fork(lambda: done(store.acquire(load(store, work.run_id).ref, going_on(work.run_id))))
        assert told in ("None", "StoreError")
        work.note("still mine")


def _answer_many(open_at: Open, folder: Path, run_id: str, process: int, pipe: Connection) -> None:
    """Answer from several threads at once; sends the values that won."""
    store = open_at(folder, 30.0)
    ref = load(store, run_id).ref
    pipe.send("ready")
    pipe.recv()
    start = threading.Barrier(ANSWERERS)

    def settle(i: int) -> list[str]:
        start.wait(PATIENCE)
        value = f"{process}.{i}"
        return [] if done(store.settle(ref, [answer("q", value)], going_on(run_id))).conflict else [value]

    with ThreadPoolExecutor(ANSWERERS) as threads:
        pipe.send([value for won in threads.map(settle, range(ANSWERERS)) for value in won])
    asyncio.run(store.aclose())


def _in_a_fork(*work: Callable[[], Any]) -> str:
    """What work in a forked child gives, as text; `StoreError` if it raises one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = ", ".join(repr(one()) for one in work)
        except StoreError:
            told = "StoreError"
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = json.loads(pipe.read() or b'"the child died"')
    os.waitpid(child, 0)
    return str(told)
