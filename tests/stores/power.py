"""What a disk holds after a power cut: what a process wrote, as strace saw it, and had synced."""

import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

SECTOR = 512
#: The system calls that say what was written, synced and told; `-xx` makes strace show every byte.
STRACE = ("-f", "-y", "-xx", "-s", "10000000", "-e", "trace=openat,pwrite64,write,ftruncate,unlink,fsync,fdatasync")

_CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+)")
_FD = re.compile(r"(\d+)<([^>]*)>")


class Call(NamedTuple):
    """One system call that came off: `path` is that of its file or folder."""

    name: str
    path: str
    data: bytes = b""
    number: int = 0


def calls_in(log: Iterable[str]) -> Iterator[Call]:
    """The calls of a log, each where it ended; those of several threads may lie in one another."""
    begun: dict[str, str] = {}
    for line in log:
        thread, _, text = line.rstrip("\n").partition(" ")
        text = text.strip()
        if text.endswith("<unfinished ...>"):
            begun[thread] = text.removesuffix("<unfinished ...>").rstrip()
            continue
        if (resumed := re.match(r"<\.\.\. \w+ resumed>", text)) is not None:
            text = begun.pop(thread) + text[resumed.end() :]
        if (found := _CALL.match(text)) is not None and int(found[3]) >= 0 and (call := _call(found)) is not None:
            yield call


def _call(found: re.Match[str]) -> Call | None:
    name, given, result = found[1], found[2], found[0].rpartition("= ")[2]
    if name == "unlink":
        return Call(name, _bytes(given).decode())
    if name == "openat":
        return Call(name, _bytes(given.split(", ")[1]).decode()) if "O_CREAT" in given else None
    target = _FD.match(given)
    assert target is not None, found[0][:200]
    path = re.sub(r"\\x(..)", lambda byte: chr(int(byte[1], 16)), target[2])
    rest = given[target.end() :].lstrip(", ")
    match name:
        case "fsync" | "fdatasync":
            return Call(name, path)
        case "ftruncate":
            return Call(name, path, number=int(rest, 0))
        case "write":
            return Call(name, path, _bytes(rest.rpartition(", ")[0]))
        case _:
            shown, _, offset = rest.rpartition(", ")
            assert int(result) >= 0
            return Call(name, path, _bytes(shown.rpartition(", ")[0]), int(offset))


def _bytes(shown: str) -> bytes:
    return bytes.fromhex(shown.strip('"').replace("\\x", ""))


class Disk:
    """Files of one folder: what of them is sure, and what was done since their last sync, or that of the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._sure: dict[str, bytearray] = {}
        self._unsure: dict[str, list[Call]] = {}
        self._there: set[str] = set()
        self._entries: list[tuple[str, bool]] = []

    def apply(self, call: Call) -> None:
        """Take in a call; others than those about files of the folder change nothing."""
        if call.path == self._folder and call.name in ("fsync", "fdatasync"):
            self._settle_entries(self._entries)
            self._entries = []
        if str(Path(call.path).parent) != self._folder:
            return
        name = Path(call.path).name
        match call.name:
            case "openat":
                if name not in self._now_there():
                    self._entries.append((name, True))
                    self._sure[name], self._unsure[name] = bytearray(), []
            case "unlink":
                self._entries.append((name, False))
            case "fsync" | "fdatasync":
                for one in self._unsure[name]:
                    _write(self._sure[name], one)
                self._unsure[name] = []
            case _:
                self._unsure[name].append(call)

    def _now_there(self) -> set[str]:
        there = {*self._there}
        for name, is_there in self._entries:
            (there.add if is_there else there.discard)(name)
        return there

    def _settle_entries(self, entries: Iterable[tuple[str, bool]]) -> None:
        for name, is_there in entries:
            (self._there.add if is_there else self._there.discard)(name)

    def after_a_cut(self, chance: random.Random, keeps: float) -> dict[str, bytearray]:
        """Files with their content: each thing that is not sure is kept with this probability, or half of it."""
        there = {*self._there}
        for name, is_there in self._entries:
            if chance.random() < keeps:
                (there.add if is_there else there.discard)(name)
        files = {}
        for name in there:
            content = bytearray(self._sure[name])
            for one in self._unsure[name]:
                if chance.random() < keeps:
                    _write(content, _torn(one, chance) if 0 < keeps < 1 else one)
            files[name] = content
        return files


def _torn(call: Call, chance: random.Random) -> Call:
    """The write, or some of its sectors."""
    sectors = len(call.data) // SECTOR
    return (
        call
        if sectors < 2 or chance.random() < 0.5
        else call._replace(data=call.data[: chance.randrange(sectors) * SECTOR])
    )


def _write(content: bytearray, call: Call) -> None:
    if len(content) < call.number:
        content.extend(bytes(call.number - len(content)))
    if call.name == "ftruncate":
        del content[call.number :]
    else:
        content[call.number : call.number + len(call.data)] = call.data
