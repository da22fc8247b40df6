"""The routes in somebody's own application, the limits of a server, and what it says of itself."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from timbal import Agent, Tool, suspend
from timbal.server import Limits, create_app, lifespan, router
from timbal.stores import MemoryStore
from timbal.testing import TestModel

from .servers import Server, all_of, events, stream

EXAMPLES = Path(__file__).parents[2] / "examples" / "server"
BASE = "http://127.0.0.1"


def ask(n: int) -> int:
    return int(suspend({"n": n}, response_type=int))


def tool(name: str = "ask") -> Tool[Any, Any]:
    return Tool(ask, name=name, store=MemoryStore())


def talk(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE)


@pytest.mark.parametrize(("example", "at"), [("alone", ""), ("inside", "/ai")])
def test_the_examples_run_ask_and_go_on(folder: Path, example: str, at: str) -> None:
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "--port", "0", f"{example}:app"]
    with Server(folder, command=command) as server, server.client() as client:
        paused = events(all_of(client, f"{at}/stream", {"version": "2"}))[-1]
        (item,) = client.get(f"{at}/pending").json()["items"]
        path = f"{at}/pending/{item['run_id']}/{item['id']}"
        next_run_id = client.post(path, json={"value": True}).json()["next_run_id"]
        assert events(all_of(client, f"{at}/runs/{next_run_id}/events"))[-1]["output"] == "2 is live"
        assert client.get(f"{at}/runs/{paused['run_id']}").json()["next_run_id"] == next_run_id
        assert client.get("/openapi.json").json()["paths"].keys() >= {f"{at}/stream", f"{at}/pending"}


async def test_routes_whose_lifespan_never_ran_say_so_at_the_first_request() -> None:
    mounted = FastAPI()
    mounted.mount("/ai", create_app(tool()))
    included = FastAPI()
    included.include_router(router(tool()), prefix="/ai")
    for app in (mounted, included):
        async with talk(app) as client:
            response = await client.post("/ai/run", json={"n": 1})
        assert response.status_code == 503
        assert "lifespan" in response.json()["detail"]


async def test_an_application_that_is_mounted_into_another_one_works_with_its_lifespan() -> None:
    inner = create_app(tool())
    outer = FastAPI(lifespan=lifespan(inner))
    outer.mount("/ai", inner)
    async with outer.router.lifespan_context(outer), talk(outer) as client:
        assert (await client.post("/ai/run", json={"n": 1})).json()["status"]["reason"] == "input_required"


async def test_several_runnables_have_addresses_of_their_own_and_the_default_one_the_root() -> None:
    one, two = tool("one"), tool("two")
    app = create_app([one, two], default=two)
    async with app.router.lifespan_context(app), talk(app) as client:
        paths = [(await client.post(at, json={"n": 1})).json()["path"] for at in ("/one/run", "/two/run", "/run")]
    assert paths == ["one", "two", "two"]
    without = create_app([tool("one"), tool("two")])
    async with without.router.lifespan_context(without), talk(without) as client:
        assert (await client.post("/run", json={"n": 1})).status_code == 404


@pytest.mark.parametrize("name", ["runs", "pending", "stream"])
def test_a_name_that_a_route_has_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a route has this name"):
        create_app(tool(name))


def test_two_runnables_of_one_name_and_none_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="the same name"):
        create_app([tool(), tool()])
    with pytest.raises(ValueError, match="needs a runnable"):
        create_app([])


async def test_more_runs_than_the_limit_are_told_to_come_again() -> None:
    app = create_app(tool(), limits=Limits(runs=0))
    async with app.router.lifespan_context(app), talk(app) as client:
        response = await client.post("/run", json={"n": 1})
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")


async def test_a_store_that_fails_is_told_without_what_it_said() -> None:
    app = create_app(Tool(ask, store="sqlite:////nowhere/at/all.db"))
    with pytest.raises(Exception, match="nowhere"):
        async with app.router.lifespan_context(app):
            pass


async def test_old_events_are_dropped_and_their_readers_are_told() -> None:
    app = create_app(tool())
    async with app.router.lifespan_context(app), talk(app) as client:
        run_id = (await client.post("/run", json={"n": 1})).json()["run_id"]
        assert await app.state.timbal.log.drop(2**60) == 1
        page = (await client.get(f"/runs/{run_id}/events?wait_ms=0")).json()
        assert (page["items"], page["end"]["type"]) == ([], "expired")
        assert (await client.get(f"/runs/{run_id}/events")).text.startswith("event: expired\n")
        assert (await client.get(f"/runs/{run_id}")).json()["status"] == "paused"


async def test_an_erased_run_takes_its_events_along() -> None:
    app = create_app(tool())
    async with app.router.lifespan_context(app), talk(app) as client:
        run_id = (await client.post("/run", json={"n": 1})).json()["run_id"]
        await app.state.timbal.store.erase(run_id)
        assert (await client.get(f"/runs/{run_id}")).status_code == 404
        assert (await client.get(f"/runs/{run_id}/events?wait_ms=0")).json()["items"] == []


def test_logs_are_lines_of_json_with_the_run_they_are_about(folder: Path) -> None:
    with Server(folder, "--logs", "json") as server:
        with server.client() as client:
            run_id = client.post("/pay/run", json={"amount": 1}).json()["run_id"]
        server.stop()
        lines = [json.loads(line) for line in server.read_log().splitlines()]
    assert {"time", "level", "logger", "message"} <= lines[0].keys()
    assert [line for line in lines if line.get("run_id") == run_id]


def test_a_heartbeat_keeps_a_quiet_stream_open() -> None:
    from timbal.server import sse

    assert sse.HEARTBEAT == b":\n\n"
    assert sse.numbered(3, "{}") == b"id: 3\ndata: {}\n\n"
    assert sse.named("end", "{}") == b"event: end\ndata: {}\n\n"


def test_a_run_goes_on_when_its_reader_has_left(client: httpx.Client) -> None:
    with stream(client, "/count/stream", {"to": 50}) as told:
        run_id = next(told).data["run_id"]
    assert events(all_of(client, f"/runs/{run_id}/events"))[-1]["status"]["code"] == "success"


class SlowToLoad(TestModel):
    """A model whose library takes long to load."""

    loads = 0

    def preload(self) -> None:
        self.loads += 1


def test_a_server_loads_what_its_models_need_before_the_first_run() -> None:
    model, inner = SlowToLoad(["hello"]), SlowToLoad(["hello"])
    agent: Agent[Any] = Agent("assistant", model, tools=[Agent("inner", inner)])
    with TestClient(create_app(agent, store="memory://"), base_url=BASE):
        assert (model.loads, inner.loads) == (1, 1)
