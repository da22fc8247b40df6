"""The OpenAPI document is true: what it describes is taken, and what is answered is described."""

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
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

from .servers import APP, Server

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("small")
    shutil.copy(APP.with_name("small.py"), folder / "small.py")
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(folder), "--port", "0", "small:app"]
    with Server(folder, command=command) as server:
        yield server


@pytest.fixture(scope="module")
def document(small: Server) -> Any:
    with small.client() as client:
        return client.get("/openapi.json").json()


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
        ("GET", "/runs/{run_id}/events"),
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
def test_no_request_that_a_machine_makes_up_gets_what_is_not_described(small: Server, method: str, path: str) -> None:
    schema = schemathesis.openapi.from_url(f"{small.url}/openapi.json")
    operation = schema[path][method]
    count = int(os.environ.get("TIMBAL_TORTURE", "1")) * 25

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, timeout=20)

    check()
