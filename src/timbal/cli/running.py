"""`timbal run` and `timbal resume`: from the words of a command to a session."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

from ..types.approval import Cancel, Principal
from .answers import understand_given
from .asking import Asker, Cancelled
from .errors import DONE, FAILED, USAGE, CliError
from .fields import Unfit, field_of, loose
from .locate import Target, load
from .places import APP_LABEL, give_store, has_own_store, open_to_read, record_of
from .screen import Screen
from .session import How, Session

if TYPE_CHECKING:
    from ..core.facts import AnyAsked
    from ..runnables.base import Runnable
    from ..stores.listings import RunRecord


class Options(NamedTuple):
    """What `timbal run` and `timbal resume` have in common."""

    store: str | None
    by: str | None
    roles: Sequence[str]
    as_json: bool

    def how(self, place: Target, *, known: bool) -> How:
        """How a session is run; `known`: the run's record names its runnable."""
        words = ["--store", self.store] if self.store is not None else []
        return How(str(place), known, words, self.principal, self.as_json)

    @property
    def principal(self) -> Principal:
        """Who gives the command."""
        return Principal(self.by or _user(), list(self.roles))


class Input(NamedTuple):
    """What `timbal run` is given for its runnable."""

    params: Sequence[str]
    prompt: str | None
    json: str | None


class Answers(NamedTuple):
    """What `timbal resume` is given for what waits: ids, or `ID=JSON` in `texts`."""

    texts: Sequence[str]
    approve: Sequence[str]
    deny: Sequence[str]
    cancel: str | None
    reason: str | None

    @property
    def wanted_end(self) -> str:
        """For which reason the run may end, and all is as the person said."""
        if self.cancel is not None:
            return "cancelled"
        return "approval_denied" if self.texts or self.deny else ""


def run(target: str, given: Input, after: str | None, labels: Sequence[str], options: Options) -> int:
    """Run a runnable; gives the exit code."""
    screen = Screen()
    place = Target(target)
    runnable = _load(place)
    own_store = options.store is None and has_own_store(runnable)
    store = give_store(runnable, options.store)
    arguments = _given(runnable, given)
    asks = screen.interactive and not options.as_json
    talk = asks and runnable.kind == "Agent" and not arguments
    if talk:
        arguments = _first_message(screen, runnable)
        if not arguments:
            return DONE
    elif runnable.kind == "Agent" and not arguments:
        raise CliError(f"what is {runnable.name} to do?", hint="Give --prompt TEXT, or --prompt - to read stdin.")
    elif asks:
        arguments = _fill_gaps(screen, runnable, arguments)
    marks = {**pairs(labels, "--label"), **({APP_LABEL: str(place)} if place.is_here() else {})}
    if after is not None:
        arguments = {**arguments, "parent_id": asyncio.run(record_of(store, after)).info.run_id}
    how = options.how(place, known=place.is_here() and not own_store)
    return Session(runnable, store, screen, how).start(arguments, marks, talk=talk)


