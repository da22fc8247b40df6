"""The events of one run as a reader gets them, from any number on, live or long after."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..core.codec import decode_all
from ..core.ledger import Ledger
from ..errors import RunNotFound
from ..stores.clock import now
from ..stores.events import Piece
from ..stores.waiting import wait
from . import sse
from .problems import Problem

if TYPE_CHECKING:
    from .service import Service

#: The most events that are taken out of the store at once.
PAGE = 500
#: How often a reader looks whether the run it reads has lost its process, in seconds.
LOOK_SECONDS = 1.0
#: The last events of a run are kept after its end; those that are not there after so long were lost with its process.
LATE_SECONDS = 5.0


class End:
    """Why nothing comes any more of a run: `ended`, `continued` by another run, or `expired`."""

    def __init__(self, name: str, **about: Any) -> None:
        self.name = name
        self.about = about

    def frame(self) -> bytes:
        return sse.named(self.name, json.dumps(self.about, separators=(",", ":")))


def no_events(run_id: str) -> Problem:
    return Problem(404, f"no events are kept of run {run_id}: it was not started by a server, or is not known")


async def frames(service: Service, run_id: str, after: int) -> AsyncGenerator[bytes, None]:
    """Frames of server-sent events, up to the run's end or the server's."""
    beat_at = look_at = time.monotonic()
    with service.log.listen(run_id) as bell:
        while not service.stopping:
            bell.clear()
            piece = await service.log.read(run_id, after, PAGE)
            items = piece.items if piece is not None else []
            told = b"".join(sse.numbered(number, body) for number, body in items)
            after = items[-1][0] if items else after
            end = end_of(run_id, piece, after)
            if end is None and not items and time.monotonic() >= look_at + LOOK_SECONDS:
                look_at = time.monotonic()
                end = await broken_off(service, run_id)
            if end is not None:
                yield told + end.frame()
                return
            if told:
                yield told
                beat_at = time.monotonic()
            if piece is not None and piece.last > after:
                continue
            if time.monotonic() >= beat_at + service.limits.heartbeat:
                yield sse.HEARTBEAT
                beat_at = time.monotonic()
            await _rung(bell, min(LOOK_SECONDS, service.limits.heartbeat))


async def _rung(bell: asyncio.Event, seconds: float) -> None:
    """Wait for it, for so long at most."""
    with suppress(TimeoutError):
        await asyncio.wait_for(bell.wait(), seconds)


def end_of(run_id: str, piece: Piece | None, after: int) -> End | None:
    """Why nothing comes after this number, as the log says it."""
    if piece is None:
        return None
    if piece.first > after + 1:
        return End("expired", run_id=run_id, first=piece.first)
    return End("end", run_id=run_id) if piece.closed and piece.last <= after else None


async def broken_off(service: Service, run_id: str) -> End | None:
    """Why nothing comes although the log is open: the run's process has gone, and another run went on or it is over."""
    if service.is_here(run_id):
        return None
    try:
        runs = await service.store.runs_of(run_id)
    except RunNotFound:
        return End("expired", run_id=run_id, first=None)
    info = next(info for info in runs if info.run_id == run_id)
    if info.status == "erased":
        return End("expired", run_id=run_id, first=None)
    if info.t1 is not None and info.reason != "interrupted":
        # It has ended. Its last events are on their way, unless its process was lost right then.
        late = now() - info.t1 > LATE_SECONDS * 1000
        return End("end", run_id=run_id) if late else None
    stored = await wait(service.store.load(run_id))
    if stored is None:
        return None
    order = Ledger.of(decode_all(stored.records)).runs
    if run_id in order and order[-1] != run_id:
        return End("continued", run_id=order[order.index(run_id) + 1])
    return None


async def page(service: Service, run_id: str, after: int, limit: int, wait_ms: int) -> dict[str, Any]:
    """Some events as JSON: `{items: [{seq, event}], next, end}`; waits so long for the first one. Raises `Problem`."""
    until = time.monotonic() + wait_ms / 1000
    with service.log.listen(run_id) as bell:
        while True:
            bell.clear()
            piece = await service.log.read(run_id, after, limit)
            items = piece.items if piece is not None else []
            last = items[-1][0] if items else after
            end = end_of(run_id, piece, last)
            if end is None and not items:
                end = await broken_off(service, run_id)
                if end is None and piece is None and not service.is_here(run_id):
                    raise no_events(run_id)
            left = until - time.monotonic()
            if items or end is not None or left <= 0 or service.stopping:
                break
            await _rung(bell, min(left, LOOK_SECONDS))
    return {
        "items": [{"seq": number, "event": json.loads(body)} for number, body in items],
        "next": last,
        "end": None if end is None else {"type": end.name, **end.about},
    }
