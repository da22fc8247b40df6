"""The OpenAPI document is true: what it describes is taken, and what is answered is described."""

import json
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from itertools import islice
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from timbal import Agent
from timbal.server.schemas import params_schema
from timbal.testing import TestModel

from .servers import APP, Server, read

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
#: A few requests to each route; `make torture` makes up more.
FUZZ = settings(
    max_examples=int(os.environ.get("TIMBAL_TORTURE", "1")) * 25,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("small")
    shutil.copy(APP.with_name("small.py"), folder / "small.py")
    store = f"sqlite:///{folder}/small.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        store = f"{url}{'&' if '?' in url else '?'}schema=test_{uuid.uuid4().hex}"
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(folder), "--port", "0", "small:app"]
    with Server(folder, command=command, TIMBAL_STORE=store) as server:
        yield server


@pytest.fixture(scope="module")
def document(small: Server) -> Any:
    with small.client() as client:
        return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def items(small: Server) -> list[dict[str, str]]:
    """What is there: open and settled items of runs that are paused, over and cancelled."""
    with small.client() as client:
        paused = [client.post("/pay/run", json={"amount": n}).json() for n in range(6)]
        found = [{"run_id": one["run_id"], "id": one["output"]["interaction_id"]} for one in paused]
        for item, value in zip(found, (True, {"type": "timbal.cancel"}), strict=False):
            client.post(f"/pending/{item['run_id']}/{item['id']}", json={"value": value})
    return found


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name == "$ref":
                yield part
            yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


def test_it_is_openapi_3_1_and_all_that_it_refers_to_is_there(document: Any) -> None:
    assert document["openapi"].startswith("3.1")
    found = set(references(document))
    assert found
    for reference in found:
        assert reference.startswith("#/components/schemas/"), reference
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"], reference
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.validator_for({**schema, "components": document["components"]})


def test_it_names_every_route_event_and_problem(document: Any) -> None:
    assert {"/stream", "/order/stream", "/run", "/runs", "/runs/{run_id}", "/runs/{run_id}/events"} <= document[
        "paths"
    ].keys()
    assert {"/cancel/{run_id}", "/pending", "/pending/stream", "/pending/{run_id}/{id}"} <= document["paths"].keys()
    assert {"StartEvent", "DeltaEvent", "ApprovalEvent", "InteractionEvent", "OutputEvent", "Problem"} <= document[
        "components"
    ]["schemas"].keys()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path != "/healthcheck":
                assert {"401", "403", "500", "503"} <= operation["responses"].keys(), path


def test_the_examples_of_an_agent_stand_in_the_schema_of_its_prompt() -> None:
    agent: Agent[Any] = Agent("clerk", TestModel(["x"]), examples=["Bill Ada", "Pay Bob"])
    assert params_schema(agent)["properties"]["prompt"]["examples"] == ["Bill Ada", "Pay Bob"]
    with pytest.raises(ValueError, match="examples is a list of prompts"):
        Agent("clerk", TestModel(["x"]), examples="Bill Ada")


def test_a_runnables_own_input_is_in_it(document: Any) -> None:
    body = document["paths"]["/pay/run"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["anyOf"][0]["properties"].keys() >= {"amount", "parent_id", "resume", "labels"}
    assert body["anyOf"][0]["required"] == ["amount"]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/pay/run"),
        ("POST", "/stream"),
        ("POST", "/assistant/run"),
        ("GET", "/runs"),
        ("GET", "/runs/{run_id}"),
        ("POST", "/cancel/{run_id}"),
        ("GET", "/pending"),
        ("GET", "/pending/{run_id}/{id}"),
        ("POST", "/pending/{run_id}/{id}"),
        ("GET", "/params_model_schema"),
        ("GET", "/return_model_schema"),
        ("GET", "/healthcheck"),
        ("GET", "/readyz"),
    ],
)
def test_no_request_that_a_machine_makes_up_gets_what_is_not_described(
    small: Server, items: list[dict[str, str]], method: str, path: str
) -> None:
    @FUZZ
    @given(case=made_up(small, method, path, items))
    def check(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, timeout=20)

    check()


def made_up(server: Server, method: str, path: str, items: list[dict[str, str]]) -> st.SearchStrategy[Any]:
    """Requests to a route, half of them about something that is there."""
    operation = schemathesis.openapi.from_url(f"{server.url}/openapi.json")[path][method]

    def about(case: Any, item: dict[str, str] | None) -> Any:
        if item is not None:
            case.path_parameters = {name: item.get(name, value) for name, value in case.path_parameters.items()}
        return case

    return st.builds(about, operation.as_strategy(), st.none() | st.sampled_from(items))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", ["/runs/{run_id}/events", "/pending/stream"])
def test_whatever_a_machine_asks_a_stream_for_it_tells_what_is_described(
    small: Server, items: list[dict[str, str]], document: Any, path: str
) -> None:
    described = document["paths"][path]["get"]["responses"]
    components = {"components": document["components"]}

    def validate(media: dict[str, Any], value: Any) -> None:
        jsonschema_rs.validator_for({**media["schema"], **components}).validate(value)

    @FUZZ
    @given(case=made_up(small, "GET", path, items))
    def check(case: Any) -> None:
        request = case.as_transport_kwargs()
        headers = {name: str(value).encode("latin-1") for name, value in request["headers"].items()}
        url, params = request["url"], request["params"]
        with small.client() as client, client.stream("GET", url, params=params, headers=headers) as response:
            kind = response.headers["content-type"].partition(";")[0]
            media = described[str(response.status_code)]["content"][kind]
            if kind != "text/event-stream":
                validate(media, json.loads(response.read()))
                return
            told = media["schema"]["properties"]["data"]["contentSchema"]
            for one in islice(read(response), 50):
                validate({"schema": told}, one.data)
                assert one.name != "error", one
                if one.name == "snapshot" and one.data["complete"]:  # what follows comes when something changes
                    break

    check()
