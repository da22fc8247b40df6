"""Who may do what: credentials, roles, audiences, and where requests may come from."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from timbal.server.access import Access, JwtRules
from timbal.server.problems import Problem

from .servers import TIMBAL, Server, all_of

KEY = "k" * 40
AUDIENCE, ISSUER = "timbal", "https://login.example.com"


def bearer(name: str, *roles: str, key: str = KEY, **claims: Any) -> dict[str, str]:
    told = {"sub": name, "roles": list(roles), "aud": AUDIENCE, "iss": ISSUER, "exp": int(time.time()) + 600, **claims}
    return {"Authorization": f"Bearer {jwt.encode({k: v for k, v in told.items() if v is not None}, key)}"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = ["--jwt-key", KEY, "--jwt-audience", AUDIENCE, "--jwt-issuer", ISSUER]
    with Server(tmp_path_factory.mktemp("guarded"), *options, TIMBAL_TOKEN="a-token-of-the-server") as server:
        yield server


@pytest.fixture
def http(guarded: Server) -> Iterator[httpx.Client]:
    with guarded.client() as client:
        yield client


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({}, 200),
        ({"exp": 1}, 401),
        ({"exp": "lately"}, 200),  # clocks may differ
        ({"exp": None}, 401),
        ({"aud": "another"}, 401),
        ({"iss": "https://evil.example"}, 401),
        ({"key": "x" * 40}, 401),
        ({"sub": None}, 401),
        ({"roles": "run"}, 401),
        ({"roles": []}, 403),
        ({"roles": ["answer"]}, 403),
        ({"roles": ["admin"]}, 200),
    ],
)
def test_a_token_is_believed_only_where_all_of_it_is_right(
    http: httpx.Client, claims: dict[str, Any], status: int
) -> None:
    if claims.get("exp") == "lately":
        claims = {"exp": int(time.time()) - 5}
    response = http.post("/pay/run", json={"amount": 1}, headers=bearer("ada", "run", **claims))
    assert response.status_code == status
    if status == 401:
        assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer x", "Basic YTpi", "Bearer a-token-of-the-serve"])
def test_without_credentials_nothing_is_told(http: httpx.Client, value: str) -> None:
    for path in ("/runs", "/pending", "/pending/stream", "/runs/x", "/runs/x/events", "/pay/params_model_schema"):
        assert http.get(path, headers={"Authorization": value}).status_code == 401
    for path in ("/pay/run", "/pay/stream", "/cancel/x", "/pending/x/y"):
        assert http.post(path, json={"amount": 1}, headers={"Authorization": value}).status_code == 401
    assert http.get("/healthcheck").status_code == 204
    assert http.get("/readyz").status_code == 200


def test_an_unsigned_token_is_not_believed(http: httpx.Client) -> None:
    token = jwt.encode({"sub": "ada", "roles": ["admin"], "aud": AUDIENCE, "iss": ISSUER, "exp": 9e9}, "", "none")
    assert http.get("/runs", headers={"Authorization": f"Bearer {token}"}).status_code == 401


def test_the_token_of_the_server_may_do_everything(http: httpx.Client) -> None:
    assert http.get("/runs", headers={"Authorization": "Bearer a-token-of-the-server"}).status_code == 200


def test_a_run_belongs_to_whoever_started_it(http: httpx.Client) -> None:
    ada, bob, boss = bearer("ada", "run"), bearer("bob", "run"), bearer("boss", "admin")
    paused = http.post("/pay/run", json={"amount": 1}, headers=ada).json()
    run_id, id = paused["run_id"], paused["output"]["interaction_id"]
    resume = {"parent_id": run_id, "resume": {id: True}}
    for method, path, body in (
        ("GET", f"/runs/{run_id}", None),
        ("GET", f"/runs/{run_id}/events", None),
        ("GET", f"/pending/{run_id}/{id}", None),
        ("POST", f"/pending/{run_id}/{id}", {"value": True}),
        ("POST", f"/cancel/{run_id}", {}),
        ("POST", "/pay/run", resume),
        ("POST", "/pay/stream", resume),
    ):
        assert http.request(method, path, json=body, headers=bob).status_code == 404, path
    assert http.get("/runs", headers=bob).json()["items"] == []
    assert http.get("/pending", headers=bob).json()["items"] == []
    assert http.get(f"/runs/{run_id}", headers=ada).json()["labels"] == {}
    assert http.get(f"/runs/{run_id}", headers=boss).status_code == 200
    assert http.get(f"/runs/{run_id}", headers=ada).json()["status"] == "paused"
    assert all_of(http, f"/runs/{run_id}/events", headers=ada)[-1].name == "end"


def test_the_same_key_of_another_person_is_another_start(http: httpx.Client) -> None:
    key = {"Idempotency-Key": "one"}
    runs = [
        http.post("/pay/run", json={"amount": 1}, headers={**bearer(who, "run"), **key}).json()["run_id"]
        for who in ("ada", "bob")
    ]
    assert runs[0] != runs[1]


def test_who_answered_is_recorded_and_only_the_audience_may(http: httpx.Client) -> None:
    ada = bearer("ada", "run")
    paused = http.post("/spend/run", json={"amount": 900}, headers=ada).json()
    run_id, id = paused["run_id"], paused["output"]["interaction_id"]
    path = f"/pending/{run_id}/{id}"
    assert http.post(path, json={"value": True}, headers=ada).status_code == 403
    assert http.post(path, json={"value": True}, headers=bearer("bob", "answer")).status_code == 403
    resume = {"parent_id": run_id, "resume": {id: True}}
    refused = http.post("/spend/run", json=resume, headers=ada)
    assert (refused.status_code, refused.json()["receipts"][0]["state"]) == (403, "forbidden")
    assert id not in http.get("/pending", headers=bearer("bob", "answer")).text
    eve = bearer("eve", "answer", "finance")
    assert id in http.get("/pending", headers=eve).text
    assert http.get(path, headers=ada).json()["state"] == "pending"
    accepted = http.post(path, json={"value": True}, headers=eve)
    assert accepted.json()["receipts"][0]["by"] == {"sub": "eve", "roles": ["answer", "finance"]}
    lost = http.post(path, json={"value": False}, headers=bearer("dan", "answer", "finance"))
    assert (lost.status_code, lost.json()["receipts"][0]["by"]["sub"]) == (409, "eve")


def test_a_gate_is_for_its_audience_only(http: httpx.Client) -> None:
    run_id = http.post("/refund/run", json={"amount": 1, "card": "4"}, headers=bearer("ada", "run")).json()["run_id"]
    bob, eve = bearer("bob", "answer"), bearer("eve", "answer", "finance")
    (item,) = [one for one in http.get("/pending", headers=eve).json()["items"] if one["run_id"] == run_id]
    assert item["id"] not in http.get("/pending", headers=bob).text
    path = f"/pending/{run_id}/{item['id']}"
    assert http.get(path, headers=bob).status_code == 403
    assert http.post(path, json={"value": True}, headers=bob).status_code == 403
    assert http.post(path, json={"value": True}, headers=eve).status_code == 202


def test_pages_of_other_sites_can_do_nothing(client: httpx.Client, server: Server) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil.example"):
        for method, path in (("POST", "/pay/run"), ("GET", "/pending"), ("POST", "/pending/x/y")):
            response = client.request(method, path, headers={"Origin": origin})
            assert response.status_code == 403
            assert "access-control-allow-origin" not in response.headers
    assert client.get("/pending", headers={"Origin": server.url}).status_code == 200


def test_a_name_that_was_made_to_lead_here_is_refused(client: httpx.Client) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", ""):
        assert client.get("/pending", headers={"Host": host}).status_code == 421


def test_a_site_that_is_allowed_by_name_may_call(folder: Path) -> None:
    site = "https://app.example.com"
    with Server(folder, "--allow-origin", site) as server, server.client() as client:
        asking = {
            "Origin": site,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
        }
        assert client.options("/pay/run", headers=asking).headers["access-control-allow-origin"] == site
        response = client.post("/pay/run", json={"amount": 1}, headers={"Origin": site})
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, site)
        assert client.post("/pay/run", json={"amount": 1}, headers={"Origin": "https://b.example"}).status_code == 403


def test_it_does_not_listen_to_others_without_credentials(folder: Path) -> None:
    (folder / "house.py").write_text("from timbal import Tool\ntool = Tool(lambda: 1, name='one')\n")
    refused = subprocess.run(
        [TIMBAL, "serve", "house.py", "--host", "0.0.0.0"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert refused.returncode == 2
    assert "--token" in refused.stderr
    with Server(folder, "--host", "0.0.0.0", "--insecure") as server, server.client() as client:
        assert client.get("/runs").status_code == 200


def test_secrets_are_in_no_log_and_no_answer(guarded: Server, http: httpx.Client) -> None:
    text = http.get("/runs", headers={"Authorization": f"Bearer {KEY}"}).text
    assert KEY not in text
    assert "a-token" not in repr(Access(token="a-token")) + repr(JwtRules(KEY))


def test_a_short_secret_for_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 32 bytes"):
        JwtRules("short")


def test_a_public_key_is_not_taken_for_a_secret() -> None:
    pem = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----"
    forged = jwt.api_jws.PyJWS(options={}).encode(b"{}", "k" * 40, "HS256")
    with pytest.raises(Problem):
        JwtRules(pem).principal(forged)
