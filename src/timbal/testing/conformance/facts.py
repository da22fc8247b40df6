"""Executions for a store to keep, made of real facts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import uuid_utils

from ...core.codec import decode, encode
from ...core.facts import Asked, Ended, Fact, Noted, Opened, Settled
from ...ports import Lease, QuestionRow, RunRow, Settlement, Stored
from ...stores.base import BaseStore
from ...stores.clock import now

T = TypeVar("T")

#: For how long a test waits for a store, in seconds; then it has failed.
PATIENCE = 30.0


def done(future: Future[T]) -> T:
    """The future's result, waiting in this thread."""
    return future.result(PATIENCE)


def new_id() -> str:
    return uuid_utils.uuid7().hex


class Person:
    """A holder of a lease: it lives until told otherwise, and remembers who asked it to stop."""

    def __init__(self) -> None:
        self.lives = True
        self.asked_to_stop: list[str] = []
        self._asked: Future[str] = Future()

    def alive(self) -> bool:
        return self.lives

    def stop_asked(self, reason: str) -> None:
        self.asked_to_stop.append(reason)
        if not self._asked.done():
            self._asked.set_result(reason)

    def why_it_stops(self) -> str:
        return done(self._asked)


class Work:
    """One execution as the run that holds its lease sees it."""

    def __init__(self, store: BaseStore, lease: Lease, run_id: str) -> None:
        self.store = store
        self.lease = lease
        self.run_id = run_id
        self.person = Person()
        lease.holder = self.person

    def commit(
        self,
        *facts: Fact,
        asks: Sequence[QuestionRow] = (),
        settles: Sequence[Settlement] = (),
        ended: Ended | None = None,
    ) -> Future[str | None]:
        facts = (*facts, ended) if ended is not None else facts
        return self.store.commit(
            self.lease, encode(facts) if facts else b"", questions=asks, ended=ended, settlements=settles
        )

    def note(self, text: str) -> None:
        done(self.commit(Noted("/n", text)))

    def ask(self, *ids: str, kind: str = "confirm", at: int | None = None) -> None:
        done(self.commit(asks=[question(id, self.run_id, kind, at) for id in ids]))

    def pause(self, *ids: str, kind: str = "confirm", at: int | None = None) -> None:
        """Ask, and give the lease back."""
        asks = [question(id, self.run_id, kind, at) for id in ids]
        done(self.commit(asks=asks, ended=Ended(self.run_id, "cancelled", now(), "input_required")))

    def end(self, code: str = "success", reason: str | None = None) -> None:
        done(self.commit(ended=Ended(self.run_id, code, now(), reason)))


def begin(
    store: BaseStore,
    name: str = "agent",
    *,
    run_id: str | None = None,
    parent: str | None = None,
    labels: dict[str, str] | None = None,
    at: int | None = None,
) -> Work:
    """A new execution, held by its first run."""
    lease, fact = Lease(), opened(name, run_id=run_id, parent=parent, labels=labels, at=at)
    work = Work(store, lease, fact.run_id)
    done(store.commit(lease, encode((fact,)), fact))
    return work


def opened(
    name: str = "agent",
    *,
    run_id: str | None = None,
    parent: str | None = None,
    labels: dict[str, str] | None = None,
    at: int | None = None,
) -> Opened:
    return Opened(run_id or new_id(), new_id(), name, "Agent", {"prompt": "go"}, at or now(), parent, labels)


def question(
    id: str, run_id: str, kind: str = "confirm", at: int | None = None, text: str | None = None
) -> QuestionRow:
    payload = {"question": text if text is not None else id}
    asked = Asked(f"/{id}", id, run_id, "agent.ask", new_id(), kind, "ask", payload, at or now())
    return QuestionRow(id, kind, asked.at, None, encode((asked,)))


def answer(id: str, value: Any = True, run_id: str | None = None, **more: Any) -> Settlement:
    return Settlement(id, "answered", encode((Settled(id, "answered", now(), value, run_id, **more),)))


def going_on(parent: str) -> RunRow:
    """A run that goes on with an execution."""
    return RunRow(new_id(), parent, now())


def load(store: BaseStore, run_id: str) -> Stored:
    stored = done(store.load(run_id))
    assert stored is not None, f"run {run_id} is not there"
    return stored


def facts(store: BaseStore, run_id: str) -> list[Fact]:
    return [fact for record in load(store, run_id).records for fact in decode(record)]


def notes(store: BaseStore, run_id: str) -> list[str]:
    return [fact.text for fact in facts(store, run_id) if isinstance(fact, Noted)]


def settled(store: BaseStore, run_id: str) -> dict[str, Any]:
    """The values of what was settled, by id."""
    return {fact.id: fact.value for fact in facts(store, run_id) if isinstance(fact, Settled)}


def asked(store: BaseStore, run_id: str) -> list[str]:
    return [fact.id for fact in facts(store, run_id) if isinstance(fact, Asked)]
