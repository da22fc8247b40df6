"""One of three servers on one PostgreSQL is killed under load: no answer is lost, and every run comes to its end."""

import threading
import time
from collections import Counter
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from .servers import SECONDS, Server, all_of, events, stream
from .test_streams import wait_for_effect

RUNS, CLIENTS = 500, 8


class Clients:
    """People who start runs, answer them, and try the next server where one does not answer."""

    def __init__(self, servers: list[Server]) -> None:
        self._urls = [server.url for server in servers]
        self._numbers = count()
        self.outputs: dict[int, Any] = {}
        self.problems: list[str] = []

    def work(self) -> None:
        with httpx.Client(timeout=SECONDS, trust_env=False) as client:
            while (n := next(self._numbers)) < RUNS:
                try:
                    paused = self._ask(client, n, {"amount": n}, {"Idempotency-Key": f"start-{n}"})
                    answers = {paused["output"]["interaction_id"]: True}
                    self.outputs[n] = self._ask(client, n + 1, {"parent_id": paused["run_id"], "resume": answers}, {})
                except Exception as problem:
                    self.problems.append(f"{n}: {problem!r}")

    def _ask(self, client: httpx.Client, first: int, body: Any, headers: dict[str, str]) -> Any:
        for turn in range(len(self._urls) * 3):
            url = self._urls[(first + turn) % len(self._urls)]
            try:
                response = client.post(f"{url}/pay/run", json=body, headers=headers)
            except httpx.TransportError:
                continue
            assert response.status_code == 200, response.text
            return response.json()
        raise AssertionError("no server answers")


@pytest.mark.slow
def test_no_answer_is_lost_and_no_run_left_when_a_server_is_killed(
    folder: Path, postgres_schema_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(folder, "--store", postgres_schema_url)) for _ in range(3)]
        clients = Clients(servers)
        threads = [threading.Thread(target=clients.work) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        while len(clients.outputs) < RUNS // 3 and not clients.problems:
            threads[0].join(0.01)
        with servers[0].client() as client, stream(client, "/wait/stream", {"name": "held"}) as told:
            held = next(told).data["run_id"]
            wait_for_effect(folder, "waits for held")
            servers[0].kill()
        killed = time.monotonic()
        with servers[1].client() as client:
            while len(runs := client.get(f"/runs/{held}").json()["runs"]) == 1:
                assert time.monotonic() < killed + SECONDS
            took = time.monotonic() - killed
            (folder / "held").touch()
            assert events(all_of(client, f"/runs/{runs[1]['run_id']}/events"))[-1]["status"]["code"] == "success"
        for thread in threads:
            thread.join()
        assert clients.problems == []
        with servers[1].client() as client:
            assert client.get("/pending").json()["items"] == []
    with capsys.disabled():
        print(f"\nanother server has taken over the run of one that was killed after {took:.1f} s")
    assert {n: output["output"] for n, output in clients.outputs.items()} == {
        n: {"paid": True, "amount": n} for n in range(RUNS)
    }
    done = Counter(line for line in (folder / "effects").read_text().splitlines() if not line.endswith("held"))
    assert done.keys() == {f"{what} {n}" for n in range(RUNS) for what in ("asked for", "paid")}
    # What was under way when its process was killed, and not recorded yet, is made again: at most one per client.
    assert sum(times - 1 for times in done.values()) <= CLIENTS
