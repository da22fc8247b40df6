"""A process that resumes runs: `answerer.py URL LOG RUNNABLE`, driven by lines on its standard input.

It prints `ready`; reads `{"parent_id", "resume", "times", "gate"}`; resumes as often as it is told, all at once; and
prints the outputs as one line of JSON. With a `gate`, the first tool to reach it prints `entered` and reads a line.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.scenarios.programs import house
from tests.stores.urls import store_at


async def gate(what: str) -> None:
    print("entered", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


async def main() -> None:
    store = store_at(sys.argv[1])
    log = house.FileLines(Path(sys.argv[2]))
    await store.pending()
    print("ready", flush=True)
    command: dict[str, Any] = json.loads(sys.stdin.readline())
    more = {"gate": gate} if command.get("gate") else {}

    def fresh() -> Any:
        return getattr(house, sys.argv[3])(store, log, **more)

    resumes = [
        fresh()(parent_id=command["parent_id"], resume=command["resume"]).collect()
        for _ in range(command.get("times", 1))
    ]
    outs = await asyncio.gather(*resumes)
    print(json.dumps([{**out.model_dump(mode="json"), "receipts": out.receipts} for out in outs]), flush=True)
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main())
