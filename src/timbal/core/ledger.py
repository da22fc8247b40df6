"""The facts of one execution, folded into what re-execution and answering ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, assert_never

from .facts import (
    AnyAsked,
    Asked,
    Called,
    Ended,
    Fact,
    Gated,
    Noted,
    Opened,
    Passed,
    Reopened,
    Resumed,
    Returned,
    Revoked,
    Settled,
    Used,
)
from .ids import ROOT, parent


class Op(NamedTuple):
    """One recorded operation of a call, as recognition sees it."""

    kind: str
    name: str


@dataclass(slots=True)
class Question:
    """An asked question, with its settlement once it has one."""

    asked: AnyAsked
    settled: Settled | None = None

    @property
    def call(self) -> str:
        """The key of the call that asked."""
        return parent(self.asked.key)


@dataclass(slots=True)
class Gates:
    """What gates and standing decisions came to: calls that were let through by key, decisions by approval id."""

    passed: dict[str, Passed] = field(default_factory=dict)
    uses: dict[str, list[Used]] = field(default_factory=dict)
    revoked: dict[str, Revoked] = field(default_factory=dict)

    def apply(self, fact: Passed | Used | Revoked) -> None:
        match fact:
            case Passed():
                self.passed[fact.key] = fact
            case Revoked():
                self.revoked.setdefault(fact.id, fact)
            case Used():
                uses = self.uses.setdefault(fact.id, [])
                again = any((u.execution_id, u.key) == (fact.execution_id, fact.key) for u in uses)
                if fact.id not in self.revoked and not again:
                    uses.append(fact)
            case _:
                assert_never(fact)


class Ledger:
    """Everything recorded of one execution, by key. It only grows, by `apply`.

    Handlers' threads add to it while others read: what is gone through is a copy, made in one step.
    """

    opened: Opened | None = None
    ended: Ended | None = None
    #: Model calls that were recorded when the execution last ran into `max_iter`: the next allowance counts from there.
    allowance_from = 0
    #: `None` where no gate was ever reached.
    gates: Gates | None = None

    def __init__(self, opened: Opened | None = None) -> None:
        self.outcomes: dict[str, Returned] = {}
        self.calls: dict[str, Called] = {}
        self.operations: dict[str, dict[str, Op]] = {}
        self.questions: dict[str, Question] = {}
        self.asked_by: dict[str, list[Question]] = {}
        self.notes: dict[str, str] = {}
        self.runs: list[str] = []
        if opened is not None:
            self.apply(opened)
        self._seen: set[str] = set()

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> Ledger:
        """What is stored. What a run records on top of it (`apply`) is not among its `operations`."""
        ledger = cls()
        for fact in facts:
            ledger.apply(fact)
        ledger.take_stock()
        return ledger

    def apply(self, fact: Fact) -> None:
        """Take one fact in. Questions and their settlements may come in any order among the other facts."""
        match fact:
            case Returned():
                self.outcomes[fact.key] = fact
            case Opened():
                self.opened = fact
                self.runs.append(fact.run_id)
            case Ended():
                self.ended = fact
                self._seen.update(fact.seen or ())
                if fact.reason == "max_iter":
                    self.allowance_from = sum(
                        1 for r in list(self.outcomes.values()) if r.kind == "model" and parent(r.key) == ROOT
                    )
            case Called():
                self.calls[fact.key] = fact
            case Asked() | Gated():
                question = Question(fact)
                self.questions[fact.id] = question
                self.asked_by[fact.key] = [*self.asked_by.get(fact.key, ()), question]
            case Settled():
                self.questions[fact.id].settled = fact
            case Noted():
                self.notes[fact.key] = fact.text
            case Passed() | Used() | Revoked():
                if self.gates is None:
                    self.gates = Gates()
                self.gates.apply(fact)
            case Reopened():
                self.outcomes.pop(fact.key, None)
            case Resumed():
                self.runs.append(fact.run_id)
                self.ended = None
            case _:
                assert_never(fact)

    def take_stock(self, of: str | None = None) -> None:
        """Let the operations of the call at the key `of`, or of every call, be those that are recorded by now."""
        recorded = [(fact.key, fact.kind, fact.name) for fact in list(self.calls.values())]
        recorded += [(fact.key, fact.kind, fact.name) for fact in list(self.outcomes.values())]
        recorded += [
            (key, "suspend", asked[0].asked.name)
            for key, asked in self.asked_by.copy().items()
            if type(asked[0].asked) is Asked
        ]
        for key, kind, name in recorded:
            call, slash, segment = key.rpartition("/")
            if slash and (of is None or of == call):
                self.operations.setdefault(call, {})[segment] = Op(kind, name)

    @property
    def root(self) -> Opened:
        """How it began."""
        assert self.opened is not None, "a ledger without its opening"
        return self.opened

    @property
    def open_questions(self) -> list[Question]:
        """What waits for a person, in the order it was asked."""
        return [q for q in list(self.questions.values()) if q.settled is None] if self.questions else []

    def question_at(self, key: str) -> Question | None:
        """The latest question of one `suspend()` operation."""
        asked = self.asked_by.get(key)
        return asked[-1] if asked else None

    def count_equal(self, path: str, payload: Any, tool_call_id: str | None) -> int:
        """How many questions with these three are stored: the count that goes into the next one's id."""
        return sum(
            type(q.asked) is Asked
            and q.asked.path == path
            and q.asked.payload == payload
            and q.asked.tool_call_id == tool_call_id
            for q in list(self.questions.values())
        )

    def count_equal_gates(self, path: str, input: Any, tool_call_id: str | None) -> int:
        """How many approvals of equal calls are stored: the count that goes into the next one's id."""
        return sum(
            gate.path == path and gate.proposed == input and gate.tool_call_id == tool_call_id
            for gate, _ in self.gated_calls
        )

    @property
    def gated_calls(self) -> list[tuple[Gated, Settled | None]]:
        """What gates have asked, in order, each with the decision where there is one."""
        return [(q.asked, q.settled) for q in list(self.questions.values()) if isinstance(q.asked, Gated)]

    def note_standing(self, newer: Ledger) -> None:
        """Take over what a newer reading of this execution knows of its standing decisions."""
        if newer.gates is not None:
            mine = self.gates = self.gates or Gates()
            mine.uses, mine.revoked = newer.gates.uses, newer.gates.revoked

    def passed(self, key: str) -> Passed | None:
        """How the gate of the call at `key` let it through, where it did."""
        return self.gates.passed.get(key) if self.gates is not None else None

    def at_rest(self, key: str) -> bool:
        """Whether the call at `key` waits, itself or in its children, and nothing in it was answered since it ran."""
        waiting = False
        for question in list(self.questions.values()):
            call = question.call
            if not (call == key or call.startswith(key + "/")) or self._over(call, key):
                continue
            if question.settled is None:
                waiting = True
            elif question.settled.id not in self._seen:
                return False
        return waiting

    def seen_by_open_calls(self) -> list[str]:
        """Settled questions whose calls have not returned: a run that pauses now has used them (`Ended.seen`)."""
        return [
            q.asked.id
            for q in list(self.questions.values())
            if q.settled is not None and q.settled.id not in self._seen and not self._over(q.call, ROOT)
        ]

    def _over(self, key: str, up_to: str) -> bool:
        """Whether the call at `key`, or one that it is part of below `up_to`, has returned."""
        while len(key) > len(up_to):
            if key in self.outcomes:
                return True
            key = parent(key)
        return False
