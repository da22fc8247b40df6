"""How a server behaves: its limits, and how long it keeps and waits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    #: The largest body of a request.
    body: int = 28 * 1024 * 1024
    #: The most runs that this process has at work; further ones are told to come again.
    runs: int = 1000
    #: A comment is sent after so long without an event.
    heartbeat: float = 15.0
    #: A reader that takes nothing for so long is let go; it can go on after the last number it has.
    slow_reader: float = 60.0
    #: How long the events of a run are kept after its end; what was recorded of the run stays.
    keep_events: float = 7 * 24 * 3600.0
    #: How long running calls may go on when the server stops; then they are left to another one.
    grace: float = 10.0
    #: Text deltas that come within so long are kept together.
    batch: float = 0.02


#: The largest page of a listing, and the one that is given when none is asked for.
MOST, USUAL = 500, 100
#: The longest that a reader of JSON pages may wait for more, in milliseconds.
LONGEST_WAIT = 60_000
