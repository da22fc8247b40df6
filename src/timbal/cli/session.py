"""A run at the command line, from its start or from where it was left, until it is over or waits for somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import StoreError
from ..terminal import command, plain_json
from ..types.approval import Cancel, Principal
from ..types.events import Event, OutputEvent
from .asking import Asker, Skipped, show_question
from .decisions import decision_words, is_decision
from .errors import DONE, FAILED, LEFT, USAGE, CliError
from .locate import has_own_lines, own_traceback
from .narrate import Narrator
from .places import is_kept
from .screen import Beside, Screen, forget_stdout
from .watching import SettledElsewhere, watching
from .words import Ask, answer_words, moment, tokens, took, ways_to_answer, who

if TYPE_CHECKING:
    from ..runnables.base import Runnable
    from ..runtime.handle import RunHandle
    from ..stores.base import BaseStore

#: By which way a decision came, as it is recorded: typed where it was asked for, or given with the command.
TYPED, GIVEN = "terminal", "command line"
_REFUSED = frozenset({"resume_rejected", "interaction_already_claimed", "approval_already_claimed"})
_WHY = {
    "unknown": "was never asked in this run",
    "invalid": "does not fit",
    "expired": "comes too late: the question has expired",
    "superseded": "comes too late: a new message took the place of the question",
    "cancelled": "comes too late: the run was cancelled",
    "forbidden": "is not yours to give",
}


class How(NamedTuple):
    """How a command was called, as far as a run is concerned.

    `target` names its runnable; `known`: the run's record names it, too. `store` are the words that name its store.
    """

    target: str
    known: bool
    store: Sequence[str]
    by: Principal
    as_json: bool


class Session:
    """One runnable, one store, one terminal."""

    def __init__(self, runnable: Runnable, store: BaseStore, screen: Screen, how: How) -> None:
        self._runnable, self._store, self._screen, self._how = runnable, store, screen, how
        self._narrator = Narrator(screen)
        self._asker = Asker(screen)
        self._interactive = screen.interactive and not how.as_json
        self._run_id: str | None = None
        #: The ids of what the person leaves open.
        self._left_open: set[str] = set()

    def start(self, arguments: dict[str, Any], labels: dict[str, str], *, talk: bool) -> int:
        """Run it; with `talk`, the person goes on with another message after each answer. Gives the exit code."""

        def work(runner: asyncio.Runner) -> int:
            call = {**arguments, "labels": labels}
            while True:
                output = self._to_the_end(runner, self._follow(runner, call))
                code = self._report(output)
                if not talk or output.status.code != "success":
                    return code
                prompt = self._next_message()
                if prompt is None:
                    self._how_to_talk_on(output.run_id)
                    return code
                call = {"prompt": prompt, "parent_id": output.run_id, "labels": labels}

        return self._until_left(work)

    def go_on(self, run_id: str, answers: Mapping[str, Any], wanted: str = "") -> int:
        """Go on with a run, with these answers, which may end it as `wanted`; gives the exit code."""

        def work(runner: asyncio.Runner) -> int:
            output = self._follow(runner, {"parent_id": run_id, "resume": dict(answers)}, GIVEN)
            if answers and output.status.reason in _REFUSED:
                self._tell_receipts(output)
                return self._report(output)
            if answers:
                self._tell_same(output)
            ignored = self._tell_ignored(output)
            output = self._to_the_end(runner, output)
            code = self._report(output)
            if ignored and output.status.paused:
                return FAILED
            return DONE if wanted and output.status.reason == wanted else code

        return self._until_left(work)

    def _until_left(self, work: Callable[[asyncio.Runner], int]) -> int:
        """Do it in one event loop, until it is done or the person leaves; gives the exit code."""
        with asyncio.Runner() as runner:
            try:
                return work(runner)
            except (KeyboardInterrupt, EOFError):
                self._leave(runner)
                return LEFT
            except BrokenPipeError:  # whoever read stdout has left
                forget_stdout()
                self._leave(runner)
                return FAILED

    # -- running -----------------------------------------------------------------------------------------------------

    def _follow(self, runner: asyncio.Runner, call: dict[str, Any], channel: str = TYPED) -> OutputEvent:
        """Run until it pauses or ends, and show what happens. `channel`: by which way its answers came."""
        self._narrator.begin()
        try:
            handle = self._runnable._call({**call, "by": self._how.by})
            handle.channel = channel
            self._run_id = call["parent_id"] if "resume" in call else handle.run_id
            # What the user's code prints is not what the agent says.
            with redirect_stdout(Beside(self._screen, runner.get_loop())):
                return runner.run(self._events(handle))
        except StoreError as problem:
            raise CliError(str(problem), code=FAILED) from None
        finally:
            self._screen.end()

    async def _events(self, handle: RunHandle) -> OutputEvent:
        async with handle:
            async for event in handle:
                self._tell(event)
            return await handle.collect()

    def _tell(self, event: Event) -> None:
        if self._how.as_json:
            self._screen.raw(plain_json(event.model_dump_json()))
        else:
            self._narrator.tell(event)

    def _to_the_end(self, runner: asyncio.Runner, output: OutputEvent) -> OutputEvent:
        """Ask the person what the run asks, and go on, until it is over; without a person, leave it there."""
        while self._interactive and output.status.paused:
            pending = [event for event in output.pending if event.id not in self._left_open]
            answers = self._answers(output.run_id, pending)
            if answers is None:
                break
            output = self._answered(runner, answers)
        return output

    def _answered(self, runner: asyncio.Runner, answers: dict[str, Any]) -> OutputEvent:
        """Give the answers; those that come too late are told and left out."""
        run_id = self._run_id
        while True:
            output = self._follow(runner, {"parent_id": run_id, "resume": answers})
            if output.status.reason not in _REFUSED:
                self._tell_ignored(output)
                return output
            self._tell_receipts(output)
            refused = {receipt["id"] for receipt in output.receipts if not receipt["same_value"]}
            if not refused or not refused.isdisjoint(event.id for event in output.pending):
                return output  # they are open, and this person can't answer them
            answers = {id: value for id, value in answers.items() if id not in refused}

    def _answers(self, run_id: str, pending: Sequence[Ask]) -> dict[str, Any] | None:
        """What the person answers, `{id: value}`; `None` where they leave all of it open."""
        self._run_id = run_id
        self._screen.forget_typed()
        given: dict[str, Any] = {}
        elsewhere = False
        for number, event in enumerate(pending, 1):
            try:
                with watching(self._store, run_id, event.id):
                    answer = self._asker.ask(event, number, len(pending))
            except Skipped:
                self._left_open.add(event.id)
                continue
            except SettledElsewhere as found:
                elsewhere = True
                self._screen.text()
                self._screen.text(f"{_settled_words(found.settled)}.", "yellow")
                continue
            if isinstance(answer, Cancel):  # the run ends, whatever else would be said
                return {event.id: answer}
            given[event.id] = answer
        return given if given or elsewhere else None

    def _next_message(self) -> str | None:
        """What the person says next; `None` when they leave."""
        try:
            self._screen.text()
            return self._screen.ask("> ").strip() or None
        except (EOFError, KeyboardInterrupt):
            self._screen.text()
            return None

    # -- reporting ---------------------------------------------------------------------------------------------------

    def _report(self, output: OutputEvent) -> int:
        """Say how it stands; gives the exit code."""
        status = output.status
        if self._how.as_json:
            return _code(output)
        self._narrator.output(output)
        if output.pending:
            self._say_what_waits(output.run_id if status.paused else self._run_id or output.run_id, output.pending)
        elif status.code == "error":
            self._say_what_failed(output)
        elif status.code == "cancelled":
            how = "denied" if status.reason == "approval_denied" else status.reason
            self._screen.line("✗", f"{output.path} was {how}", status.message or "", "red")
        else:
            used = ", ".join(part for part in (took(output.t1 - output.t0), tokens(output.usage)) if part)
            self._screen.text(f"run {output.run_id}  {used}", "dim")
        return _code(output)

    def _say_what_waits(self, run_id: str, pending: Sequence[Ask]) -> None:
        kept = is_kept(self._store)
        for event in pending:
            if not self._interactive:
                show_question(self._screen, event)
        self._screen.text()
        if not kept:
            self._screen.text("Its store is a memory that ends with this process, so it can't be answered any more.")
            self._screen.text("Keep its runs with --store, as in --store sqlite:///runs.db.")
            return
        self._screen.text("It waits for an answer. Give it, here or in another process, with:")
        for event in pending:
            for way in ways_to_answer(event):
                self._screen.verbatim(command(*self._resume(run_id), *way))
        if len(pending) > 1:
            self._screen.text("Several can be given in one command.")
        if self._interactive:
            self._screen.text("Without these options you are asked again.")

    def _say_what_failed(self, output: OutputEvent) -> None:
        status, error = output.status, output.error or {}
        cause = getattr(output, "_cause", None)
        if isinstance(cause, BaseException) and status.reason is None and has_own_lines(cause):
            self._screen.trace(own_traceback(cause))
        what = f"{error.get('type')}: {error.get('message')}" if status.reason is None else str(error.get("message"))
        self._screen.text(f"✗ {output.path} failed: {what}", "red")
        if status.reason not in ("invalid_input", "resume_rejected") and is_kept(self._store):
            self._screen.text("What it had done is kept. Once the cause is gone, go on with:")
            self._screen.verbatim(command(*self._resume(output.run_id)))

    def _tell_receipts(self, output: OutputEvent) -> None:
        """Why answers were not taken."""
        for receipt in output.receipts:
            if receipt["same_value"]:
                continue
            if receipt["state"] == "already_settled":
                text = f"Somebody was faster. {_settled_words(receipt)}"
            else:
                details = "; ".join(map(_problem, receipt.get("errors", ()))) or receipt.get("why", "")
                text = f"The answer to {str(receipt['id'])[:12]} {_WHY.get(receipt['state'], receipt['state'])}"
                text += f" ({details})" if details else ""
            self._screen.text(f"{text}.", "yellow")
        if not output.receipts:
            raise CliError(output.status.message or "the answers were refused")

    def _tell_same(self, output: OutputEvent) -> None:
        for receipt in output.receipts:
            if receipt["state"] == "already_settled" and not self._how.as_json:
                self._screen.text(f"{_settled_words(receipt)}, as you say.", "dim")

    def _tell_ignored(self, output: OutputEvent) -> bool:
        """Say which decisions came too late to decide anything; gives whether there are any."""
        late = [receipt for receipt in output.receipts if "ignored" in receipt]
        for receipt in late:
            if not self._how.as_json:
                self._screen.text(f"The answer to {receipt['id'][:12]} decides nothing: {receipt['why']}.", "yellow")
        return bool(late)

    def _how_to_talk_on(self, run_id: str) -> None:
        if is_kept(self._store):
            self._screen.text("Go on with this conversation:", "dim")
            self._screen.verbatim(command("run", self._how.target, "--after", run_id, *self._how.store))

    def _leave(self, runner: asyncio.Runner) -> None:
        """Say how to go on with what is left."""
        self._screen.text()
        run_id = self._run_id
        if run_id is None or not is_kept(self._store):
            self._screen.text("You left. Nothing of the run is kept.")
            return
        try:
            last = runner.run(self._store.get(run_id)).runs[-1]
        except (StoreError, KeyboardInterrupt):
            self._screen.text("You left before anything was kept.")
            return
        if last.status in ("success", "cancelled") and last.reason != "interrupted":
            self._screen.text(f"You left; the run had ended ({last.status}). Look at it with:")
            self._screen.verbatim(command("show", run_id, *self._how.store))
            return
        self._screen.text("You left. The run is kept; go on with:")
        self._screen.verbatim(command(*self._resume(run_id)))

    def _resume(self, run_id: str) -> list[str]:
        how = self._how
        return ["resume", run_id, *([] if how.known else [how.target]), *how.store]


def _settled_words(receipt: Mapping[str, Any]) -> str:
    state = receipt["state"]
    name = who(receipt["by"], receipt.get("channel")) if receipt["by"] is not None else "Somebody"
    at = f" at {moment(receipt['at'])}" if receipt["at"] else ""
    if state in ("already_settled", "answered"):
        if is_decision(receipt["value"]):
            return f"{name} {decision_words(receipt['value'])}{at}"
        return f"{name} answered {answer_words(receipt['value'])!r}{at}"
    return f"The question was {state}{at}"


def _problem(error: Mapping[str, str]) -> str:
    where = error["pointer"][1:].replace("/", ".")
    return f"{where}: {error['message']}" if where else error["message"]


def _code(output: OutputEvent) -> int:
    status = output.status
    if status.code == "success" or status.paused:
        return DONE
    return USAGE if status.reason == "invalid_input" else FAILED
