"""The command `timbal`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._version import __version__

app = typer.Typer(
    help="Agents and tools that pause for a person and resume in another process.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """The entry point."""
    app()


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


@app.command()
def demo(
    answer: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Answer the next question with this. Give it again for the one after."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Go on with a demo that was left, in its folder.")
    ] = None,
) -> None:
    """See a run ask, lose its process, and go on in another one."""
    from .demo.person import AnswerError
    from .demo.story import FolderError, play

    try:
        code = play(answer or [], resume)
    except AnswerError as problem:
        raise typer.BadParameter(str(problem), param_hint="--answer") from None
    except FolderError as problem:
        raise typer.BadParameter(str(problem), param_hint="--resume") from None
    raise typer.Exit(code)
