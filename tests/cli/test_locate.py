"""`app.py::agent` is found, or what is wrong with it is said."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from timbal import Tool
from timbal.cli.errors import CliError
from timbal.cli.locate import Target, load


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder to work in; what is imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


TOOL = "from timbal import Tool\ndef f(): pass\n"


def test_a_file_is_imported_as_a_script_would_import_it() -> None:
    write("folder/beside.py", "name = 'g'")
    write("folder/found_here.py", f"{TOOL}from beside import name\nmain = __name__\ntool = Tool(f, name=name)")
    target = Target("folder/found_here.py::tool")
    assert load(target).name == "g"
    assert sys.modules["found_here"].main == "found_here"


def test_a_name_may_be_left_out_where_there_is_one() -> None:
    write("only_one.py", f"{TOOL}_hidden = Tool(f)\ntool = Tool(f)")
    target = Target("only_one.py")
    assert isinstance(load(target), Tool)
    assert str(target) == "only_one.py::tool"


def test_a_module_is_found_in_the_working_folder() -> None:
    write("package_here/__init__.py", "")
    write("package_here/inner.py", "from .other import tool")
    write("package_here/other.py", f"{TOOL}tool = Tool(f)")
    assert load(Target("package_here.inner::tool")).name == "f"


def test_a_file_named_as_a_module_of_python_does_not_replace_it() -> None:
    import json

    write("json.py", f"{TOOL}tool = Tool(f)")
    assert load(Target("json.py")).name == "f"
    assert sys.modules["json"] is json


HERE = {
    "a file": ("here.py", True),
    "by its absolute path": ("{folder}/here.py", True),
    "a file in a folder": ("sub/there.py", True),
    "a module": ("sub.there", True),
    "a file elsewhere": ("../elsewhere.py", False),
    "a file that is missing": ("missing.py", False),
    "a module of Python": ("json", False),
}


@pytest.mark.parametrize(("place", "here"), HERE.values(), ids=HERE)
def test_only_what_lies_in_the_working_folder_is_taken_from_a_record(place: str, here: bool, tmp_path: Path) -> None:
    write("here.py", "")
    write("sub/there.py", "")
    (tmp_path.parent / "elsewhere.py").touch()
    assert Target(f"{place.format(folder=tmp_path)}::a").is_here() is here


WRONG = {
    "a missing file": ("absent.py::a", "there is no file absent.py"),
    "a missing module": ("absent_module::a", "there is no module absent_module"),
    "no place": ("::a", "names no runnable"),
    "no name after the colons": ("two.py::", "names no runnable"),
    "one colon": ("two.py:one", "names no runnable"),
    "a name that is not there": ("two.py::three", "two.py has no 'three'. The runnables there: one, two."),
    "no name where there are two": ("two.py", "two.py has 2 runnables: one, two. Say which: two.py::one"),
    "a function": (
        "two.py::f",
        "no Agent or Tool. A function becomes one with Tool(f).",
    ),
    "something else": ("two.py::number", "two.py::number is of type int, and no Agent or Tool."),
    "a file without one": ("none.py", "none.py has no runnable (an Agent or a Tool)"),
    "a file that ends the process": ("exits.py", "exits.py ended the process while it was imported: sys.exit(3)"),
}


@pytest.mark.parametrize(("target", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said(target: str, message: str) -> None:
    write("two.py", f"{TOOL}number = 1\none = Tool(f)\ntwo = Tool(f, name='g')")
    write("none.py", "")
    write("exits.py", "import sys; sys.exit(3)")
    with pytest.raises(CliError) as caught:
        load(Target(target))
    assert message in f"{caught.value}. {caught.value.hint}"
    assert caught.value.code == 2


BROKEN = {
    "an exception": ("def f():\n    1 / 0\nf()\n", "ZeroDivisionError: division by zero", "line 2, in f"),
    "a syntax error": ("def f(:\n", "SyntaxError", "line 1"),
    "a missing import": ("import absent_thing\n", "ModuleNotFoundError: No module named 'absent_thing'", "line 1"),
    "an agent that can't be": ("from timbal import Agent\n\nAgent('llm', 'openai/x')\n", "can't be the name", "line 3"),
    "an error with a cause": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('so') from e\n",
        "ValueError: so",
        "ZeroDivisionError",
    ),
}


@pytest.mark.parametrize(("source", "error", "place"), BROKEN.values(), ids=BROKEN)
def test_an_error_in_the_file_is_told_with_its_own_lines_and_none_of_ours(source: str, error: str, place: str) -> None:
    write("broken.py", source)
    with pytest.raises(CliError) as caught:
        load(Target("broken.py::agent"))
    details = caught.value.details
    assert str(caught.value) == "broken.py can't be imported"
    assert error in details
    assert place in details
    assert "timbal/" not in details
    assert "importlib" not in details


def test_a_file_of_a_package_is_told_to_be_named_as_a_module() -> None:
    write("in_package.py", "from .other import tool")
    with pytest.raises(CliError) as caught:
        load(Target("in_package.py::tool"))
    assert "package.module::agent" in caught.value.hint
