"""The inbox over HTTP: listed, live, and answered in the background."""

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .servers import TIMBAL, Server, Told, all_of, events, stream
from .test_access import KEY, bearer


def asked(client: httpx.Client, name: str = "pay", **input: Any) -> tuple[str, str]:
    """The run and the id of a new item."""
    output = client.post(f"/{name}/run", json=input or {"amount": 1}).json()
    return output["run_id"], output["output"]["interaction_id"]


def label() -> dict[str, str]:
    return {"test": uuid.uuid4().hex}


def test_open_items_are_listed_in_pages_with_their_events(client: httpx.Client) -> None:
    labels = label()
    made = [asked(client, amount=n, labels=labels) for n in range(5)]
    found: list[Any] = []
    after: str | None = ""
    while after is not None:
        query = {"label": f"test={labels['test']}", "limit": "2", **({"after": after} if after else {})}
        page = client.get("/pending", params=query).json()
        found += page["items"]
        after = page["next"]
    assert [(item["run_id"], item["id"]) for item in found] == made
    assert [item["event"]["payload"] for item in found] == [{"amount": n} for n in range(5)]
    assert {item["kind"] for item in found} == {"pay"}
    assert client.get("/pending", params={"label": "test=none"}).json() == {"items": [], "next": None}


def test_an_answer_is_taken_and_the_run_goes_on_in_the_background(client: httpx.Client) -> None:
    run_id, id = asked(client, amount=3)
    response = client.post(f"/pending/{run_id}/{id}", json={"value": True})
    assert response.status_code == 202
    told = response.json()
    assert [(r["id"], r["state"], r["value"]) for r in told["receipts"]] == [(id, "accepted", True)]
    assert response.headers["x-run-id"] == told["next_run_id"]
    output = events(all_of(client, f"/runs/{told['next_run_id']}/events"))[-1]
    assert output["output"] == {"paid": True, "amount": 3}
    item = client.get(f"/pending/{run_id}/{id}").json()
    assert (item["state"], item["settled"]["value"]) == ("answered", True)
    assert item["settled"]["next_run_id"] == told["next_run_id"]
    assert item["event"]["interaction_id"] == id


def test_the_same_answer_again_is_taken_again_and_has_no_second_effect(client: httpx.Client, server: Server) -> None:
    run_id, id = asked(client, amount=4)
    first = client.post(f"/pending/{run_id}/{id}", json={"value": False})
    all_of(client, f"/runs/{first.json()['next_run_id']}/events")
    again = client.post(f"/pending/{run_id}/{id}", json={"value": False}, headers={"Idempotency-Key": "x"})
    assert again.status_code == 202
    assert again.json()["receipts"][0]["state"] == "already_settled"
    assert again.json()["next_run_id"] == first.json()["next_run_id"]


def test_an_answer_with_the_same_key_gets_the_same_response_from_every_server(
    folder: Path, postgres_schema_url: str
) -> None:
    store = ("--store", postgres_schema_url)
    key, other = ({"Idempotency-Key": name} for name in ("a key", "another key"))
    others_only = [TIMBAL, "serve", "house.py::wait", "--port", "0", *store]
    with (
        Server(folder, *store) as one,
        Server(folder, *store) as second,
        Server(folder, command=others_only) as without,
        one.client() as client,
        second.client() as elsewhere,
        without.client() as stranger,
    ):
        for first in (client, stranger):
            for value in (False, {"type": "timbal.cancel"}):
                run_id, id = asked(client)
                path = f"/pending/{run_id}/{id}"
                accepted = first.post(path, json={"value": value}, headers=key)
                assert (accepted.status_code, accepted.json()["receipts"][0]["state"]) == (202, "accepted")
                for again in (client, elsewhere, stranger):
                    response = again.post(path, json={"value": value}, headers=key)
                    assert response.json()["receipts"] == accepted.json()["receipts"]
                    if first is client:
                        assert response.content == accepted.content
                        assert response.headers["location"] == accepted.headers["location"]
                    refused = again.post(path, json={"value": True}, headers=key)
                    assert (refused.status_code, "another answer" in refused.json()["detail"]) == (422, True)
                    same = again.post(path, json={"value": value}, headers=other)
                    assert same.json()["receipts"][0]["state"] == "already_settled"
                    assert again.post(path, json={"value": True}, headers=other).status_code in (409, 410)


