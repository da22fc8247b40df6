"""An event loop whose time jumps to the next timer: nothing is waited for, and a schedule comes out the same again."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

import time_machine

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing: the clock on the wall jumps, too."""

    now = 0.0

    def __init__(self, wall: time_machine.Traveller) -> None:
        super().__init__()
        self._wall = wall

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everything waits, and nothing will ever happen")
        if not ready and timeout is not None:
            self.now += timeout
            self._wall.shift(timeout)
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """For code without threads and sockets."""

    def __init__(self, wall: time_machine.Traveller) -> None:
        self._jumping = _Jumping(wall)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_jumping(work: Coroutine[Any, Any, T]) -> T:
    with (
        time_machine.travel(1_800_000_000.0, tick=False) as wall,
        asyncio.Runner(loop_factory=lambda: JumpingLoop(wall)) as runner,
    ):
        return runner.run(work)
