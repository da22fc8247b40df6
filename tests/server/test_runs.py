"""Starting runs over HTTP, going on with them, and looking at them."""

import uuid
from typing import Any

import httpx
import pytest

from timbal.types.events import validate_event

from .servers import all_of, events, stream


def started(client: httpx.Client, name: str, **input: Any) -> Any:
    response = client.post(f"/{name}/run", json=input)
    assert response.status_code == 200, response.text
    return response.json()


def test_a_run_streams_its_events_in_order_and_says_when_it_is_over(client: httpx.Client) -> None:
    with client.stream("POST", "/assistant/stream", json={"prompt": "go"}) as response:
        text = response.read().decode()
    assert response.headers["content-type"].startswith("text/event-stream")
    assert "\r" not in text
    told = all_of(client, f"/runs/{response.headers['x-run-id']}/events")
    found = events(told)
    assert [one.id for one in told[:-1]] == list(range(1, len(found) + 1))
    assert told[-1].name == "end"
    assert found[0]["type"] == "START"
    assert found[-1]["type"] == "OUTPUT"
    assert found[-1]["status"] == {"code": "cancelled", "reason": "input_required", "message": None}
    assert {e["run_id"] for e in found} == {response.headers["x-run-id"]}
    assert all(validate_event(e).model_dump(mode="json") == e for e in found)


def test_a_paused_run_goes_on_with_an_answer(client: httpx.Client) -> None:
    paused = events(all_of(client, "/assistant/stream", {"prompt": "go"}))
    asked = next(e for e in paused if e["type"] == "INTERACTION")
    body = {"prompt": "go", "parent_id": asked["run_id"], "resume": {asked["interaction_id"]: "a"}}
    resumed = events(all_of(client, "/assistant/stream", body))
    output = resumed[-1]
    assert output["status"]["code"] == "success"
    assert output["output"]["content"] == [{"type": "text", "text": "Done, as you said."}]
    assert output["metadata"]["receipts"][0]["state"] == "accepted"
    record = client.get(f"/runs/{asked['run_id']}").json()
    assert record["next_run_id"] == output["run_id"]
    assert record["settled"][0]["value"] == "a"


def test_run_gives_the_root_output_alone(client: httpx.Client) -> None:
    response = client.post("/count/run", json={"to": 3})
    output = response.json()
    assert (output["type"], output["output"]) == ("OUTPUT", "0 1 2 ")
    assert response.headers["x-run-id"] == output["run_id"]


def test_an_error_of_a_handler_is_told_without_its_traceback(client: httpx.Client) -> None:
    output = started(client, "fail", secret="s3cret")
    assert output["error"] == {"type": "ValueError", "message": "it went wrong", "traceback": None}
    record = client.get(f"/runs/{output['run_id']}")
    assert record.json()["error"] == output["error"]
    assert "Traceback" not in record.text


def test_the_same_start_sent_again_follows_the_first_run(client: httpx.Client) -> None:
    key = {"Idempotency-Key": uuid.uuid4().hex}
    first = client.post("/pay/run", json={"amount": 7}, headers=key).json()
    again = client.post("/pay/run", json={"amount": 7}, headers=key)
    assert again.json()["run_id"] == first["run_id"] == again.headers["x-run-id"]
    told = all_of(client, "/pay/stream", {"amount": 7}, headers=key)
    assert told == all_of(client, f"/runs/{first['run_id']}/events")


def test_the_same_key_with_another_input_is_refused(client: httpx.Client) -> None:
    key = {"Idempotency-Key": uuid.uuid4().hex}
    client.post("/pay/run", json={"amount": 7}, headers=key)
    refused = client.post("/pay/run", json={"amount": 8}, headers=key)
    assert refused.status_code == 422
    assert "another input" in refused.json()["detail"]


def test_an_answer_sent_twice_runs_its_effect_once_and_gives_the_same_output(client: httpx.Client) -> None:
    paused = started(client, "pay", amount=11)
    body = {"parent_id": paused["run_id"], "resume": {paused["output"]["interaction_id"]: True}}
    first = client.post("/pay/run", json=body).json()
    again = client.post("/pay/run", json=body).json()
    assert first["output"] == again["output"] == {"paid": True, "amount": 11}
    assert again["run_id"] == first["run_id"]
    assert [r["state"] for r in again["metadata"]["receipts"]] == ["already_settled"]
    assert events(all_of(client, "/pay/stream", body))[-1]["run_id"] == first["run_id"]


