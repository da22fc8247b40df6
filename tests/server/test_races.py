"""Different answers, or an answer and a cancelling, reach two servers at the same moment: one of them counts."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import pytest

from .servers import Server

pytestmark = pytest.mark.slow

ROUNDS, PEOPLE = 4, 12


@pytest.fixture(params=["sqlite", "postgres"])
def servers(request: pytest.FixtureRequest, folder: Path) -> Iterator[list[Server]]:
    """Two on one store."""
    url = request.getfixturevalue("postgres_schema_url") if request.param == "postgres" else "sqlite:///house.db"
    with ExitStack() as stack:
        yield [stack.enter_context(Server(folder, "--store", url)) for _ in range(2)]


def at_once(works: list[Callable[[], httpx.Response]]) -> list[httpx.Response]:
    """All of them, as near to the same moment as threads come."""
    gate, given = threading.Barrier(len(works)), []

    def work(one: Callable[[], httpx.Response]) -> None:
        gate.wait()
        given.append(one())

    threads = [threading.Thread(target=work, args=(one,)) for one in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return given


def test_s15_of_different_answers_over_two_servers_one_counts_and_the_others_are_told_which(
    servers: list[Server],
) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for server in servers]
        for _ in range(ROUNDS):
            asked = clients[0].post("/late/run", json={"seconds": 3600}).json()
            run_id, id = asked["run_id"], asked["output"]["interaction_id"]

            answers = [(client, f"person {n}") for n, client in zip(range(PEOPLE), cycle(clients), strict=False)]
            given = at_once(
                [
                    partial(client.post, f"/pending/{run_id}/{id}", json={"value": value})
                    if n % 3
                    else partial(client.post, "/late/run", json={"parent_id": run_id, "resume": {id: value}})
                    for n, (client, value) in enumerate(answers)
                ]
            )
            codes = Counter(response.status_code for response in given)
            assert codes[409] == PEOPLE - 1, codes
            settled = clients[1].get(f"/pending/{run_id}/{id}").json()["settled"]
            told = {receipt["value"] for r in given if r.status_code == 409 for receipt in r.json()["receipts"]}
            assert told == {settled["value"]}
            done = _result(clients[0], settled["next_run_id"])
            assert done["output"] == settled["value"]


def test_s15_an_answer_and_a_cancelling_over_two_servers_do_not_both_count(servers: list[Server]) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for server in servers]
        for n in range(ROUNDS):
            asked = clients[0].post("/pay/run", json={"amount": n}).json()
            run_id, id = asked["run_id"], asked["output"]["interaction_id"]
            given = at_once(
                [
                    partial(clients[0].post, f"/pending/{run_id}/{id}", json={"value": True}),
                    partial(clients[1].post, f"/cancel/{run_id}", json={"reason": "no more"}),
                ]
            )
            (answered,) = [response for response in given if response.status_code != 204]
            item = clients[1].get(f"/pending/{run_id}/{id}").json()
            assert item["state"] in ("answered", "cancelled")
            assert answered.status_code == (202 if item["state"] == "answered" else 410), (item, answered.text)


def _result(client: httpx.Client, run_id: str) -> Any:
    """What a run came to, once it has."""
    for _ in range(100):
        page = client.get(f"/runs/{run_id}/events", params={"wait_ms": 5000, "after": 0}).json()
        if page["end"] is not None:
            break
    return client.get(f"/runs/{run_id}").json()
