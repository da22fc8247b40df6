"""What a run's record tells over HTTP."""

import subprocess
from pathlib import Path
from typing import Any

import httpx

from .servers import TIMBAL, Server, stream
from .test_access import KEY, bearer


def test_a_record_tells_what_happened_in_order(client: httpx.Client) -> None:
    paused = client.post("/assistant/run", json={"prompt": "go"}).json()
    (asked,) = paused["metadata"]["pending_interactions"]
    resume = {"parent_id": paused["run_id"], "resume": {asked["interaction_id"]: "a"}}
    done = client.post("/assistant/run", json=resume).json()
    record = client.get(f"/runs/{done['run_id']}").json()
    assert record["input"] == {"prompt": "go"}
    assert [(entry["what"], entry["name"]) for entry in record["timeline"]] == [
        ("started", "assistant"),
        ("call", "llm"),
        ("call", "ask_user"),
        ("question", "ask_user"),
        ("ended", ""),
        ("resumed", ""),
        ("settled", "ask_user"),
        ("call", "llm"),
        ("ended", ""),
    ]
    settled = next(entry for entry in record["timeline"] if entry["what"] == "settled")
    assert (settled["value"], settled["run_id"], settled["depth"]) == ("a", done["run_id"], 2)
    assert settled["waited"] >= 0


def test_the_turns_of_a_conversation_are_linked(client: httpx.Client) -> None:
    first = client.post("/who/run", json={}).json()
    second = client.post("/who/run", json={"parent_id": first["run_id"]}).json()
    assert client.get(f"/runs/{first['run_id']}").json()["parent_id"] is None
    assert client.get(f"/runs/{second['run_id']}").json()["parent_id"] == first["run_id"]


def test_a_record_says_whose_events_can_be_read(folder: Path) -> None:
    with Server(folder) as server, server.client() as client:
        run_id = client.post("/pay/run", json={"amount": 3}).json()["run_id"]
        (item,) = client.get("/pending").json()["items"]
        answer = [TIMBAL, "resume", run_id, "house.py::pay", "--answer", f"{item['id']}=true"]
        subprocess.run(answer, cwd=folder, check=True, stdin=subprocess.DEVNULL)
        record = client.get(f"/runs/{run_id}").json()
        assert record["next_run_id"] in [run["run_id"] for run in record["runs"]]
        assert record["told"] == [run_id]


def test_nothing_that_is_told_of_a_gated_call_holds_what_its_gate_hides(folder: Path) -> None:
    told: list[str] = []
    hear = {"response": [lambda response: told.append(response.read().decode())]}
    with Server(folder, "--jwt-key", KEY) as server, server.client(event_hooks=hear) as client:
        ada, eve = bearer("ada", "run"), bearer("eve", "answer", "finance")
        run_id = client.post("/refund/run", json={"amount": 5, "card": "4111-1111"}, headers=ada).json()["run_id"]
        (item,) = client.get("/pending", headers=eve).json()["items"]
        path = f"/pending/{run_id}/{item['id']}"
        answer = {"value": {"approved": True, "override_input": {"card": "4222-2222"}}}
        assert client.post(path, json=answer, headers=eve).status_code == 202
        assert client.post(path, json={"value": False}, headers=eve).status_code == 409
        settled = client.get(path, headers=eve).json()["settled"]
        assert settled["value"] == {"approved": True, "override_input": {"card": "[redacted]"}}
        record = client.get(f"/runs/{run_id}", headers=ada).json()
        assert record["settled"] == [settled]
        assert record["input"] == {"amount": 5, "card": "[redacted]"}
        client.get(f"/runs/{record['next_run_id']}/events", headers=ada)
    assert [text for text in told if "4111" in text or "4222" in text] == []


def test_a_record_hides_what_a_gate_hides_before_the_gate_has_recorded_it(folder: Path) -> None:
    with (
        Server(folder) as server,
        server.client() as client,
        stream(client, "/think/stream", {"amount": 1, "card": "4111-1111"}) as told,
    ):
        run_id = next(told).data["run_id"]
        with server.client() as other:
            record = other.get(f"/runs/{run_id}")
        assert record.json()["input"] == {"amount": 1, "card": "[redacted]"}
        assert "4111" not in record.text
        (folder / "go").touch()
        assert list(told)[-1].name == "end"


def test_who_answered_and_who_cancelled_is_told_with_the_way_it_came(folder: Path) -> None:
    ada, eve = bearer("ada", "run"), bearer("eve", "answer")
    with (
        Server(folder, "--jwt-key", KEY) as server,
        server.client() as client,
        server.client(headers=bearer("boss", "admin")) as listener,
        stream(listener, "/pending/stream") as news,
    ):
        assert next(news).name == "snapshot"

        def paused() -> tuple[str, str]:
            output = client.post("/pay/run", json={"amount": 1}, headers=ada).json()
            assert next(news).name == "opened"
            return output["run_id"], output["output"]["interaction_id"]

        def told(run_id: str) -> list[tuple[Any, ...]]:
            record = client.get(f"/runs/{run_id}", headers=ada).json()
            (settled,) = record["settled"]
            heard = next(news).data
            assert {name: heard[name] for name in settled} == settled
            ends = [entry for entry in record["timeline"] if entry["what"] == "ended"]
            return [(one["by"] and one["by"]["sub"], one["channel"]) for one in (settled, ends[-1])]

        run_id, id = paused()
        assert client.post(f"/pending/{run_id}/{id}", json={"value": True}, headers=eve).status_code == 202
        assert told(run_id)[0] == ("eve", "http")
        run_id, id = paused()
        cancel = {"value": {"type": "timbal.cancel", "reason": "no"}}
        answered = client.post(f"/pending/{run_id}/{id}", json=cancel, headers=eve).json()
        client.get(f"/runs/{answered['next_run_id']}/events", headers=ada)
        assert told(run_id) == [("eve", "http")] * 2
        run_id, id = paused()
        assert client.post(f"/cancel/{run_id}", headers=ada).status_code == 204
        assert told(run_id) == [("ada", "http")] * 2
        with stream(client, "/wait/stream", {"name": "never"}, headers=ada) as events:
            run_id = next(events).data["run_id"]
            assert client.post(f"/cancel/{run_id}", headers=ada).status_code == 204
            assert list(events)[-1].name == "end"
        ended = client.get(f"/runs/{run_id}", headers=ada).json()["timeline"][-1]
        assert (ended["by"]["sub"], ended["channel"]) == ("ada", "http")
