"""What the harness counts, and how it is shown."""

from collections import defaultdict
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass
class Counts:
    """Of many points or seeds. All but `tried` and `cut_off` are to be 0; `wrong` says which point it was."""

    tried: int = 0
    lost: int = 0  # answers that were accepted and have had no effect, or another one
    again: int = 0  # steps that were run although they were recorded
    doubled: int = 0  # effects done twice under one key with no attempt cut off, or under a second key
    stuck: int = 0  # executions that did not come to their end
    cut_off: int = 0  # attempts at a step that ended before their record: made again, under the same key
    wrong: list[str] = field(default_factory=list)

    def add(self, other: "Counts") -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def check(self) -> None:
        """Fails with the points that went wrong."""
        assert not self.wrong, "\n".join(self.wrong)
        assert (self.lost, self.again, self.doubled, self.stuck) == (0, 0, 0, 0)


def judge(lines: list[dict[str, Any]], expected: set[str], killed: set[int], where: str) -> Counts:
    """What the diary of one execution says. `killed`: the processes whose attempts may be cut off."""
    counts = Counts(tried=1)
    over = next((line for line in lines if line["what"] == "over"), None)
    effects = [line for line in lines if line["what"] == "effect"]
    names = {line["name"] for line in effects}
    if over is None or over["status"] != "success" or over["open"] or names != expected:
        counts.stuck = 1
    recorded = set(over["attempts"]) if over is not None else set()
    settled = over["settled"] if over is not None else {}
    by_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
    done: dict[str, str] = {}  # key by recorded attempt, as it was known at that time
    keys: dict[str, str] = {}
    finished: set[str] = set()
    for line in lines:
        if line["what"] == "effect":
            counts.again += line["key"] in finished
            by_key[line["key"]].append(line)
            keys.setdefault(line["name"], line["key"])
            counts.doubled += keys[line["name"]] != line["key"]
            done[line["attempt"]] = line["key"]
        for attempt in line["attempts"] if line["what"] in ("known", "over") else [line.get("attempt")]:
            if line["what"] in ("known", "recorded", "over") and attempt in done:
                finished.add(done[attempt])
    for attempts in by_key.values():
        unfinished = [line for line in attempts if line["attempt"] not in recorded]
        counts.cut_off += len(unfinished)
        counts.doubled += sum(line["pid"] not in killed for line in unfinished)
        counts.stuck += over is not None and len(attempts) == len(unfinished)
    accepted = [line for line in lines if line["what"] == "accepted"]
    counts.lost += sum(settled.get(line["id"]) != line["value"] for line in accepted)
    counts.lost += sum(line["value"] not in settled.values() for line in lines if line["what"] == "got")
    if counts.lost or counts.again or counts.doubled or counts.stuck:
        counts.wrong.append(where)
    return counts


HEADS = ("", "tried", "answers lost", "steps run again", "effects > 1 per key", "stuck", "attempts cut off")


def show(rows: dict[str, Counts]) -> str:
    """The table, with a line for each kind of torture."""
    table = [HEADS] + [
        (name, *(str(n) for n in (c.tried, c.lost, c.again, c.doubled, c.stuck, c.cut_off))) for name, c in rows.items()
    ]
    widths = [max(len(row[i]) for row in table) for i in range(len(HEADS))]
    lines = []
    for first, *others in table:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        lines.append("  ".join(cells))
    return "\n".join(lines)
