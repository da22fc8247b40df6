"""The page's modules that need no browser, run by Node on what real runs have told."""

import asyncio
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.page.apps.office import assistant
from tests.page.site import WEB
from timbal.server.endpoints import json_response
from timbal.server.records import run_record
from timbal.stores import MemoryStore

TESTS = Path(__file__).parent / "node"


async def record() -> dict[str, Any]:
    """The events of a run that asks three people, of those that go on with it, and the record of them all."""
    store = MemoryStore()
    assistant._store = store
    runs = []

    async def run(**call: Any) -> Any:
        handle = assistant(**call)
        runs.append([event.model_dump(mode="json") async for event in handle])
        return await handle.collect()

    output = await run(prompt="Everything at once")
    answers: dict[str, Any] = {"confirm": True, "approval": False, "ask_user": "Europe"}
    for asked in output.pending:
        output = await run(parent_id=output.run_id, resume={asked.id: answers[asked.kind]})
    kept = run_record(await store.get(output.run_id), assistant, [])
    return {"runs": runs, "record": json.loads(bytes(json_response(kept).body))}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recorded") / "runs.json"
    with ThreadPoolExecutor() as pool:  # the loop of playwright may run in this thread
        file.write_text(json.dumps(pool.submit(asyncio.run, record()).result()))
    return file


@pytest.mark.parametrize("name", [file.name for file in sorted(TESTS.glob("*.test.js"))])
def test_its_tests_pass(name: str, recorded: Path) -> None:
    environment = {**os.environ, "TIMBAL_WEB": str(WEB), "TIMBAL_RECORDED": str(recorded)}
    done = subprocess.run(
        ["node", "--test", TESTS / name], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
