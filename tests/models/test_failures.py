"""What goes wrong between us and a provider is tried again where that helps, and else says what to do."""

import json
import os
import subprocess
import sys
from threading import Event
from typing import Any

import pytest

from tests.fake_api import FakeApi, Raw, free_port
from tests.models.wire import first_words, sse
from timbal import Agent, Model
from timbal.models.retries import LONGEST_PAUSE, pause_before
from timbal.types.events import DeltaEvent, OutputEvent

AT_ONCE = {"retry-after": "0", "content-type": "application/json"}
SLOW_DOWN = Raw(json.dumps({"error": {"message": "slow down", "type": "rate_limit_error"}}), 429, AT_ONCE)


def error(output: OutputEvent) -> str:
    """The message of a `model_error`, which no key gets into, nor into its traceback."""
    assert output.status.code == "error"
    assert output.status.reason == "model_error"
    assert output.error is not None
    assert output.error["type"] == "ModelError"
    shown = output.model_dump_json()
    assert [key for key in ("sk-of-openai", "sk-of-anthropic", "key-of-google", "sk-secret") if key in shown] == []
    message: str = output.error["message"]
    return message


async def test_429_is_asked_again_when_the_provider_said(api: FakeApi, model: Model) -> None:
    api.say({"content": "at last"})
    api.serve(SLOW_DOWN, SLOW_DOWN)
    output = await Agent("patient", model)("go")
    assert output.output.collect_text() == "at last"
    assert len(api.requests) == 3


async def test_429_without_a_time_is_asked_again_after_a_while(api: FakeApi, model: Model) -> None:
    api.say({"content": "at last"})
    api.serve(Raw("{}", 429, {"content-type": "application/json"}))
    output = await Agent("patient", model)("go")
    assert output.output.collect_text() == "at last"


@pytest.mark.parametrize("status", [500, 502, 503, 529])
async def test_a_provider_that_fails_is_asked_again(api: FakeApi, model: Model, status: int) -> None:
    api.say({"content": "at last"})
    api.serve(Raw("<html>Bad gateway</html>", status, {"retry-after": "0", "content-type": "text/html"}))
    output = await Agent("patient", model)("go")
    assert output.output.collect_text() == "at last"


async def test_the_tries_have_an_end(api: FakeApi, model: Model) -> None:
    api.serve(*[SLOW_DOWN] * 9)
    output = await Agent("patient", model, model_params={"max_retries": 2})("go")
    assert error(output) == f"{model.name}: too many requests (429): slow down (tried 3 times)"
    assert len(api.requests) == 3


async def test_a_wait_that_is_too_long_is_not_waited_for(api: FakeApi, model: Model) -> None:
    api.serve(Raw("{}", 429, {"retry-after": "3600", "content-type": "application/json"}))
    output = await Agent("patient", model)("go")
    assert "too many requests (429)" in error(output)
    assert len(api.requests) == 1


async def test_a_stream_that_is_cut_is_an_error_and_never_a_short_answer(api: FakeApi, model: Model) -> None:
    api.say({"content": "Once upon a time"})
    api.serve(Raw(first_words(model), cut=True))
    agent: Agent[Any] = Agent("teller", model)
    events = [event async for event in agent("go")]
    output = events[-1]
    assert isinstance(output, OutputEvent)
    assert f"{model.name}: the answer broke off before it was complete" in error(output)
    assert [e.item["text_delta"] for e in events if isinstance(e, DeltaEvent) and "text_delta" in e.item] == [
        "Once upon"
    ]
    assert len(api.requests) == 1
    again = await agent(parent_id=output.run_id, resume={})
    assert again.output.collect_text() == "Once upon a time"


async def test_a_stream_that_ends_without_its_end_mark_is_an_error(api: FakeApi, model: Model) -> None:
    api.serve(Raw(first_words(model)))
    assert "the answer broke off before it was complete" in error(await Agent("teller", model)("go"))


async def test_a_stream_that_is_cut_before_a_word_is_asked_again(api: FakeApi, model: Model) -> None:
    api.say({"content": "Once upon a time"})
    api.serve(Raw(cut=True))
    output = await Agent("teller", model)("go")
    assert output.output.collect_text() == "Once upon a time"
    assert len(api.requests) == 2


async def test_silence_is_an_error(api: FakeApi, model: Model) -> None:
    hold = Event()
    api.serve(Raw(hold=hold))
    output = await Agent("patient", model, model_params={"timeout": 0.2, "max_retries": 0})("go")
    hold.set()
    assert error(output) == f"{model.name}: no word for 0.2 seconds; Model(..., timeout=) is how long to wait"


