"""A tool whose questions are other ones each time it runs: they hold the time, a fresh id and the process."""

import os
import time
from uuid import uuid4

from tests.scenarios.tools import play
from timbal import suspend


def report() -> list[str]:
    first = suspend({"at": time.time_ns(), "token": uuid4(), "process": os.getpid()})
    second = suspend({"at": time.time_ns(), "token": uuid4(), "process": os.getpid()})
    return [first, second]


if __name__ == "__main__":
    play(report)
