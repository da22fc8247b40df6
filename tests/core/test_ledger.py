"""The ledger under threads."""

import sys
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from timbal.core.facts import Asked, Called, Opened, Returned
from timbal.core.ledger import Ledger

ROUNDS = 1000


def asked(n: int) -> Asked:
    return Asked(f"{n}", f"id{n}", "run", "tool", "call", "ask", "tool", {"q": n}, 1)


@pytest.fixture
def threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("threads_take_turns_often")
def test_a_ledger_is_read_while_a_handler_in_a_thread_adds_to_it() -> None:
    ledger = Ledger(Opened("run", "call", "tool", "Tool", {}, 1))
    started = Event()
    problems: list[Exception] = []

    def read() -> None:
        try:
            while len(ledger.questions) < ROUNDS:
                started.set()
                assert ledger.open_questions is not None
                ledger.at_rest("")
                ledger.seen_by_open_calls()
                ledger.count_equal("tool", {"q": 0}, None)
                ledger.take_stock("0")
        except Exception as problem:
            problems.append(problem)

    reader = Thread(target=read)
    reader.start()
    started.wait()
    for n in range(ROUNDS):
        ledger.apply(asked(n))
        ledger.apply(Called(f"{n}", "call", "step", "step", 1))
        ledger.apply(Returned(f"{n}", "call", "step", "step", 1, 1))
    reader.join()
    assert not problems
