"""The commands and their options."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .._version import __version__
from .errors import FAILED, LEFT, CliError


class _AsTyped:
    """A text, or several, as the command line gives them."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        return () if value is None and (param.multiple or param.nargs == -1) else value


def _as_typed(parameters: list[Any]) -> list[Any]:
    """Parameters that are texts and flags: for others typer loads pydantic, which takes longer than all the rest."""
    for parameter in parameters:
        parameter._runtime_param = _AsTyped()
    return parameters


class QuickGroup(TyperGroup):
    """The commands together."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _as_typed(super().get_params(ctx))


class QuickCommand(TyperCommand):
    """A command of texts and flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _as_typed(super().get_params(ctx))


app = typer.Typer(
    cls=QuickGroup,
    help="Agents and tools that pause for a person and resume in another process.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

store_app = typer.Typer(cls=QuickGroup, no_args_is_help=True, rich_markup_mode=None)
app.add_typer(
    store_app, name="store", help="Look after what is kept: check it, bring it up to date, remove what is old."
)

StoreUrl = Annotated[
    str | None, typer.Argument(metavar="URL", help="The store. Else TIMBAL_STORE, or .timbal/runs.db.")
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where runs are kept. Else the runnable's own store, TIMBAL_STORE, or .timbal/runs.db.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who answers. Else who is logged in.")]
Roles = Annotated[
    list[str] | None, typer.Option("--role", metavar="ROLE", help="A role of theirs, for questions with an audience.")
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="A label of the run. May be given again.")
]
Only = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="Only runs with this label. May be given again."),
]
OfRunnable = Annotated[
    str | None, typer.Option("--runnable", metavar="NAME", help="Only of the runnable of this name.")
]
App = Annotated[
    str | None, typer.Option("--app", metavar="TARGET", help="Look into the store of this runnable, as app.py::agent.")
]
Limit = Annotated[str, typer.Option("--limit", metavar="N", help="How many to show at most.")]
After = Annotated[str | None, typer.Option("--after", metavar="NEXT", help="Go on where an earlier page ended.")]
RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="The id of a run, or its first digits.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"timbal-hitl {__version__}")
        raise typer.Exit


@app.callback()
def timbal(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(cls=QuickCommand)
def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="app.py::agent or package.module::agent; ::agent where there are several."
        ),
    ],
    params: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="The input of a tool, or an agent's prompt.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", "-p", metavar="TEXT", help="What to tell an agent; - reads it from stdin.")
    ] = None,
    input: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="The input as a JSON object; - reads it from stdin.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="RUN_ID", help="Go on with the conversation of an earlier run.")
    ] = None,
    store: Store = None,
    label: Labels = None,
    by: By = None,
    role: Roles = None,
    json: Json = False,
) -> None:
    """Run an agent or a tool, and answer what it asks.

    Without a prompt, at a terminal, you talk with an agent until you leave.
    """
    from . import running

    given = running.Input(params or [], prompt, input)
    options = running.Options(store, by, role or [], json)
    _finish(lambda: running.run(target, given, after, label or [], options))


@app.command(cls=QuickCommand)
def resume(
    run_id: RunId,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET", help="Its runnable, app.py::agent. Else what its record or TIMBAL_RUNNABLE says."
        ),
    ] = None,
    answer: Annotated[
        list[str] | None,
        typer.Option(metavar="ID=JSON", help="Answer this question; what is no JSON is text. May be given again."),
    ] = None,
    approve: Annotated[list[str] | None, typer.Option(metavar="ID", help="Approve this. May be given again.")] = None,
    deny: Annotated[list[str] | None, typer.Option(metavar="ID", help="Deny this. May be given again.")] = None,
    cancel: Annotated[
        str | None, typer.Option(metavar="ID", help="End the run for good instead of answering this question.")
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why it is denied or cancelled.")] = None,
    store: Store = None,
    by: By = None,
    role: Roles = None,
    json: Json = False,
) -> None:
    """Go on with a run: give it answers, or be asked; one that failed or was interrupted is taken up again."""
    from . import running

    options = running.Options(store, by, role or [], json)
    given = running.Answers(answer or [], approve or [], deny or [], cancel, reason)
    _finish(lambda: running.resume(run_id, target, given, options))


