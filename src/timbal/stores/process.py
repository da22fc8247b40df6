"""The name of a process that stays its own: it tells whether a lease's holder has gone."""

from __future__ import annotations

import os
from pathlib import Path


def process_name() -> str:
    """This process among all processes of all hosts: `<machine and container>/<pid>/<start>`."""
    return f"{_place()}/{os.getpid()}/{_started(os.getpid())}"


def is_gone(name: str) -> bool:
    """Whether this was a process beside this one, of the same machine and container, that is no longer there."""
    place, pid, started = name.split("/")[:3]
    if place != _place() or place == "-" or started == "-":
        return False
    return _started(int(pid)) != started


def _place() -> str:
    """The boot of this machine and the process namespace: two containers never share it, even under one host name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return "-"


def _started(pid: int) -> str:
    """When a process started, in the kernel's ticks: with its id that names it for good; "-" for one that has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "-"
    return state[19] if state[0] not in "ZX" else "-"
