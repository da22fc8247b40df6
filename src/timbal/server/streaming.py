"""A response that goes on for as long as there is something to tell and somebody to hear it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..errors import StoreError
from . import sse
from .problems import Problem, internal

log = logging.getLogger("timbal.server")


class EventStream(Response):
    """Server-sent events. Closing the connection ends the reading, and nothing else."""

    media_type = sse.MEDIA_TYPE

    def __init__(
        self, frames: AsyncGenerator[bytes, None], patience: float, headers: Mapping[str, str] | None = None
    ) -> None:
        """`patience`: a reader that takes nothing for so many seconds is let go."""
        self.status_code = 200
        self.background = None
        self._frames = frames
        self._patience = patience
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        writing = asyncio.ensure_future(self._write(send))
        leaving = asyncio.ensure_future(_left(receive))
        leaving.add_done_callback(lambda _: writing.cancel())
        try:
            await asyncio.wait((writing,))
        finally:
            leaving.cancel()
            writing.cancel()
        if not writing.cancelled() and (error := writing.exception()) is not None:
            raise error

    async def _write(self, send: Send) -> None:
        try:
            async for frame in guarded(self._frames):
                async with asyncio.timeout(self._patience):
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            log.info("a reader took nothing for %g s and was let go", self._patience)
        finally:
            await self._frames.aclose()


async def guarded(frames: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The frames; where reading fails the last one says so, and a reader may come again."""
    try:
        async for frame in frames:
            yield frame
    except StoreError as error:
        log.warning("a stream broke off: %s", error)
        yield _broken(Problem(503, "the store can't be read now; go on after the last number"))
    except Problem as problem:
        yield _broken(problem)
    except Exception:
        log.exception("a stream broke off")
        yield _broken(internal())


def _broken(problem: Problem) -> bytes:
    return sse.named("error", json.dumps(problem.content(), separators=(",", ":")))


async def _left(receive: Receive) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
