"""Words that come in pieces are set as lines."""

from io import StringIO

import pytest
from rich.console import Console

from timbal.cli.flow import Flow

SET = {
    "a line breaks between words": (["one two thr", "ee four five"], "one two three four\nfive\n"),
    "a word of many pieces": (["in", "dis", "pen", "sable words are here"], "indispensable words\nare here\n"),
    "line breaks and indents stay": (["a\n", "  b\n\n", "c"], "a\n  b\n\nc\n"),
    "a word that is too long stays whole": (["x" * 25 + " y"], "x" * 25 + "\ny\n"),
    "wide characters part anywhere": (["日本語の文章" * 2], "日本語の文章日本語の\n文章\n"),
    "no line break is added to one": (["done\n"], "done\n"),
    "nothing is nothing": ([""], ""),
}


@pytest.mark.parametrize(("pieces", "shown"), SET.values(), ids=SET)
def test_at_a_terminal_lines_break_between_words(pieces: list[str], shown: str) -> None:
    file = StringIO()
    flow = Flow(Console(file=file, force_terminal=True, width=20), "")
    for piece in pieces:
        flow.write(piece)
    flow.end()
    assert file.getvalue() == shown


def test_elsewhere_words_are_as_they_came() -> None:
    file = StringIO()
    flow = Flow(Console(file=file, width=20), "")
    for piece in ("one two three four five six ", "seven"):
        flow.write(piece)
    flow.end()
    assert file.getvalue() == "one two three four five six seven\n"
