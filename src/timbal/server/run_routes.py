"""Start runs, read what they tell, look at them, stop them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from starlette.responses import Response

from ..errors import RunNotFound
from ..runtime import drive
from . import reading, sse
from .bodies import read_object, take_apart
from .endpoints import Call, Work, json_response
from .problems import Problem
from .recording import Recording, as_json
from .records import info_json, run_record
from .service import CHANNEL
from .settings import LONGEST_WAIT, MOST
from .streaming import EventStream

if TYPE_CHECKING:
    from ..runnables.base import Runnable
    from ..types.approval import Principal
    from .service import Service


def stream(runnable: Runnable) -> Work:
    """`POST /stream`: start, and tell everything as it happens."""

    async def work(call: Call) -> Response:
        recording = await _start(call, runnable)
        return _stream(call, recording.gives, 0, recording)

    return work


def run(runnable: Runnable) -> Work:
    """`POST /run`: start, and give the root OUTPUT."""

    async def work(call: Call) -> Response:
        recording = await _start(call, runnable)
        output = await recording.output()
        return Response(as_json(output), headers={"X-Run-Id": recording.gives}, media_type="application/json")

    return work


async def _start(call: Call, runnable: Runnable) -> Recording:
    start = take_apart(await read_object(call.request, call.service.limits.body))
    key = call.request.headers.get("idempotency-key")
    return await call.service.run(runnable, start, call.by, key)


def _stream(call: Call, run_id: str, after: int, recording: Recording | None = None) -> Response:
    service = call.service
    frames = reading.frames(service, run_id, after)
    if recording is not None and recording.follows:
        frames = _followed(call, recording)
    return EventStream(frames, service.limits.slow_reader, {"X-Run-Id": run_id})


async def _followed(call: Call, recording: Recording) -> AsyncGenerator[bytes, None]:
    """What the run that is followed has told and tells; where that was not kept, its output."""
    if await call.service.log.read(recording.gives, 0, 1) is None:
        output = await recording.output()
        yield sse.numbered(1, as_json(output)) + reading.End("end", run_id=output.run_id).frame()
        return
    async for frame in reading.frames(call.service, recording.gives, 0):
        yield frame


async def events(call: Call) -> Response:
    """`GET /runs/{run_id}/events`: as a stream, or as JSON pages where that is what the client accepts."""
    run_id = call.request.path_params["run_id"]
    runs = await call.service.check_owner(run_id, call.by)
    after = call.number("after", 0, 0, 2**53)
    if (last := call.request.headers.get("last-event-id", "").strip()) and "after" not in call.request.query_params:
        if not (last.isascii() and last.isdecimal()):
            raise Problem(422, "Last-Event-ID: this is the number of an event")
        after = int(last)
    if _wants_json(call):
        limit, wait_ms = call.number("limit", MOST, 1, MOST), call.number("wait_ms", 0, 0, LONGEST_WAIT)
        return json_response(await reading.page(call.service, run_id, after, limit, wait_ms))
    if await call.service.log.read(run_id, after, 1) is None and not call.service.is_here(run_id):
        info = next(one for one in runs if one.run_id == run_id)
        if info.t1 is not None or await reading.broken_off(call.service, run_id) is not None:
            raise reading.no_events(run_id)
    return _stream(call, run_id, after)


def _wants_json(call: Call) -> bool:
    """`wait_ms` and `limit` belong to pages; else it is what stands first in `Accept`."""
    if {"wait_ms", "limit"} & call.request.query_params.keys():
        return True
    accept = call.request.headers.get("accept", "")
    kinds = [part.partition(";")[0].strip() for part in accept.split(",")]
    return "application/json" in kinds and (
        sse.MEDIA_TYPE not in kinds or kinds.index("application/json") < kinds.index(sse.MEDIA_TYPE)
    )


async def listing(call: Call) -> Response:
    """`GET /runs`."""
    query = call.request.query_params
    labels = {**call.labels(), **call.service.own(call.by)}
    try:
        page = await call.service.store.runs(query.get("status"), query.get("runnable"), labels, **call.page())
    except ValueError as error:
        raise Problem(422, str(error), errors=[{"pointer": "/after", "message": "this is no position"}]) from None
    return json_response({"items": [info_json(info) for info in page.items], "next": page.next})


async def record(call: Call) -> Response:
    """`GET /runs/{run_id}`."""
    run_id = call.request.path_params["run_id"]
    await call.service.check_owner(run_id, call.by)
    try:
        kept = await call.service.store.get(run_id)
    except RunNotFound as error:
        raise Problem(404, str(error)) from None
    runnable = call.service.runnables.get(kept.info.runnable)
    told = [run.run_id for run in kept.runs if await _is_told(call.service, run.run_id)]
    return json_response(run_record(kept, runnable, told))


async def _is_told(service: Service, run_id: str) -> bool:
    """Whether there are events of this run to read, or will be."""
    return service.is_here(run_id) or await service.log.read(run_id, 0, 1) is not None


async def cancel(call: Call) -> Response:
    """`POST /cancel/{run_id}`: asked for when this returns; a run that is over stays as it was."""
    run_id = call.request.path_params["run_id"]
    service = call.service
    reason = await _reason(call)
    runs = await service.check_owner(run_id, call.by)
    runnable = service.runnables.get(runs[0].runnable)
    if runnable is None:
        raise Problem(422, f"this server does not have {runs[0].runnable!r}, the runnable of this run")
    task = service.beside(_cancel(runnable, run_id, reason, call.by))
    await service.settled_soon(task)
    return Response(status_code=204)


async def _cancel(runnable: Runnable, run_id: str, reason: str | None, by: Principal | None) -> None:
    try:
        await drive.cancel(runnable, run_id, reason, by, CHANNEL)
    except RunNotFound:
        return  # erased meanwhile


async def _reason(call: Call) -> str | None:
    """The reason in the body, which may be left out."""
    if call.request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in call.request.headers:
        return None
    body = await read_object(call.request, call.service.limits.body)
    reason = body.get("reason")
    if body.keys() - {"reason"} or not (reason is None or isinstance(reason, str)):
        raise Problem(
            422,
            "the body is {reason}, a string, or empty",
            errors=[{"pointer": "/reason", "message": "this is a string"}],
        )
    return reason


async def ready(call: Call) -> Response:
    """`GET /readyz`: whether the store can be reached."""
    if call.service.stopping:
        raise Problem(503, "the server is stopping", headers={"Retry-After": "1"})
    await call.service.store.runs(limit=1)
    return json_response({"status": "ready"})
