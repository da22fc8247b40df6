"""The page's files, the user's own beside them, and signing in to it."""

import hashlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from timbal import Tool
from timbal.server import create_app, lifespan, router

from .servers import TIMBAL, Server

WEB = Path(__file__).parents[2] / "src" / "timbal" / "web"
TOKEN = "a token; of=the server"


def hello() -> str:
    """Say hello."""
    return "hello"


@pytest.fixture
def guarded() -> Iterator[TestClient]:
    app = create_app(Tool(hello), store="memory://", token=TOKEN)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def test_the_page_says_what_is_served_and_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "&quot;name&quot;: &quot;assistant&quot;" in answer.text
    for address in re.findall(r'(?:src|href)="([^"]+)"', answer.text):
        assert client.get(f"/{address}").status_code == 200, address


def test_each_file_of_the_page_is_served_once_and_not_again(client: httpx.Client) -> None:
    first = client.get("/client.js")
    assert first.content == (WEB / "client.js").read_bytes()
    assert first.headers["content-type"] == "text/javascript; charset=utf-8"
    again = client.get("/client.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/client.d.ts").status_code == 200


@pytest.mark.parametrize(
    "path", ["nothing.js", "../__init__.py", "%2e%2e/__init__.py", "index.html", "vendor/README.md"]
)
def test_nothing_else_is_served(client: httpx.Client, path: str) -> None:
    assert client.get(f"/web/{path}").status_code == 404


def test_the_vendored_modules_are_what_their_list_says() -> None:
    listed = dict(
        re.findall(r"^\| (\S+\.js) .* ([0-9a-f]{64}) \|$", (WEB / "vendor/README.md").read_text(), re.MULTILINE)
    )
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (WEB / "vendor").glob("*.js")}
    assert listed == found


def test_without_credentials_there_is_a_sign_in_and_nothing_else(guarded: TestClient) -> None:
    answer = guarded.get("/")
    assert answer.status_code == 401
    assert "Sign in" in answer.text
    assert "hello" not in answer.text
    assert guarded.get("/runs").status_code == 401


def test_a_wrong_token_is_said_to_be_wrong(guarded: TestClient) -> None:
    answer = guarded.post("/session", data={"token": "<b>another"})
    assert answer.status_code == 401
    assert '<p role="alert">the token is not accepted</p>' in answer.text
    assert "set-cookie" not in answer.headers


def test_who_signs_in_is_let_in_until_they_sign_out(guarded: TestClient) -> None:
    answer = guarded.post("/session", data={"token": TOKEN}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, ".")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "token;" not in cookie
    page = guarded.get("/")
    assert page.status_code == 200
    assert "&quot;sub&quot;: &quot;token&quot;" in page.text
    assert guarded.get("/runs").status_code == 200
    assert guarded.post("/run", json={}).json()["output"] == "hello"
    guarded.post("/session", data={})
    assert guarded.get("/").status_code == 401


@pytest.mark.parametrize("cookie", ["zz", "", "00ff", "é", TOKEN])
def test_a_cookie_that_is_none_of_ours_is_no_credential(guarded: TestClient, cookie: str) -> None:
    answer = guarded.get("/", headers=[(b"cookie", f"timbal_session={cookie}".encode())])
    assert answer.status_code == 401


def test_pages_of_other_sites_can_not_use_the_session(guarded: TestClient) -> None:
    guarded.post("/session", data={"token": TOKEN})
    assert guarded.post("/run", json={}, headers={"Origin": "http://evil.example"}).status_code == 403
    assert guarded.post("/session", data={"token": TOKEN}, headers={"Origin": "http://evil.example"}).status_code == 403


def test_a_sign_in_of_any_size_is_read_to_a_limit_only(guarded: TestClient) -> None:
    assert guarded.post("/session", content=b"token=" + b"x" * 100_000).status_code == 413


def test_files_of_ones_own_are_loaded_and_served(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "custom.js").write_text("export {}")
    (tmp_path / "secret").write_text("secret")
    app = create_app(Tool(hello), store="memory://", static=own)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        page = client.get("/").text
        assert '<script type="module" src="static/custom.js"></script>' in page
        assert "custom.css" not in page
        answer = client.get("/static/custom.js")
        assert answer.text == "export {}"
        assert answer.headers["content-security-policy"].startswith("default-src 'self';")
        for path in ("nothing", "../secret", "%2e%2e/secret", "..%2fsecret", ""):
            assert client.get(f"/static/{path}").status_code == 404, path


def test_files_of_ones_own_are_for_those_who_are_let_in(tmp_path: Path) -> None:
    (tmp_path / "custom.js").write_text("export {}")
    app = create_app(Tool(hello), store="memory://", token=TOKEN, static=tmp_path)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/static/custom.js").status_code == 401


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no folder"):
        create_app(Tool(hello), static=tmp_path / "nothing")


def test_the_command_refuses_a_folder_that_is_none(folder: Path) -> None:
    (folder / "app.py").write_text("from timbal import Tool\n\n@Tool\ndef hello() -> str:\n    return 'hello'\n")
    done = subprocess.run(
        [TIMBAL, "serve", "app.py", "--static", "nothing"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "--static nothing is no folder" in done.stderr) == (2, True)


def test_the_page_is_part_of_the_routes_in_an_application_of_ones_own() -> None:
    api = router(Tool(hello), store="memory://")
    app = FastAPI(lifespan=lifespan(api))
    app.include_router(api, prefix="/ai")
    with TestClient(app, base_url="http://127.0.0.1") as client:
        page = client.get("/ai/")
        assert page.status_code == 200
        assert client.get("/ai/web/app.js").status_code == 200
        assert client.get("/ai/client.js").status_code == 200


def test_the_page_of_a_server_with_other_ports_beside_it_has_a_cookie_of_its_own(folder: Path) -> None:
    with Server(folder, TIMBAL_TOKEN="one") as server, server.client() as client:
        answer = client.post("/session", data={"token": "one"})
        assert f"timbal_session_{httpx.URL(server.url).port}=" in answer.headers["set-cookie"]
        assert client.get("/runs").status_code == 200
