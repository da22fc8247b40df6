"""Reads all that a store keeps, and says what is wrong with it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ..core.codec import decode_all
from ..core.ledger import Ledger
from ..errors import StoreError, UnknownRecord
from .waiting import wait

if TYPE_CHECKING:
    from .base import BaseStore


class Checked(NamedTuple):
    """What a check found. `runs` by status; `newer`: executions that only a newer library reads: no damage."""

    schema_version: int
    executions: int
    runs: dict[str, int]
    open_questions: int
    settled_questions: int
    newer: int
    problems: list[str]


async def check(store: BaseStore) -> Checked:
    """Read every execution of a store."""
    problems = await wait(store._check())
    statuses: Counter[str] = Counter()
    executions: set[str] = set()
    asked: Counter[bool] = Counter()
    newer = 0
    after = None
    while True:
        page = await store.runs(newest_first=False, after=after, limit=500)
        for info in page.items:
            statuses[info.status] += 1
            if info.execution_id in executions:
                continue
            executions.add(info.execution_id)
            if info.status == "erased":
                continue
            try:
                stored = await wait(store.load(info.run_id))
                if stored is None:
                    problems.append(f"run {info.run_id}: it is listed, and its execution is not there")
                    continue
                ledger = Ledger.of(decode_all(stored.records))
                if ledger.opened is None:
                    problems.append(f"run {info.run_id}: its opening is missing")
                elif ledger.opened.run_id != stored.run_id:
                    problems.append(f"run {info.run_id}: its records are those of run {ledger.opened.run_id}")
                asked.update(question.settled is None for question in ledger.questions.values())
            except UnknownRecord:
                newer += 1
            except StoreError as error:
                problems.append(f"run {info.run_id}: {error}")
            except Exception as error:
                problems.append(f"run {info.run_id}: its records do not fit together: {type(error).__name__}: {error}")
        if (after := page.next) is None:
            break
    waiting = await _count_open(store)
    if not problems and not newer and waiting != asked[True]:
        problems.append(f"the inbox has {waiting} open questions, and the executions have {asked[True]}")
    return Checked(store.schema_version, len(executions), dict(statuses), waiting, asked[False], newer, problems)


async def _count_open(store: BaseStore) -> int:
    count, after = 0, None
    while True:
        page = await store.pending(after=after, limit=500)
        count += len(page.items)
        if (after := page.next) is None:
            return count