async def test_a_wrong_key_says_so(api: FakeApi, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.dumps({"error": {"message": "Incorrect API key provided: sk-secret", "type": "authentication_error"}})
    monkeypatch.setenv(f"{model.name.partition('/')[0].upper()}_API_KEY", "sk-secret")
    api.serve(Raw(said, 401, {"content-type": "application/json"}))
    agent: Agent[Any] = Agent("stranger", model)
    events = [event async for event in agent("go")]
    output = events[-1]
    assert isinstance(output, OutputEvent)
    assert "sk-secret" not in "".join(event.model_dump_json() for event in events)
    expected = f"{model.name}: the provider refused the API key (401); check it, and that it may use this model"
    assert error(output) == expected
    assert len(api.requests) == 1


async def test_an_unknown_model_says_so(api: FakeApi, model: Model) -> None:
    said = {"error": {"message": "The model does not exist", "type": "not_found_error", "code": "model_not_found"}}
    api.serve(Raw(json.dumps(said), 404, {"content-type": "application/json"}))
    message = error(await Agent("stranger", model)("go"))
    assert "there is no such model at http://127.0.0.1" in message
    assert "(404); check name and base URL: The model does not exist" in message


async def test_a_request_that_is_refused_says_why(api: FakeApi, model: Model) -> None:
    said = {"error": {"message": "max_tokens is too small", "type": "invalid_request_error", "status": "X"}}
    api.serve(Raw(json.dumps(said), 400, {"content-type": "application/json"}))
    message = error(await Agent("terse", model, model_params={"max_tokens": 1})("go"))
    assert message == f"{model.name}: the provider refused the request (400): max_tokens is too small"


@pytest.mark.parametrize(
    "raw",
    [
        Raw("<html>Welcome to nginx</html>", headers={"content-type": "text/html"}),
        Raw("data: <html>\n\n"),
        Raw(""),
    ],
    ids=["a web page", "a stream of no JSON", "nothing"],
)
async def test_an_answer_that_is_no_json_says_so(api: FakeApi, model: Model, raw: Raw) -> None:
    api.serve(raw)
    message = error(await Agent("lost", model, model_params={"max_retries": 0})("go"))
    assert message.startswith(f"{model.name}: ")
    assert "is no answer of its API; check the base URL" in message


async def test_a_refused_connection_says_where(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    nobody = Model(model.name, base_url=url, api_key="sk-secret", api=model.api, max_retries=1)
    message = error(await Agent("lost", nobody)("go"))
    assert message.startswith(f"{model.name}: no connection to {url}: ")
    assert message.endswith("(tried 2 times)")


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("openai/gpt-5", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("google/gemini-2.5-pro", "GOOGLE_API_KEY or GEMINI_API_KEY"),
    ],
)
async def test_a_missing_key_says_which_variable_to_set(
    name: str, variables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (*variables.split(" or "), "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    message = error(await Agent("keyless", name)("go"))
    assert message.startswith(f"{name} needs an API key: set {variables}, or pass Model('{name}', api_key=...)")


async def test_a_server_that_is_named_needs_no_key(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    api.say({"content": "free"})
    output = await Agent("local", Model("openai/llama", base_url=f"{api.url}/v1"))("go")
    assert output.output.collect_text() == "free"


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
@pytest.mark.parametrize("missing", ["pydantic_ai", "the provider's own"])
def test_a_missing_extra_says_how_to_install_it(provider: str, missing: str) -> None:
    own = {"openai": "openai", "anthropic": "anthropic", "google": "google.genai"}[provider]
    code = f"""
import sys
sys.modules[{(missing if missing == "pydantic_ai" else own)!r}] = None
from timbal import Agent
output = Agent("bare", "{provider}/some-model").run_sync("go")
print(output.status.reason, output.error["message"])
"""
    environment = os.environ | {f"{provider.upper()}_API_KEY": "key"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.startswith(f"model_error {provider}/some-model needs a library that is not installed (")
    assert ran.stdout.strip().endswith(f"pip install 'timbal-hitl[{provider}]'")


async def test_a_failure_inside_a_stream_before_a_word_is_asked_again(api: FakeApi) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    api.serve(Raw(sse(overloaded, named=True)))
    api.say({"content": "at last"})
    output = await Agent("patient", Model("anthropic/claude-sonnet-4-5"))("go")
    assert output.output.collect_text() == "at last"


@pytest.mark.parametrize(
    ("attempt", "after", "chance", "pause"),
    [
        (1, None, 0.0, 0.5),
        (2, None, 0.0, 1.0),
        (2, None, 1.0, 0.5),
        (3, None, 0.5, 1.5),
        (1, 7.0, 0.5, 7.0),
        (1, 0.0, 0.5, 0.0),
        (1, LONGEST_PAUSE + 1, 0.5, None),
        (4, None, 0.0, None),
        (4, 1.0, 0.0, None),
    ],
)
def test_pauses_grow_and_the_provider_is_obeyed(
    attempt: int, after: float | None, chance: float, pause: float | None
) -> None:
    assert pause_before(attempt, after, max_retries=3, chance=chance) == pause


def test_no_pause_is_longer_than_eight_seconds() -> None:
    assert max(pause_before(n, None, 99, chance=0.0) or 0 for n in range(1, 99)) == 8.0
