"""What may be shown at a terminal: the words of models, tools and people don't control it."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Sequence

#: Escape sequences, whole: colours, cursor movements, titles, links, the clipboard.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"
)
#: What is left of them, and other controls, are shown as this.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
_BIDI = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_INVISIBLE = [0x00AD, 0x200B, 0x2060, 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080)]
_SHOWN: dict[int, str] = {
    **dict.fromkeys((*_CONTROLS, *_BIDI, *range(0xD800, 0xE000)), REPLACEMENT),
    **dict.fromkeys(_INVISIBLE, ""),
    ord("\t"): "    ",
    **dict.fromkeys((0x0A, 0x85, 0x2028, 0x2029), "\n"),
}
_IN_JSON = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *_BIDI)}


def plain(text: str) -> str:
    """The text with its line breaks, and nothing else that a terminal would obey or a reader would not see."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _SEQUENCE.sub("", text).translate(_SHOWN)


def one_line(text: str) -> str:
    """The text on one line."""
    return " ".join(plain(text).split())


def plain_json(text: str) -> str:
    """JSON that means the same, without characters that a terminal would obey (JSON escapes the others itself)."""
    return text if text.isascii() else text.translate(_IN_JSON)


def command(*words: str) -> str:
    """A command of ours as it can be pasted into a shell, by the name with which this process was started."""
    started = sys.argv[0]
    name = "timbal" if shutil.which("timbal") == started else started
    return join([name, *words])


def join(words: Sequence[str]) -> str:
    """The words quoted for a shell, where they need it."""
    return shlex.join(words)
