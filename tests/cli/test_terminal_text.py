"""What models, tools and people write does not control the terminal."""

import json
import sys

import pytest

from timbal.terminal import command, one_line, plain, plain_json

PLAIN = {
    "ordinary words": ("Hello, wörld 🎉 日本", "Hello, wörld 🎉 日本"),
    "line breaks stay": ("a\nb\r\nc\rd\u2028e", "a\nb\nc\nd\ne"),
    "a tab is spaces": ("a\tb", "a    b"),
    "colours": ("\x1b[1;31mred\x1b[0m", "red"),
    "colours, in one byte": ("\x9b31mred", "red"),
    "the screen cleared": ("\x1b[2J\x1b[Ha", "a"),
    "a title": ("\x1b]0;owned\x07a", "a"),
    "the clipboard": ("\x1b]52;c;cm0gLXJm\x1b\\a", "a"),
    "a link": ("\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"),
    "half a sequence": ("a\x1b", "a\ufffd"),
    "a backspace": ("yes\x08\x08\x08no", "yes\ufffd\ufffd\ufffdno"),
    "bell and null": ("a\x07\x00", "a\ufffd\ufffd"),
    "text turned round": ("a\u202egpj.exe\u202c", "a\ufffdgpj.exe\ufffd"),
    "isolated text": ("\u2066a\u2069", "\ufffda\ufffd"),
    "letters that nobody sees": ("a\u200b\ufeffb\U000e0041", "ab"),
    "joined emoji stay": ("👩\u200d💻", "👩\u200d💻"),
    "rich's markup is text": ("[red]a[/red] [link=x]", "[red]a[/red] [link=x]"),
    "half a surrogate pair": ("a\ud800", "a\ufffd"),
}


@pytest.mark.parametrize(("text", "shown"), PLAIN.values(), ids=PLAIN)
def test_only_words_and_line_breaks_are_left(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n\n  b\x1b[2J\tc ") == "a b c"


def test_json_for_programs_says_the_same_and_controls_nothing() -> None:
    value = {"text": "ü \x9b31m \u202e\x7f \x1b"}
    line = plain_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(line) == value
    assert not any(character in line for character in "\x9b\u202e\x7f\x1b")


def test_a_command_can_be_pasted_into_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/my programs/timbal"])
    assert command("resume", "a'b", "--store", "sqlite:///x y.db") == (
        "'/opt/my programs/timbal' resume 'a'\"'\"'b' --store 'sqlite:///x y.db'"
    )
