"""One process of the demo: it works on the run until that asks or ends, shows what happens, and exits.

`python -m timbal.demo.process FOLDER MODEL [RUN_ID RESUME]`, with `RESUME` in JSON. What it leaves is in the folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from ..types.events import DeltaEvent, Event, InteractionEvent, OutputEvent, StartEvent
from ..types.message import Message
from .assistant import MODEL_LABEL, REQUEST, assistant
from .screen import Screen


async def work(screen: Screen, model: str, call: dict[str, Any]) -> int:
    """Run the assistant and show it; gives the exit code."""
    output = None
    async for event in assistant(model)(**call):
        show(screen, event)
        output = event
    return 1 if isinstance(output, OutputEvent) and output.status.code == "error" else 0


def show(screen: Screen, event: Event) -> None:
    """A line for each event that tells something new."""
    match event:
        case StartEvent(path="assistant.set_up_database"):
            again = " again" if event.parent_run_id else ""
            screen.line("tool", f"set_up_database starts{again}, at its first line")
        case DeltaEvent(item={"type": "custom", "data": effect}):
            screen.line("step", str(effect), "green")
        case InteractionEvent():
            screen.line("pause", f"{event.kind} has a question; it is committed, the run is paused", "yellow")
        case OutputEvent(path="assistant.llm", output=Message() as message):
            screen.line("assistant", message.collect_text(), "bold")
        case OutputEvent(error=dict() as error, path=path) if path != "assistant.llm":
            screen.line("error", f"{event.path}: {error['type']}: {error['message']}", "red")
        case _:
            pass


def main(arguments: list[str]) -> int:
    """Work in the folder; with a run id and a resume, go on with that run."""
    folder, model, *rest = arguments
    os.chdir(folder)
    screen = Screen()
    screen.heading(f"process {os.getpid()}")
    new = {"prompt": REQUEST, "labels": {MODEL_LABEL: model}}
    call = {"parent_id": rest[0], "resume": json.loads(rest[1])} if rest else new
    return asyncio.run(work(screen, model, call))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
