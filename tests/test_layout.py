"""The tree stays readable, and nothing in it belongs to one machine."""

import ast
import re
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES_PER_FILE = 300
LINES_PER_FUNCTION = 40
FOREIGN = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.org|yarnpkg\.com|deb\.debian\.org"  # package registries
    r"|(?<![\w.~}-])/(?:work|root|home)/"  # absolute paths
)


def long_parts(name: str, source: str) -> Iterator[str]:
    """Name the file if it is long, and its long functions."""
    if (length := len(source.splitlines())) > LINES_PER_FILE:
        yield f"{name}: {length} lines"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LINES_PER_FUNCTION:
                yield f"{name}:{node.lineno}: {node.name} has {length} lines"


def foreign_lines(name: str, text: str) -> Iterator[str]:
    """Name the lines that hold a registry host or a path of one machine."""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := FOREIGN.search(line):
            yield f"{name}:{number}: {found[0]}"


def committed_files() -> list[str]:
    """What git has, or would have after `git add --all`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("needs git and a checkout")
    return [name for name in listed.split("\0") if (ROOT / name).is_file()]


@pytest.mark.filterwarnings("default")
def test_long_files_and_functions_are_listed_among_the_warnings() -> None:
    for path in sorted(ROOT.glob("src/timbal/**/*.py")):
        for part in long_parts(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")):
            warnings.warn(f"a place to stop and think: {part}", stacklevel=1)


def test_no_committed_file_names_a_registry_or_a_place_on_one_machine() -> None:
    texts = ((name, (ROOT / name).read_text(encoding="utf-8", errors="replace")) for name in committed_files())
    found = [line for name, text in texts for line in foreign_lines(name, text)]
    assert not found, "\n".join(found)


def test_a_long_function_in_a_long_file_is_found() -> None:
    source = "\n" * 300 + "async def f():\n" + "    pass\n" * 40
    assert list(long_parts("a.py", source)) == ["a.py: 341 lines", "a.py:301: f has 41 lines"]


def test_a_short_file_is_not_found() -> None:
    assert list(long_parts("a.py", "def f():\n" + "    pass\n" * 39)) == []


@pytest.mark.parametrize(
    "parts",
    [("https:", "", "pypi" + ".org", "simple"), ("", "home", "ada", "a.py"), ("sqlite:", "", "", "root", "runs.db")],
    ids=["registry", "home", "path in a URL"],
)
def test_a_foreign_name_is_found(parts: tuple[str, ...]) -> None:
    assert list(foreign_lines("a.py", "\n" + "/".join(parts))) == [f"a.py:2: {FOREIGN.findall('/'.join(parts))[0]}"]


@pytest.mark.parametrize("text", ["see docs/home/README.md", "https://example.com/home/", "~/root/a", "$HOME/root/a"])
def test_other_paths_are_not_found(text: str) -> None:
    assert list(foreign_lines("a.py", text)) == []
