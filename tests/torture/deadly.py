"""A process that kills itself, at a line of a sample or beside a call of its store."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from types import FrameType
from typing import Any

from tests.torture import samples
from tests.torture.diary import Diary
from timbal.core.codec import decode
from timbal.core.facts import Returned, Settled
from timbal.ports import Settling
from timbal.stores.base import BaseStore

_CALLS = ("commit", "load", "history", "settle", "acquire", "release", "due", "find", "wait")


class Points:
    """Counts the points that are passed, and dies at the one that is named; at none for 0."""

    def __init__(self, deadly: int) -> None:
        self._deadly = deadly
        self._numbers = count(1)
        self.passed = 0

    def pass_one(self) -> None:
        self.passed = next(self._numbers)
        if self.passed == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch_lines(self) -> None:
        """From now on each line of a sample is a point, in any thread."""
        path = samples.__file__

        def enter(frame: FrameType, event: str, argument: Any) -> Any:
            return line if frame.f_code.co_filename == path else None

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                self.pass_one()
            return line

        threading.settrace(enter)
        sys.settrace(enter)

    def watch_calls(self, store: BaseStore, diary: Diary) -> None:
        """Before each call of the store and after it is a point; what it has reported is written down."""
        for name in _CALLS:
            setattr(store, name, self._watched(getattr(store, name), diary))

    def _watched(self, call: Callable[..., Future[Any]], diary: Diary) -> Callable[..., Future[Any]]:
        def watched(*arguments: Any, **named: Any) -> Future[Any]:
            self.pass_one()
            future = call(*arguments, **named)

            def reported(future: Future[Any]) -> None:
                self.pass_one()
                if future.exception() is None:
                    _note(diary, call.__name__, arguments, future.result())

            future.add_done_callback(reported)
            return future

        return watched


def _note(diary: Diary, call: str, arguments: tuple[Any, ...], result: Any) -> None:
    if call == "settle" and isinstance(result, Settling) and not result.conflict:
        for settlement in arguments[1]:
            for fact in decode(settlement.body):
                assert isinstance(fact, Settled)
                diary.write("accepted", id=fact.id, value=fact.value)
    if call == "commit" and len(arguments) > 1:
        for fact in decode(arguments[1] or b"[]"):
            if isinstance(fact, Returned) and fact.kind == "step":
                diary.write("recorded", attempt=fact.output)
