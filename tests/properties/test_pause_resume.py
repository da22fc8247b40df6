"""The promise of the library: however its questions are answered, a program does and says the same."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.programs import Effects, Turns, agent, answer_to, effects_of, programs
from timbal.runtime import frame
from timbal.stores import MemoryStore, SqliteStore
from timbal.types.events import InteractionEvent, OutputEvent

Follow = Callable[..., Awaitable[OutputEvent]]
#: More resumes than any program here needs, so that one which never ends is found.
MOST_RESUMES = 150
#: More than any run here needs, so that one that hangs is found.
SECONDS_PER_RUN = 60
#: For how long nothing may move on a machine that is busy with other things, before an operation counts as unknown.
PATIENCE = 20.0

common = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass
class Story:
    """What can be seen of a program from its start to its end."""

    effects: Effects = field(default_factory=Effects)
    emitted: list[str] = field(default_factory=list)
    questions: dict[str, Any] = field(default_factory=dict)
    transcript: list[Any] = field(default_factory=list)
    output: Any = None

    def told(self) -> dict[str, Any]:
        """What must not depend on how the answers came."""
        return {
            "effects": Counter(self.effects.done),
            "questions": self.questions,
            "transcript": [message.model_dump_json() for message in self.transcript],
            "output": self.output,
        }


class Stores:
    """Store objects on the same data: a fresh one for each cold resume."""

    def __init__(self, folder: str | None, stack: AsyncExitStack) -> None:
        self._path = Path(folder) / "runs.db" if folder is not None else None
        self._stack = stack
        self._memory = MemoryStore()

    def cold(self) -> Any:
        if self._path is None:
            return self._memory
        store = SqliteStore(self._path, synchronous="normal")
        self._stack.push_async_callback(store.aclose)
        return store


def _go_on(follow: Follow, first: str, newest: str, one: "Resume") -> Awaitable[OutputEvent]:
    return follow(one.cold, parent_id=first if one.by_first else newest, resume=one.answers)


async def play(turns: Turns, stores: Stores, answerer: "Answerer") -> Story:
    """Run a program to its end; the answerer says who resumes what, and how."""
    story = Story()
    store = stores.cold()
    warm = agent(store, story.effects, turns)

    async def follow(cold: bool, **params: Any) -> OutputEvent:
        handle = (agent(stores.cold(), story.effects, turns) if cold else warm)(**params)
        async with asyncio.timeout(SECONDS_PER_RUN):
            async for event in handle:
                if isinstance(event, InteractionEvent):
                    story.emitted.append(event.interaction_id)
                    story.questions[event.interaction_id] = [event.path, event.payload, event.tool_call_id]
            out: OutputEvent = await handle.collect()
        assert out.status.code == "success" or out.status.reason == "input_required", out.status
        return out

    out = await follow(False, prompt="go")
    first = out.run_id
    for _ in range(MOST_RESUMES):
        if not out.pending:
            break
        assert {item.id for item in (await store.pending()).items} == {item.interaction_id for item in questions(out)}
        resumes, at_once = answerer.resumes(out), answerer.at_once()
        go_on = partial(_go_on, follow, first, out.run_id)
        outs = await asyncio.gather(*map(go_on, resumes)) if at_once else [await go_on(one) for one in resumes]
        out = outs[-1] if len(outs) == 1 else await follow(True, parent_id=first, resume={})
    assert not out.pending, "it asks for ever"
    assert (await follow(False, parent_id=first, resume={})).output == out.output
    story.transcript, story.output = await store.messages(first), out.output
    assert Counter(story.emitted) == Counter(story.questions.keys()), "each question is emitted once"
    return story


def questions(out: OutputEvent) -> list[InteractionEvent]:
    """What a run waits for; nothing here has a gate."""
    return [item for item in out.pending if isinstance(item, InteractionEvent)]


@dataclass(frozen=True)
class Resume:
    """One resume: with fresh objects or not, by the first or the newest run's id."""

    answers: dict[str, Any]
    cold: bool = False
    by_first: bool = False


class Answerer:
    """Answers everything that is asked, at once."""

    def resumes(self, out: OutputEvent) -> list[Resume]:
        return [Resume({item.interaction_id: answer_to(item.payload["q"]) for item in questions(out)})]

    def at_once(self) -> bool:
        return False


class Whimsical(Answerer):
    """Answers some of what is asked, in any order, in one or several resumes; and says again what was said before.

    It decides by a seed, since what is asked when may depend on the speed of threads, and what is generated may not.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._said: dict[str, Any] = {}

    def resumes(self, out: OutputEvent) -> list[Resume]:
        (everything,) = super().resumes(out)
        random = self._random
        chosen = random.sample(list(everything.answers), random.randint(1, len(everything.answers)))
        parts = [chosen] if self.at_once() else [[one] for one in chosen]
        resumes = [self._resume({one: everything.answers[one] for one in part}) for part in parts]
        if self._said and self.at_once():
            again = random.choice(list(self._said))
            resumes.insert(random.randint(0, len(resumes)), self._resume({again: self._said[again]}))
        if random.random() < 0.25:
            resumes.append(random.choice(resumes))
        if random.random() < 0.2:
            resumes.insert(0, self._resume({}))
        self._said |= {one: everything.answers[one] for one in chosen}
        return resumes

    def at_once(self) -> bool:
        return self._random.random() < 0.5

    def _resume(self, answers: dict[str, Any]) -> Resume:
        return Resume(answers, cold=self.at_once(), by_first=self.at_once())


def check(turns: Turns, seed: int, folder: str | None) -> None:
    async def both() -> tuple[Story, Story]:
        async with AsyncExitStack() as stack:
            straight = await play(turns, Stores(None, stack), Answerer())
            whimsical = await play(turns, Stores(folder, stack), Whimsical(seed))
        return straight, whimsical

    with patch.object(frame, "HOLD_SECONDS", PATIENCE):
        straight, whimsical = asyncio.run(both())
    assert Counter(straight.effects.done) == effects_of(turns)
    assert whimsical.told() == straight.told()


@pytest.mark.slow
@settings(common, max_examples=200)
@given(programs(), st.integers(0, 2**32))
def test_however_and_whenever_its_questions_are_answered_a_program_does_and_says_the_same(
    turns: Turns, seed: int
) -> None:
    check(turns, seed, None)


@pytest.mark.slow
@settings(common, max_examples=25)
@given(programs(), st.integers(0, 2**32))
def test_however_its_questions_are_answered_a_program_on_sqlite_does_and_says_the_same(turns: Turns, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(turns, seed, folder)
