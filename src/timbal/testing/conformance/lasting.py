"""What was reported is there after the process has gone, however it went."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from ...core.facts import Noted
from .asking import ask, ids, settled_ids
from .facts import PATIENCE, answer, begin, done, going_on, load, notes
from .facts import settled as settled_in
from .stores import OnAStore, Open, Stores


class Lasting(OnAStore):
    """Durability, as far as a process can see it."""

    def test_a_new_store_object_finds_everything(self, stores: Stores) -> None:
        store = stores.open()
        work = begin(store, labels={"t": "a"})
        work.note("said")
        work.pause("q", "r")
        done(store.settle(load(store, work.run_id).ref, [answer("q", 1)], None))
        asyncio.run(store.aclose())
        store = stores.open()
        assert (notes(store, work.run_id), settled_in(store, work.run_id)) == (["said"], {"q": 1})
        assert (ids(store, labels={"t": "a"}), settled_ids(store)) == (["r"], ["q"])
        assert ask(store.get(work.run_id)).info.status == "paused"

    def test_what_was_submitted_before_closing_is_kept(self, stores: Stores) -> None:
        store = stores.open()
        work = begin(store)
        futures = [work.commit(Noted("/n", str(i))) for i in range(20)]
        asyncio.run(store.aclose())
        for future in futures:
            done(future)
        assert notes(stores.open(), work.run_id) == [str(i) for i in range(20)]

    def test_what_was_reported_survives_the_death_of_the_process(self, stores: Stores) -> None:
        spawn = multiprocessing.get_context("spawn")
        here, there = spawn.Pipe()
        process = spawn.Process(target=_commit_until_killed, args=(self.open_at, stores.folder, there))
        process.start()
        there.close()
        assert here.poll(2 * PATIENCE), "the process has not begun"
        run_id, reported = here.recv(), 0
        while reported < 30:
            reported = here.recv()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(PATIENCE)
        while here.poll():
            try:
                reported = here.recv()
            except EOFError:
                break
        store = stores.open(0.6)
        kept = notes(store, run_id)
        assert kept == [str(i) for i in range(1, len(kept) + 1)]
        assert len(kept) >= reported
        row = going_on(run_id)
        while (lease := done(store.acquire(load(store, run_id).ref, row))) is None:
            done(store.wait(load(store, run_id).ref))
        assert lease.fence == 2


def _commit_until_killed(open_at: Open, folder: Path, pipe: Connection) -> None:
    """Commit without end; sends the run's id, and then how many were reported."""
    store = open_at(folder, 0.6)
    work = begin(store)
    pipe.send(work.run_id)
    count = 0
    while True:
        count += 1
        work.note(str(count))
        pipe.send(count)