def resume(run_id: str, target: str | None, given: Answers, options: Options) -> int:
    """Go on with a run; gives the exit code."""
    screen, store = Screen(), options.store
    if target is not None:
        place = Target(target)
        runnable = _load(place)
        own_store = store is None and has_own_store(runnable)
        kept_in = give_store(runnable, store)
        record = asyncio.run(record_of(kept_in, run_id))
    else:
        there = open_to_read(store)
        if there is None:
            raise CliError(
                f"there is no run {run_id}: nothing was kept in this folder yet", hint="--store names a store."
            )
        record = asyncio.run(record_of(there, run_id))
        place = _target_of(record)
        runnable = _load(place)
        runnable._store = kept_in = there
        own_store = False
    info = record.info
    if (info.runnable, info.runnable_type) != (runnable.name, runnable.kind):
        raise CliError(
            f"run {info.run_id} is one of {info.runnable_type} {info.runnable!r}, and {place} is "
            f"{runnable.kind} {runnable.name!r}",
            hint="Give the runnable that it was started with.",
        )
    answers = _answers(record, given)
    if record.runs[-1].status == "running":
        screen.text(
            "Another process is at work on this run, or was when it ended. Waiting for it, or taking over.", "dim"
        )
    known = target is None or (info.labels.get(APP_LABEL) == str(place) and place.is_here() and not own_store)
    how = options.how(place, known=known)
    return Session(runnable, kept_in, screen, how).go_on(info.run_id, answers, given.wanted_end)


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` words as a dict; raises `CliError`."""
    found = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise CliError(f"{option} {word!r} is not of the form NAME=VALUE")
        found[name] = value
    return found


def store_of(app: str) -> Any:
    """The store of the runnable that `app` names."""
    return give_store(_load(Target(app)), None)


# -- the runnable ------------------------------------------------------------------------------------------------------


def _load(place: Target) -> Runnable:
    # What the user's file prints while it is imported is not what was asked for.
    with redirect_stdout(sys.stderr):
        runnable = load(place)
    runnable.preload()  # while stores open and people type
    return runnable


def _target_of(record: RunRecord) -> Target:
    """The runnable that a run was started with, as far as is known."""
    label = record.info.labels.get(APP_LABEL)
    if label is not None:
        place = Target(label)
        if place.is_here():
            return place
    if named := os.environ.get("TIMBAL_RUNNABLE"):
        return Target(named)
    if label is not None:
        what = f"it was started with {label}, which is not in this folder"
    else:
        what = "its record does not say where its runnable is"
    raise CliError(
        f"run {record.info.run_id} is one of {record.info.runnable!r}, and {what}",
        hint=f"Say where it is: timbal resume {record.info.run_id[:16]} app.py::{record.info.runnable}",
    )


# -- the input ---------------------------------------------------------------------------------------------------------


def _given(runnable: Runnable, what: Input) -> dict[str, Any]:
    """The input that the command gives; raises `CliError`."""
    params, prompt, _ = what
    given: dict[str, Any] = {}
    if what.json is not None:
        value = loose(sys.stdin.read() if what.json == "-" else what.json)
        if not isinstance(value, dict):
            raise CliError("--input is no JSON object", hint='Give it as in --input \'{"name": "shop"}\'.')
        given.update(value)
    if runnable.kind == "Agent":
        if len(params) == 1 and not params[0].startswith("prompt=") and prompt is None:
            params, prompt = [], params[0]
        if prompt is not None:
            given["prompt"] = sys.stdin.read() if prompt == "-" else prompt
    elif prompt is not None:
        raise CliError(f"{runnable.name} is a tool and takes no --prompt", hint="Give its input as NAME=VALUE.")
    properties = _schema(runnable).get("properties", {})
    for name, text in pairs(params, "the input").items():
        known = field_of(properties[name], _schema(runnable)) if name in properties else None
        given[name] = text if known is not None and known.shape == "text" else loose(text)
    return given


def _schema(runnable: Any) -> dict[str, Any]:
    schema: dict[str, Any] = runnable.input_schema
    return schema


def _fill_gaps(screen: Screen, runnable: Runnable, given: dict[str, Any]) -> dict[str, Any]:
    """Ask the person for what a tool needs and was not given."""
    schema = _schema(runnable)
    if runnable.kind == "Agent" or given.keys() >= set(schema.get("required", ())):
        return given
    wanted = {name: part for name, part in schema["properties"].items() if name in schema["required"]}
    screen.text(f"{runnable.name} needs:")
    try:
        return {**given, **Asker(screen).fill_in(field_of({**schema, "properties": wanted}), given)}
    except (EOFError, Cancelled):
        raise KeyboardInterrupt from None


def _first_message(screen: Screen, runnable: Any) -> dict[str, Any]:
    screen.text(f"{runnable.name} · {runnable.model.name} · an empty line or Ctrl-D leaves", "dim")
    try:
        text = screen.ask("> ").strip()
    except EOFError:
        screen.text()
        text = ""
    return {"prompt": text} if text else {}


# -- answers -----------------------------------------------------------------------------------------------------------


def _answers(record: RunRecord, given: Answers) -> dict[str, Any]:
    """The answers by full ids; raises `CliError`."""
    from ..core.facts import Asked, Gated
    from ..core.narrate import asked_event

    if given.reason is not None and not given.deny and given.cancel is None:
        raise CliError("--reason says why something is denied or cancelled", hint="Give it with --deny or --cancel.")
    asked = {fact.id: fact for fact in record.facts if isinstance(fact, Asked | Gated)}
    found: dict[str, Any] = {}

    def keep(option: str, id: str, full: str, value: Any) -> None:
        if full in found:
            raise CliError(f"{option} {id}: its answer is given twice")
        found[full] = value

    for word in given.texts:
        id, equals, text = word.partition("=")
        if not equals:
            raise CliError(f"--answer {word!r} is not of the form ID=JSON", hint="`timbal pending` shows the ids.")
        full = _full_id(asked, id)
        try:
            answer = understand_given(asked_event(asked[full]), text)
        except Unfit as problem:
            raise CliError(f"the answer to {id} does not fit: {problem}", code=FAILED) from None
        keep("--answer", id, full, answer)
    denial = False if given.reason is None else {"approved": False, "reason": given.reason}
    for option, ids, decision in (("--approve", given.approve, True), ("--deny", given.deny, denial)):
        for id in ids:
            full = _full_id(asked, id)
            if not isinstance(asked[full], Gated):
                raise CliError(
                    f"{id} is a question and no approval: {option} does not answer it",
                    hint=f"Give it as --answer {id}=ANSWER.",
                    code=FAILED,
                )
            keep(option, id, full, decision)
    if given.cancel is not None:
        full = _full_id(asked, given.cancel)
        keep("--cancel", given.cancel, full, Cancel(given.reason or "cancelled from the command line"))
    return found


def _full_id(asked: Mapping[str, AnyAsked], given: str) -> str:
    found = [id for id in asked if given and id.startswith(given.lower())]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CliError(f"{given!r} was never asked in this run", hint=_ids(asked), code=1)
    raise CliError(f"several questions begin with {given!r}", hint=_ids({id: asked[id] for id in found}), code=USAGE)


def _ids(asked: Mapping[str, AnyAsked]) -> str:
    return f"Its questions: {', '.join(f'{id[:12]} ({fact.name})' for id, fact in asked.items())}." if asked else ""


def _user() -> str:
    """Who is logged in."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"