@app.command(cls=QuickCommand)
def pending(
    runnable: OfRunnable = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only questions of this kind.")] = None,
    label: Only = None,
    limit: Limit = "20",
    after: After = None,
    store: Store = None,
    app: App = None,
    json: Json = False,
) -> None:
    """List what waits for an answer, oldest first."""
    from . import listing

    query = listing.Query(runnable, label or [], limit, after, listing.Where(store, app), json)
    _finish(lambda: listing.pending(kind, query))


@app.command(cls=QuickCommand)
def runs(
    status: Annotated[
        str | None,
        typer.Option("--status", help="Only these: running, paused, parked, continued, success, error or cancelled."),
    ] = None,
    runnable: OfRunnable = None,
    label: Only = None,
    limit: Limit = "20",
    after: After = None,
    store: Store = None,
    app: App = None,
    json: Json = False,
) -> None:
    """List runs, newest first."""
    from . import listing

    query = listing.Query(runnable, label or [], limit, after, listing.Where(store, app), json)
    _finish(lambda: listing.runs(status, query))


@app.command(cls=QuickCommand)
def show(run_id: RunId, store: Store = None, app: App = None, json: Json = False) -> None:
    """Show what happened in a run: calls, waits, who answered, and how long it took."""
    from . import listing, showing

    _finish(lambda: showing.show(run_id, listing.Where(store, app), json))


@app.command(cls=QuickCommand)
def grants(
    run_id: RunId,
    revoke: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="End this decision: no later call passes by it.")
    ] = None,
    store: Store = None,
    app: App = None,
    by: By = None,
    role: Roles = None,
    json: Json = False,
) -> None:
    """List decisions that stand for a whole conversation, up to this run, and revoke them."""
    from . import granting, listing, running

    who = running.Options(store, by, role or [], json).principal
    _finish(lambda: granting.grants(run_id, revoke or [], listing.Where(store, app), who, json))


@app.command(cls=QuickCommand)
def worker(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="Whose runs: app.py for all runnables in it, or app.py::agent.")
    ],
    store: Store = None,
    concurrency: Annotated[str, typer.Option(metavar="N", help="How many runs at a time.")] = "16",
    attempts: Annotated[
        str, typer.Option(metavar="N", help="After how many runs in a row whose process died one is parked.")
    ] = "5",
    grace: Annotated[str, typer.Option(metavar="SECONDS", help="How long runs may finish when it is stopped.")] = "10",
) -> None:
    """Go on with runs that crashed, were answered elsewhere, or have expired questions; start as many as you like."""
    from . import working

    _finish(lambda: working.work(target, store, concurrency, attempts, grace))


@app.command(cls=QuickCommand)
def serve(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET", help="app.py::agent; app.py serves all in it. Else what TIMBAL_RUNNABLE says."
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[str, typer.Option("--port", help="The port to listen at; 0 takes a free one.")] = "4444",
    store: Store = None,
    workers: Annotated[str, typer.Option("--workers", metavar="N", help="How many processes serve.")] = "1",
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="URL", help="A site whose pages may call. May be given again."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name that this server answers for. May be given again."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TEXT", help="What callers send as Bearer token. Else TIMBAL_TOKEN."),
    ] = None,
    jwt_key: Annotated[
        str | None,
        typer.Option("--jwt-key", metavar="KEY", help="A secret or a PEM, or @file: JWTs signed with it are believed."),
    ] = None,
    jwt_audience: Annotated[str | None, typer.Option("--jwt-audience", help="The aud that JWTs must have.")] = None,
    jwt_issuer: Annotated[str | None, typer.Option("--jwt-issuer", help="The iss that JWTs must have.")] = None,
    jwt_leeway: Annotated[
        str, typer.Option("--jwt-leeway", metavar="SECONDS", help="By how much clocks may differ.")
    ] = "30",
    static: Annotated[
        Path | None,
        typer.Option("--static", metavar="DIR", help="Files of your own for the page: custom.js, custom.css."),
    ] = None,
    grace: Annotated[
        str, typer.Option("--grace", metavar="SECONDS", help="How long running calls may go on when it stops.")
    ] = "10",
    logs: Annotated[str, typer.Option("--logs", metavar="text|json", help="The form of the log, on stderr.")] = "text",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen where others can reach it, without credentials.")
    ] = False,
) -> None:
    """Serve agents and tools over HTTP."""
    from . import serving
    from .options import number, one_of

    def work() -> int:
        what = serving.Serving(
            serving.target_of(target),
            host,
            number("--port", port, 0, 65535),
            store,
            number("--workers", workers, 1, 64),
            allow_host or [],
            allow_origin or [],
            jwt_audience,
            jwt_issuer,
            number("--jwt-leeway", jwt_leeway, 0, 3600),
            insecure,
            one_of("--logs", logs, ("text", "json")),
            number("--grace", grace, 0, 3600),
            str(static) if static is not None else None,
        )
        return serving.serve(what, token, jwt_key)

    _finish(work)


