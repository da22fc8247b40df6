"""Requests that nobody means well by: each is answered with what is wrong, on each store, and harms nobody."""

import socket
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest

from .servers import SECONDS, Server, all_of, events


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("odd")
    store = f"sqlite:///{folder}/runs.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        store = f"{url}{'&' if '?' in url else '?'}schema=test_{uuid.uuid4().hex}"
    with Server(folder, "--store", store) as server:
        yield server


@pytest.fixture
def http(house: Server) -> Iterator[httpx.Client]:
    with house.client() as client:
        yield client


ODD = ["\0", "a\0b", "\ud7ff\ue000", "\uffff", "\U0010ffff", "\u202e", "e\u0301", "'", '"', "%", "\\", "a" * 10_000]


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_odd_texts_are_kept_as_they_are_or_refused(http: httpx.Client, text: str) -> None:
    labels = {} if "\0" in text else {"odd": text, f"a{text}": "1"}
    paused = http.post("/assistant/run", json={"prompt": text, "labels": labels})
    assert paused.status_code == 200, paused.text
    run_id, asked = paused.json()["run_id"], paused.json()["output"]["interaction_id"]
    answered = http.post(f"/pending/{run_id}/{asked}", json={"value": text}, headers={"Idempotency-Key": "odd"})
    assert answered.status_code == 202, answered.text
    record = http.get(f"/runs/{run_id}").json()
    assert (record["input"], record["labels"]) == ({"prompt": text}, labels)
    assert record["settled"][0]["value"] == text
    for other in ({"odd": "a\0"}, {"a\0": "odd"}):
        assert http.post("/who/run", json={"labels": other}).status_code == 422
    paused = http.post("/pay/run", json={"amount": 1}).json()
    for wrong in (paused["run_id"] + text, paused["run_id"] + "\0"):
        assert http.get(f"/runs/{quote(wrong, safe='')}").status_code == 404
        assert http.get(f"/runs/{quote(wrong, safe='')}/events").status_code == 404
        assert http.post("/pay/run", json={"parent_id": wrong, "resume": {}}).status_code == 404
    cancelled = http.post(f"/cancel/{paused['run_id']}", json={"reason": text})
    assert cancelled.status_code == 204, cancelled.text
    assert http.get(f"/runs/{paused['run_id']}").json()["settled"][0]["value"] == text
    for path in ("/runs", "/pending"):
        for query in ({"runnable": text}, {"label": f"odd={text}"}, {"label": f"{text}=odd"}, {"after": text}):
            assert http.get(path, params=query).status_code in (200, 422), (path, query)
    assert http.get("/runs", params={"status": text}).status_code in (200, 422)
    assert http.get("/pending", params={"kind": text}).status_code in (200, 422)
    for name, value in ((text, 1), ("a", text)):
        for parent in ({}, {"parent_id": paused["run_id"]}, {"parent_id": text}):
            refused = http.post("/pay/run", json={"amount": 1, "resume": {name: value}, **parent})
            assert refused.status_code in (404, 410, 422), refused.text


@pytest.mark.parametrize("id", ["%00", "a%00b", "%ff", "%2e%2e", "'", "x" * 5000, "0" * 32, "-1", "null"])
def test_ids_that_nobody_has_lead_nowhere(http: httpx.Client, id: str) -> None:
    for path in (f"/runs/{id}", f"/runs/{id}/events", f"/pending/{id}/{id}"):
        assert http.get(path).status_code == 404, path
        assert http.get(path).headers["content-type"] == "application/problem+json"
    assert http.get(f"/runs/{id}/events", params={"wait_ms": "1"}).status_code == 404
    assert http.post(f"/pending/{id}/{id}", json={"value": True}).status_code == 404
    assert http.post(f"/cancel/{id}").status_code == 404


@pytest.mark.parametrize("path", ["/runs", "/runs/x", "/pending", "/pending/x/y", "/pay/run", "/cancel/x", "/nothing"])
@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "POST", "GET", "FOO"])
def test_whatever_the_method_the_answer_is_a_clear_one(http: httpx.Client, method: str, path: str) -> None:
    response = http.request(method, path)
    assert response.status_code < 500
    assert response.status_code != 200 or (method, path) in {("GET", "/runs"), ("GET", "/pending")}, response.text
    if method != "HEAD" and response.status_code >= 400:
        assert response.headers["content-type"] == "application/problem+json"


DEEP = 100_000


@pytest.mark.parametrize(
    "value",
    [
        "[" * DEEP + "]" * DEEP,
        '{"a":' * DEEP + "1" + "}" * DEEP,
        "1" * 5000,
        "1e999",
        "-0",
        '"\\ud800"',
        "[1,]",
        "// x",
    ],
    ids=["deep list", "deep object", "long number", "infinite", "minus zero", "half a letter", "comma", "comment"],
)
def test_odd_json_is_taken_or_refused(http: httpx.Client, value: str) -> None:
    json = {"Content-Type": "application/json"}
    paused = http.post("/assistant/run", json={"prompt": "go"}).json()
    path = f"/pending/{paused['run_id']}/{paused['output']['interaction_id']}"
    for where, body in (
        (path, f'{{"value": {value}}}'),
        ("/assistant/run", f'{{"prompt": {value}}}'),
        ("/assistant/run", f'{{"prompt": "go", "labels": {value}}}'),
        ("/assistant/run", f'{{"resume": {value}}}'),
        (f"/cancel/{paused['run_id']}", f'{{"reason": {value}}}'),
    ):
        assert http.post(where, content=body.encode(), headers=json).status_code in (202, 400, 409, 410, 422), where


def exchange(server: Server, sent: bytes, *, more: bool = False) -> bytes:
    """What the server says to these bytes, until it closes the connection. `more`: the client seems to have more."""
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=SECONDS) as connection:
        connection.sendall(sent)
        if not more:
            connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_requests_one_after_another_on_one_connection_are_answered_in_order(house: Server) -> None:
    body = b'{"amount": "x"}'
    bad = b"POST /pay/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    last = b"GET /runs?limit=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    told = exchange(house, bad * 20 + last, more=True)
    assert told.count(b"HTTP/1.1 422") == 20
    assert told.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /runs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /pay/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /pay/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
        b"POST /pay/run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00",
        b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["no host", "two hosts", "two lengths", "negative", "huge", "no chunk", "tls", "long"],
)
def test_broken_http_harms_nobody(house: Server, http: httpx.Client, sent: bytes) -> None:
    told = exchange(house, sent)
    assert not told or told.startswith(b"HTTP/1.1 4"), told[:200]
    assert http.get("/readyz").status_code == 200


def test_a_body_that_is_cut_off_starts_nothing(house: Server, http: httpx.Client) -> None:
    before = http.get("/runs", params={"runnable": "pay", "limit": "1"}).json()["items"]
    head = b"POST /pay/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    told = exchange(house, head + b'{"amount": 1')
    assert not told or told.startswith(b"HTTP/1.1 400"), told[:200]
    assert http.get("/runs", params={"runnable": "pay", "limit": "1"}).json()["items"] == before


def test_a_large_answer_within_the_limit_is_taken(http: httpx.Client) -> None:
    paused = http.post("/assistant/run", json={"prompt": "go"}).json()
    text = "\u00e4\u4e16" * 1_000_000
    path = f"/pending/{paused['run_id']}/{paused['output']['interaction_id']}"
    answered: Any = http.post(path, json={"value": text}).json()
    assert answered["receipts"][0]["value"] == text
    assert events(all_of(http, f"/runs/{answered['next_run_id']}/events"))[-1]["status"]["code"] == "success"
