"""The test of the pages can fail, and says where."""

from pathlib import Path

import pytest

from tests.docs.blocks import PageError, find_blocks
from tests.docs.run_page import run_page

TRUE_PAGES = {
    "an await in a block": "```python\nimport asyncio\nawait asyncio.sleep(0)\n```",
    "names live on in later blocks": "```python\na = 1\n```\n```python\nassert a == 1\n```",
    "annotations are resolved in the page's module": (
        "```python\nfrom typing import get_type_hints\nclass A: ...\nclass B:\n    a: 'A'\n"
        "assert get_type_hints(B) == {'a': A}\n```"
    ),
    "a task lives on in later blocks": (
        "```python\nimport asyncio\ntask = asyncio.create_task(asyncio.sleep(0, 7))\n```\n"
        "```python\nassert await task == 7\n```"
    ),
    "shell and Python share a folder": "```bash\ntouch a\n```\n```python\nimport os\nassert os.listdir() == ['a']\n```",
    "a server in the background ends with the page": "```bash\nsleep 1000 &\n```",
    "output that is as shown": "```python\nprint(7)\n```\n```text output\n7\n```",
    "output with a part that varies": "```python\nprint('run', id(7))\n```\n```text output\nrun ...\n```",
    "a console that prints what is shown": "```console\n$ echo a \\\n> b\na b\n```",
    "a file that the reader makes": (
        '```python file="a.py"\nimport sys\nprint(sys.argv[1])\n```\n```console\n$ python a.py b\nb\n```'
    ),
    "a command that is not run, with a reason": '```bash no-run="needs a key"\nfalse\n```',
    "text, diagrams and JSON": '```text\n$ false\n```\n```mermaid\n?\n```\n```json\n{"a": 1}\n```\n```\nfalse\n```',
    "a block in a block": "````markdown\n```python\nassert False\n```\n````",
    "a block in a list": "1. Do\n\n   ```python\n   if True:\n       pass\n   ```",
}

FALSE_PAGES = {
    "a failing assertion": ("\n```python\na = 1\nassert a == 2, a\n```", "page.md:4: AssertionError: 1"),
    "a function of an earlier block that raises": (
        "```python\ndef f():\n    1 / 0\n```\n```python\nf()\n```",
        "page.md:3: ZeroDivisionError: division by zero",
    ),
    "a syntax error": ("```python\n\nif\n```", "page.md:3: invalid syntax"),
    "a syntax error in a block that is not run": ('```python no-run="a sketch"\nif\n```', "page.md:2: invalid syntax"),
    "a command that fails before the last": ("```bash\necho so\nfalse\ntrue\n```", "page.md:2: exit code 1\nso\n"),
    "a shell variable that is not set": ("```bash\necho $ABSENT\n```", "page.md:2: exit code"),
    "another output than shown": ("```python\nprint(7)\n```\n```text output\n8\n```", "page.md:5: expected\n8\nbut"),
    "more output than shown": ("```python\nprint(7, 8)\n```\n```text output\n7\n```", "page.md:5: expected\n7\nbut"),
    "a console that prints something else": ("```console\n$ echo 7\n8\n```", "page.md:2: expected\n8\nbut"),
    "output of nothing": ("```text output\n7\n```", "page.md:2: this output follows no block"),
    "broken JSON": ('```json\n{\n"a": }\n```', "page.md:3: Expecting value"),
    "no reason for not running": ("```bash no-run\nfalse\n```", "page.md:2: no-run needs a reason"),
    "a file without a name": ("```python file\nfalse\n```", "page.md:2: file needs a name"),
    "a file of Python that is none": ('```python file="a.py"\nif\n```', "page.md:2: invalid syntax"),
    "a mistyped mark": ('```bash norun="x"\nfalse\n```', "page.md:2: unknown after the language: norun"),
    "a mistyped language": ("```pyhton\nfalse\n```", "page.md:2: unknown language 'pyhton'"),
    "a fence that is never closed": ("\n```python\na = 1\n", "page.md:2: this code block is never closed"),
}


@pytest.fixture(autouse=True)
def _directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", TRUE_PAGES.values(), ids=TRUE_PAGES)
def test_a_true_page_passes(page: str) -> None:
    run_page("page.md", page)


@pytest.mark.parametrize(("page", "message"), FALSE_PAGES.values(), ids=FALSE_PAGES)
def test_a_false_page_fails_with_file_and_line(page: str, message: str) -> None:
    with pytest.raises(PageError) as caught:
        run_page("page.md", page)
    assert str(caught.value).startswith(message)


def test_a_block_knows_its_place_and_its_marks() -> None:
    (block,) = find_blocks("page.md", 'Text\n\n~~~bash no-run="needs a key"\nls\n~~~\n')
    assert (block.line, block.language, block.marks, block.text) == (4, "bash", {"no-run": "needs a key"}, "ls\n")