@store_app.command(cls=QuickCommand)
def check(url: StoreUrl = None, json: Json = False) -> None:
    """Read all that is kept, and say what is there and what is wrong with it."""
    from . import storing

    _finish(lambda: storing.check(url, json))


@store_app.command(cls=QuickCommand)
def migrate(url: StoreUrl = None, json: Json = False) -> None:
    """Bring what is kept to the newest schema; whatever opens a store does the same."""
    from . import storing

    _finish(lambda: storing.migrate(url, json))


@store_app.command(cls=QuickCommand)
def prune(
    url: StoreUrl = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="What finished so long ago: 30d, 12h, 90m or 45s.")
    ] = None,
    abandoned: Annotated[
        str | None,
        typer.Option("--abandoned-older-than", metavar="AGE", help="Also what is open, and was left so long ago."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; say what would be.")] = False,
    json: Json = False,
) -> None:
    """Remove what has finished and is old, for good. What is open is never removed unless you say so."""
    from . import storing

    _finish(lambda: storing.prune(url, older_than, abandoned, dry_run, json))


@app.command()
def demo(
    answer: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Answer the next question with this. Give it again for the one after."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Go on with a demo that was left, in its folder.")
    ] = None,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Play it here, process by process, without a browser.")
    ] = False,
    scripted: Annotated[
        bool, typer.Option("--scripted", help="Use the scripted assistant, even where there is a key for a model.")
    ] = False,
    chaos: Annotated[
        bool, typer.Option("--chaos", help="Kill workers in the middle of a payment, again and again, and count.")
    ] = False,
    kills: Annotated[int, typer.Option(metavar="N", min=1, help="With --chaos: how many.")] = 100,
    json: Annotated[bool, typer.Option("--json", help="With --chaos: print the table as JSON.")] = False,
) -> None:
    """See a run ask, lose its process, and go on in another one: in a browser, or here."""
    if chaos:
        from ..demo.chaos import play_chaos

        raise typer.Exit(play_chaos(kills, as_json=json))
    from ..demo.person import AnswerError
    from ..demo.story import FolderError, play

    try:
        if terminal or answer or not sys.stdin.isatty() or not _has_server():
            code = play(answer or [], resume, scripted=scripted)
        else:
            code = _demo_page(resume, scripted)
    except AnswerError as problem:
        raise typer.BadParameter(str(problem), param_hint="--answer") from None
    except FolderError as problem:
        raise typer.BadParameter(str(problem), param_hint="--resume") from None
    raise typer.Exit(code)


def _has_server() -> bool:
    return find_spec("uvicorn") is not None and find_spec("fastapi") is not None


def _demo_page(folder: Path | None, scripted: bool) -> int:
    from ..demo import page
    from . import serving

    folder, model = page.lay_out(folder, scripted=scripted)
    port = page.free_port()
    page.introduce(folder, model, port)
    os.chdir(folder)
    return serving.serve(serving.Serving(page.TARGET, port=port, logs="quiet"), None, None)


def _finish(work: Callable[[], int]) -> None:
    """Do the work and exit with its code; what can't be done is told in a few lines."""
    try:
        code = work()
    except CliError as problem:
        from .screen import Screen

        Screen().error(str(problem), problem.hint, problem.details)
        code = problem.code
    except KeyboardInterrupt:
        typer.echo(err=True)
        code = LEFT
    except BrokenPipeError:  # whoever read our output has left
        from .screen import forget_stdout

        forget_stdout()
        code = FAILED
    raise typer.Exit(code)