def test_answers_with_one_key_at_once_get_one_response(client: httpx.Client, server: Server) -> None:
    run_id, id = asked(client)
    answers: list[httpx.Response] = []

    def answer() -> None:
        with server.client() as one:
            path, key = f"/pending/{run_id}/{id}", {"Idempotency-Key": "k"}
            answers.append(one.post(path, json={"value": True}, headers=key))

    threads = [threading.Thread(target=answer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {response.status_code for response in answers} == {202}
    assert len({response.content for response in answers}) == 1


def test_a_decision_that_is_over_before_it_comes_decides_nothing(folder: Path) -> None:
    with Server(folder, "--jwt-key", KEY) as server, server.client(headers=bearer("eve", "admin", "finance")) as client:
        run_id = client.post("/refund/run", json={"amount": 1, "card": "4"}).json()["run_id"]
        path = f"/pending/{run_id}/{client.get('/pending').json()['items'][0]['id']}"
        late = client.post(path, json={"value": {"approved": True, "expires_at": 1}})
        assert (late.status_code, late.json()["receipts"][0]["state"]) == (422, "expired")
        assert client.get(path).json()["state"] == "pending"
        assert client.post(path, json={"value": True}).status_code == 202


def test_whoever_was_slower_learns_who_was_faster_and_with_what(client: httpx.Client) -> None:
    run_id, id = asked(client)
    first = client.post(f"/pending/{run_id}/{id}", json={"value": True}).json()
    lost = client.post(f"/pending/{run_id}/{id}", json={"value": False})
    assert lost.status_code == 409
    (receipt,) = lost.json()["receipts"]
    assert (receipt["value"], receipt["run_id"], receipt["same_value"]) == (True, first["next_run_id"], False)


def test_many_answers_at_once_have_one_winner(client: httpx.Client, server: Server) -> None:
    run_id, id = asked(client)
    answers: list[httpx.Response] = []

    def answer(value: bool) -> None:
        with server.client() as one:
            answers.append(one.post(f"/pending/{run_id}/{id}", json={"value": value}))

    threads = [threading.Thread(target=answer, args=(n % 2 == 0,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted({response.status_code for response in answers}) == [202, 409]
    assert len({response.json()["next_run_id"] for response in answers if response.status_code == 202}) == 1


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({"value": {"count": 11, "address": {"street": "Main", "code": "12345"}}}, 422, "/value/count"),
        ({"value": {"count": 1, "address": {"street": "M", "code": "12345"}}}, 422, "/value/address/street"),
        ({}, 422, "/value"),
        ({"value": 1, "by": {"sub": "root"}}, 422, "/value"),
        ([], 422, ""),
    ],
)
def test_a_bad_answer_is_refused_with_a_pointer_and_the_item_stays_open(
    client: httpx.Client, body: Any, status: int, pointer: str
) -> None:
    run_id, id = asked(client, "order", customer="ada")
    refused = client.post(f"/pending/{run_id}/{id}", json=body)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (status, pointer)
    assert client.get(f"/pending/{run_id}/{id}").json()["state"] == "pending"


def test_an_item_that_was_cancelled_or_is_not_there_can_not_be_answered(client: httpx.Client) -> None:
    run_id, id = asked(client)
    cancelled = client.post(f"/pending/{run_id}/{id}", json={"value": {"type": "timbal.cancel", "reason": "no"}})
    assert cancelled.status_code == 202
    assert client.post(f"/pending/{run_id}/{id}", json={"value": True}).status_code == 410
    assert client.post(f"/pending/{run_id}/nothing", json={"value": True}).status_code == 404
    assert client.post(f"/pending/nothing/{id}", json={"value": True}).status_code == 404


def test_an_item_that_has_expired_can_not_be_answered(client: httpx.Client) -> None:
    run_id, id = asked(client, "late", seconds=0.001)
    assert client.post(f"/pending/{run_id}/{id}", json={"value": "yes"}).status_code == 410


def test_a_new_message_makes_the_old_question_one_of_the_past(client: httpx.Client) -> None:
    paused = events(all_of(client, "/assistant/stream", {"prompt": "go"}))[-1]
    client.post("/assistant/run", json={"prompt": "something else", "parent_id": paused["run_id"]})
    id = paused["output"]["interaction_id"]
    assert client.post(f"/pending/{paused['run_id']}/{id}", json={"value": "a"}).status_code == 410


def test_looking_at_an_item_answers_nothing(client: httpx.Client) -> None:
    run_id, id = asked(client)
    client.get(f"/pending/{run_id}/{id}", params={"value": "true"})
    client.head(f"/pending/{run_id}/{id}")
    assert client.get(f"/pending/{run_id}/{id}").json()["state"] == "pending"


def snapshot(told: Iterator[Told]) -> list[Any]:
    items: list[Any] = []
    for one in told:
        assert one.name == "snapshot"
        items += one.data["items"]
        if one.data["complete"]:
            break
    return items


def test_the_live_inbox_shows_what_is_there_and_then_what_changes(client: httpx.Client, server: Server) -> None:
    labels = label()
    run_id, id = asked(client, amount=1, labels=labels)
    with server.client() as listener, stream(listener, f"/pending/stream?label=test={labels['test']}") as told:
        assert [item["id"] for item in snapshot(told)] == [id]
        new_run, new_id = asked(client, amount=2, labels=labels)
        asked(client, amount=3)  # not among those that are listened for
        opened = next(told)
        assert (opened.name, opened.data["run_id"], opened.data["id"]) == ("opened", new_run, new_id)
        next_run_id = client.post(f"/pending/{run_id}/{id}", json={"value": True}).json()["next_run_id"]
        settled = next(told)
        assert (settled.name, settled.data["id"], settled.data["state"]) == ("settled", id, "answered")
        assert (settled.data["next_run_id"], settled.data["by"]) == (next_run_id, None)
        assert (settled.data["value"], settled.data["channel"]) == (True, "http")


def test_the_live_inbox_sees_what_other_processes_do(folder: Path, postgres_schema_url: str) -> None:
    for store in (f"sqlite:///{folder}/runs.db", postgres_schema_url):
        with (
            Server(folder, "--store", store) as one,
            Server(folder, "--store", store) as other,
            one.client() as client,
            other.client() as listener,
            stream(listener, "/pending/stream") as told,
        ):
            assert snapshot(told) == []
            run_id, id = asked(client)
            assert next(told).data["id"] == id
            client.post(f"/pending/{run_id}/{id}", json={"value": True})
            assert next(told).data["state"] == "answered"
