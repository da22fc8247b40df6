"""A stream survives: cut anywhere, read on from any process, live or later, over kills and restarts."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from .servers import SECONDS, Server, Told, all_of, events, stream


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folder}/runs.db"
    url: str = request.getfixturevalue("postgres_schema_url")
    return url


@pytest.fixture
def pair(folder: Path, store: str) -> Iterator[tuple[Server, Server]]:
    """Two servers on one store."""
    with Server(folder, "--store", store) as one, Server(folder, "--store", store) as other:
        yield one, other


def wait_for_effect(folder: Path, line: str) -> None:
    until = time.monotonic() + SECONDS
    while line not in ((folder / "effects").read_text() if (folder / "effects").exists() else ""):
        assert time.monotonic() < until, f"{line!r} did not happen"


def test_replay_equals_live(client: httpx.Client) -> None:
    with client.stream("POST", "/assistant/stream", json={"prompt": "go"}) as response:
        live = response.read()
    assert client.get(f"/runs/{response.headers['x-run-id']}/events").read() == live


def test_a_stream_cut_after_every_event_is_read_on_from_another_process(pair: tuple[Server, Server]) -> None:
    with pair[0].client() as one, pair[1].client() as other:
        whole = all_of(one, "/count/stream", {"to": 198})
        count = len(whole)
        assert count > 200
        run_id = whole[0].data["run_id"]
        assert events(whole)[-1]["output"] == "".join(f"{n} " for n in range(198))
        for cut in range(count):
            rest = all_of(other, f"/runs/{run_id}/events", headers={"Last-Event-ID": str(cut)})
            assert rest == whole[cut:]


def test_a_live_run_is_read_from_another_process_as_it_happens(folder: Path, pair: tuple[Server, Server]) -> None:
    with pair[0].client() as one, pair[1].client() as other:
        with stream(one, "/count/stream", {"to": 20, "waits": True}) as told:
            first = next(told)
        # The connection is cut here; the run goes on.
        with stream(other, f"/runs/{first.data['run_id']}/events?after=1") as told:
            seen = [first, *(next(told) for _ in range(5))]
            (folder / "go").touch()
            seen += told
    assert [one.id for one in seen[:-1]] == list(range(1, len(seen)))
    assert events(seen)[-1]["output"] == "".join(f"{n} " for n in range(20))


def test_json_pages_hold_the_same_events_and_wait_for_the_next_ones(folder: Path, pair: tuple[Server, Server]) -> None:
    with pair[0].client() as one, pair[1].client() as other:
        with stream(one, "/count/stream", {"to": 20, "waits": True}) as told:
            run_id = next(told).data["run_id"]
        seen: list[Told] = []
        after, end = 0, None
        while end is None:
            query = {"after": str(after), "limit": "7", "wait_ms": "20000"}
            page = other.get(f"/runs/{run_id}/events", params=query).json()
            seen += [Told(None, item["seq"], item["event"]) for item in page["items"]]
            after, end = page["next"], page["end"]
            (folder / "go").touch()
        assert seen == all_of(one, f"/runs/{run_id}/events")[:-1]
        assert end == {"type": "end", "run_id": run_id}


def test_a_page_without_news_is_empty_after_its_time(client: httpx.Client) -> None:
    run_id = client.post("/pay/run", json={"amount": 1}).json()["run_id"]
    told = client.get(f"/runs/{run_id}/events", headers={"Accept": "application/json"}).json()
    page = client.get(f"/runs/{run_id}/events", params={"after": told["next"], "wait_ms": "0"}).json()
    assert (page["items"], page["end"]["type"]) == ([], "end")


def test_a_reader_that_never_reads_stops_nobody(client: httpx.Client) -> None:
    with client.stream("POST", "/count/stream", json={"to": 20_000}) as idle:
        run_id = idle.headers["x-run-id"]
        told = all_of(client, f"/runs/{run_id}/events")
    assert told[-1].name == "end"


def test_runs_that_no_server_started_keep_no_events(client: httpx.Client) -> None:
    response = client.get("/runs/nothing/events")
    assert response.status_code == 404


def test_after_a_restart_the_same_items_wait_and_the_same_answers_work(folder: Path, store: str) -> None:
    with Server(folder, "--store", store) as first, first.client() as client:
        paused = client.post("/pay/run", json={"amount": 5}).json()
        waiting = client.get("/pending").json()
        told = all_of(client, f"/runs/{paused['run_id']}/events")
        first.kill()
    with Server(folder, "--store", store) as second, second.client() as client:
        assert client.get("/pending").json() == waiting
        assert all_of(client, f"/runs/{paused['run_id']}/events") == told
        item = waiting["items"][0]
        answered = client.post(f"/pending/{item['run_id']}/{item['id']}", json={"value": True})
        assert answered.status_code == 202
        result = events(all_of(client, f"/runs/{answered.json()['next_run_id']}/events"))[-1]
        assert result["output"] == {"paid": True, "amount": 5}
    assert (folder / "effects").read_text() == "asked for 5\npaid 5\n"


def test_a_stream_of_a_run_whose_server_was_killed_says_which_run_went_on(
    folder: Path, pair: tuple[Server, Server]
) -> None:
    one, other = pair
    with one.client() as client, other.client() as second:
        with stream(client, "/wait/stream", {"name": "go"}) as told:
            run_id = next(told).data["run_id"]
            wait_for_effect(folder, "waits for go")
        with stream(second, f"/runs/{run_id}/events") as told:
            next(told)
            one.kill()
            (folder / "go").touch()
            output = second.post("/wait/run", json={"parent_id": run_id, "resume": {}}).json()
            assert output["status"]["code"] == "success"
            *_, last = told
        assert (last.name, last.data["run_id"]) == ("continued", output["run_id"])
        assert events(all_of(second, f"/runs/{output['run_id']}/events"))[-1]["output"] == output["output"]
    assert (folder / "effects").read_text() == "waits for go\nhas go\n"


def test_a_server_that_stops_ends_its_streams_with_a_number_to_go_on_after(folder: Path, store: str) -> None:
    with Server(folder, "--store", store, "--grace", "20") as first:
        with first.client() as client, stream(client, "/count/stream", {"to": 10, "waits": True}) as told:
            begun = [next(told)]
            first.process.terminate()
            begun += told  # it ends, although the run has not
            (folder / "go").touch()
        assert first.process.wait(SECONDS) in (0, -signal.SIGTERM)
    run_id = begun[0].data["run_id"]
    assert begun[-1].name is None
    with Server(folder, "--store", store) as second, second.client() as client:
        rest = all_of(client, f"/runs/{run_id}/events", headers={"Last-Event-ID": str(begun[-1].id)})
    assert events(begun + rest)[-1]["output"] == "0 1 2 3 4 5 6 7 8 9 "


def test_a_call_that_outlasts_the_grace_is_left_and_goes_on_elsewhere(folder: Path, store: str) -> None:
    with (
        Server(folder, "--store", store, "--grace", "0") as first,
        first.client() as client,
        stream(client, "/wait/stream", {"name": "go"}) as told,
    ):
        run_id = next(told).data["run_id"]
        wait_for_effect(folder, "waits for go")
        first.stop()
    (folder / "go").touch()
    with Server(folder, "--store", store) as second, second.client() as client:
        output = client.post("/wait/run", json={"parent_id": run_id, "resume": {}}).json()
        assert output["status"]["code"] == "success"
        assert all_of(client, f"/runs/{run_id}/events")[-1].name == "continued"
    assert (folder / "effects").read_text() == "waits for go\nhas go\n"


@pytest.mark.slow
def test_several_processes_of_one_server_share_runs_and_streams(folder: Path, store: str) -> None:
    with Server(folder, "--store", store, "--workers", "3") as server:
        runs = []
        for n in range(12):
            with server.client() as client:  # a connection of its own: any of the processes
                runs.append(client.post("/pay/run", json={"amount": n}).json())
        for n, paused in enumerate(runs):
            with server.client() as client:
                id = paused["output"]["interaction_id"]
                output = client.post("/pay/run", json={"parent_id": paused["run_id"], "resume": {id: True}}).json()
                assert output["output"] == {"paid": True, "amount": n}
            with server.client() as client:
                assert events(all_of(client, f"/runs/{output['run_id']}/events"))[-1]["output"] == output["output"]
    assert len((folder / "effects").read_text().splitlines()) == 24


def test_events_of_old_runs_are_dropped_and_readers_are_told() -> None:
    from timbal.server import reading
    from timbal.stores.events import Piece

    dropped = Piece([], 8, 7, True)
    end = reading.end_of("r", dropped, 3)
    assert end is not None
    assert json.loads(end.frame().split(b"data: ")[1]) == {"run_id": "r", "first": 8}