def test_another_answer_learns_that_it_lost_and_to_what(client: httpx.Client) -> None:
    paused = started(client, "pay", amount=12)
    id = paused["output"]["interaction_id"]
    client.post("/pay/run", json={"parent_id": paused["run_id"], "resume": {id: True}})
    lost = client.post("/pay/stream", json={"parent_id": paused["run_id"], "resume": {id: False}})
    assert lost.status_code == 409
    assert lost.headers["content-type"] == "application/problem+json"
    assert (lost.json()["receipts"][0]["value"], lost.json()["receipts"][0]["same_value"]) == (True, False)


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b"NaN", 400, None),
        (b'{"amount": NaN}', 400, None),
        (b'{"amount": "\\ud800"}', 400, None),
        (b"[" * 5000 + b"]" * 5000, 400, None),
        (b"[]", 422, ""),
        (b"null", 422, ""),
        (b'"text"', 422, ""),
        (b"7", 422, ""),
        (b'{"amount": "many"}', 422, "/amount"),
        (b"{}", 422, "/amount"),
        (b'{"amount": 1, "colour": "red"}', 422, "/colour"),
        (b'{"amount": 1, "run_id": "x"}', 422, "/run_id"),
        (b'{"amount": 1, "by": {"sub": "root"}}', 422, "/by"),
        (b'{"amount": 1, "parent_id": 7}', 422, "/parent_id"),
        (b'{"amount": 1, "resume": []}', 422, "/resume"),
        (b'{"amount": 1, "labels": {"a": 1}}', 422, "/labels/a"),
        (b'{"amount": 1, "labels": {"timbal.subject": "ada"}}', 422, "/labels/timbal.subject"),
        (b'{"amount": 1, "parent_id": "nothing"}', 404, None),
        (b'{"amount": 1, "resume": {"nothing": 1}}', 422, None),
    ],
)
@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_bad_body_is_a_problem_before_anything_runs(
    client: httpx.Client, way: str, body: bytes, status: int, pointer: str | None
) -> None:
    response = client.post(f"/pay/{way}", content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    problem = response.json()
    assert problem["status"] == status
    assert {"type", "title", "status", "detail"} <= problem.keys()
    if pointer is not None:
        assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_a_body_of_more_than_28_mib_is_too_large(client: httpx.Client) -> None:
    response = client.post("/pay/run", content=b" " * (28 * 1024 * 1024 + 1))
    assert response.status_code == 413


def test_a_client_can_not_change_the_model_the_tools_or_the_store(client: httpx.Client) -> None:
    for name in ("model", "system_prompt", "tools", "store", "model_params", "max_iter"):
        response = client.post("/assistant/run", json={"prompt": "go", name: "mine"})
        assert (response.status_code, name in response.json()["detail"]) == (422, True)


def test_a_body_that_is_no_json_by_its_type_is_refused(client: httpx.Client) -> None:
    response = client.post("/pay/run", content=b'{"amount": 1}', headers={"Content-Type": "text/plain"})
    assert response.status_code == 415


def test_answers_that_are_refused_change_nothing(client: httpx.Client) -> None:
    paused = started(client, "order", customer="ada")
    run_id, id = paused["run_id"], paused["output"]["interaction_id"]
    wrong = {"count": 3, "address": {"street": "Main", "code": "x"}}
    for answers, status, pointer in (
        ({id: wrong}, 422, f"/resume/{id}/address/code"),
        ({id: {}, "unknown": 1}, 404, None),
        ({"unknown": 1}, 404, None),
    ):
        response = client.post("/order/stream", json={"parent_id": run_id, "resume": answers})
        assert response.status_code == status
        if pointer is not None:
            assert response.json()["errors"][0]["pointer"] == pointer
    assert client.get(f"/pending/{run_id}/{id}").json()["state"] == "pending"


def test_runs_are_listed_in_pages_by_what_they_are(client: httpx.Client) -> None:
    label = uuid.uuid4().hex
    made = [started(client, "who", labels={"batch": label})["run_id"] for _ in range(5)]
    listed: list[str] = []
    after: str | None = ""
    while after is not None:
        query = {"label": f"batch={label}", "limit": "2", **({"after": after} if after else {})}
        page = client.get("/runs", params=query).json()
        listed += [run["run_id"] for run in page["items"]]
        after = page["next"]
    assert listed == made[::-1]
    assert client.get("/runs", params={"label": f"batch={label}", "status": "error"}).json()["items"] == []
    for query in ({"limit": "0"}, {"limit": "x"}, {"after": "x"}, {"label": "x"}):
        assert client.get("/runs", params=query).status_code == 422


def test_a_paused_run_can_be_cancelled_and_a_run_at_work_stopped(client: httpx.Client) -> None:
    paused = started(client, "pay", amount=1)
    response = client.post(f"/cancel/{paused['run_id']}", json={"reason": "not any more"})
    assert (response.status_code, response.content) == (204, b"")
    record = client.get(f"/runs/{paused['run_id']}").json()
    assert record["settled"][0]["state"] == "cancelled"
    with stream(client, "/wait/stream", {"name": "never"}) as told:
        run_id = next(told).data["run_id"]
        assert client.post(f"/cancel/{run_id}").status_code == 204
        *_, output, end = told
    assert (output.data["status"]["reason"], end.name) == ("cancelled", "end")
    assert client.post("/cancel/nothing").status_code == 404


def test_schemas_health_and_wrong_addresses(client: httpx.Client) -> None:
    assert client.get("/pay/params_model_schema").json()["required"] == ["amount"]
    assert client.get("/order/return_model_schema").json()["type"] == "object"
    assert "prompt" in client.get("/assistant/params_model_schema").json()["properties"]
    assert client.get("/healthcheck").status_code == 204
    assert client.get("/readyz").json() == {"status": "ready"}
    assert client.get("/nothing").json()["status"] == 404
    assert client.get("/pay/run").json()["status"] == 405
    assert client.get("/runs/nothing").json()["status"] == 404
