"""Runs the code blocks of a documentation page as its reader would."""

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tests.docs.blocks import Block, find_blocks

RUN = {"python", "bash", "console"}
SHOWN = {"", "css", "html", "http", "javascript", "json", "markdown", "mermaid", "sql", "text", "toml", "yaml"}
MARKS = {"file", "no-run", "output"}
SECONDS_PER_BLOCK = 60


def run_page(page: str, markdown: str) -> None:
    """Check all blocks of a page, then run them in order in the current directory.

    `PageError` tells of the first that fails. Python blocks share a module and an event loop, so a name, a task
    or a server of one is there in the next.
    """
    blocks = list(find_blocks(page, markdown))
    for block in blocks:
        _check(block)
    with _module() as module, _process_groups() as groups:
        asyncio.run(_run(blocks, module.__dict__, groups))


def _check(block: Block) -> None:
    if block.language not in RUN | SHOWN:
        raise block.error(f"unknown language {block.language!r}; known are {', '.join(sorted(RUN | SHOWN - {''}))}")
    if unknown := block.marks.keys() - MARKS:
        raise block.error(f"unknown after the language: {', '.join(sorted(unknown))}")
    if block.marks.get("no-run") == "":
        raise block.error('no-run needs a reason, as in no-run="needs a key"')
    if block.marks.get("file") == "":
        raise block.error('file needs a name, as in file="app.py"')
    if block.language == "python":
        _compile(block)
    if block.language == "json":
        _parse_json(block)


def _compile(block: Block) -> CodeType:
    source = "\n" * (block.line - 1) + block.text  # so that a traceback names the line of the page
    try:
        code: CodeType = compile(source, block.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        raise block.error(error.msg, line=error.lineno) from error
    return code


def _parse_json(block: Block) -> None:
    try:
        json.loads(block.text)
    except json.JSONDecodeError as error:
        raise block.error(error.msg, line=block.line + error.lineno - 1) from error


async def _run(blocks: list[Block], namespace: dict[str, Any], groups: list[int]) -> None:
    printed: str | None = None
    for block in blocks:
        if "output" in block.marks:
            _compare(block, expected=block.text, printed=printed)
        elif "file" in block.marks:
            _write_file(block)
            printed = None
        elif block.language not in RUN or "no-run" in block.marks:
            printed = None
        else:
            async with asyncio.timeout(SECONDS_PER_BLOCK):
                printed = await (_python(block, namespace) if block.language == "python" else _shell(block, groups))


def _write_file(block: Block) -> None:
    """Make the file that the reader is to make."""
    Path(block.marks["file"]).write_text(block.text, encoding="utf-8")


def _compare(block: Block, *, expected: str, printed: str | None) -> None:
    """Ask for equal text; as in doctest, `...` stands for anything."""
    if printed is None:
        raise block.error("this output follows no block that was run")
    if not doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS):
        raise block.error(f"expected\n{expected}but this was printed\n{printed}")


async def _python(block: Block, namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            outcome = eval(_compile(block), namespace)
            if inspect.isawaitable(outcome):
                await outcome
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == block.page]
        raise block.error(f"{type(error).__name__}: {error}", line=lines[-1]) from error
    return printed.getvalue()


async def _shell(block: Block, groups: list[int]) -> str:
    commands, shown = _split_console(block.text) if block.language == "console" else (block.text, "")
    with tempfile.TemporaryFile() as output:  # not a pipe: a server left in the background would keep it open
        process = await asyncio.create_subprocess_exec(
            *("bash", "-eu", "-c", commands),
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        groups.append(process.pid)
        code = await process.wait()
        output.seek(0)
        printed = output.read().decode()
    if code != 0:
        raise block.error(f"exit code {code}\n{printed}")
    if shown:
        _compare(block, expected=shown, printed=printed)
    return printed


def _split_console(text: str) -> tuple[str, str]:
    """Return the commands, which start with `$ ` and go on with `> `, and the other lines, which they print."""
    lines = text.splitlines(keepends=True)
    commands = [line[2:] for line in lines if line.startswith(("$ ", "> "))]
    return "".join(commands), "".join(line for line in lines if not line.startswith(("$ ", "> ")))


@contextlib.contextmanager
def _module() -> Iterator[ModuleType]:
    """A module for the page's names: what resolves annotations looks for it in `sys.modules`."""
    module = ModuleType("documentation_page")
    sys.modules[module.__name__] = module
    try:
        yield module
    finally:
        del sys.modules[module.__name__]


@contextlib.contextmanager
def _process_groups() -> Iterator[list[int]]:
    """A list of process groups, all of which are ended with the page."""
    groups: list[int] = []
    try:
        yield groups
    finally:
        for group in groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
