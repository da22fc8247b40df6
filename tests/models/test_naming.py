"""A model is named long before it is asked."""

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.fake_api import FakeApi
from timbal import Agent, Model, ports
from timbal.errors import ModelError
from timbal.models.endpoint import endpoint_of

HEAVY = ("pydantic_ai", "openai", "anthropic", "google.genai", "httpx", "httpx2")


def run(code: str, **environment: str) -> str:
    keyless = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=keyless | environment)
    return ran.stdout.strip()


def test_making_an_agent_loads_no_library_and_needs_no_key() -> None:
    code = f"""
import sys
from timbal import Agent, Model, ports
from timbal.tools import ask_user
Agent("a", "openai/gpt-5", [ask_user]), Agent("b", Model("anthropic/claude-sonnet-4-5")), Agent("c", "google/gemini")
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    assert run(code) == "[]"


@pytest.mark.slow
def test_a_preload_loads_the_library_in_the_background() -> None:
    code = """
import sys, threading
from timbal import Model
Model("openai/gpt-5").preload()
(loading,) = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
loading.join()
print("pydantic_ai.models.openai" in sys.modules, "anthropic" in sys.modules)
"""
    assert run(code) == "True False"


def test_a_preload_of_what_is_unknown_or_missing_does_nothing() -> None:
    code = """
import sys, threading
sys.modules["pydantic_ai"] = None
from timbal.models import preload
preload("test/test-model")
preload("openai/gpt-5")
[thread.join() for thread in threading.enumerate() if thread is not threading.main_thread()]
print("quiet")
"""
    assert run(code) == "quiet"


@pytest.mark.parametrize("name", ["gpt-5", "openai/", "/gpt-5", "mistral/large", ""])
def test_a_name_that_is_none_says_how_models_are_named(name: str) -> None:
    with pytest.raises(
        ValueError, match="a model is named '<provider>/<name>' with a provider out of openai, anthropic"
    ):
        Model(name)


@pytest.mark.parametrize(
    "options", [{"api": "soap"}, {"timeout": 0}, {"max_retries": -1}], ids=["api", "timeout", "max_retries"]
)
def test_an_option_that_makes_no_sense_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Model("openai/gpt-5", **options)


def test_a_named_model_is_a_model_as_the_runtime_wants_it() -> None:
    model: ports.Model = Model("openai/gpt-5")
    assert model.name == "openai/gpt-5"


def test_a_key_is_not_shown() -> None:
    model = Model("openai/gpt-5", base_url="http://localhost:1", api_key="sk-secret")
    assert "sk-secret" not in repr(model)
    assert "sk-secret" not in repr(endpoint_of("openai/gpt-5", None, "sk-secret", None, {}))


OPENAI = {"OPENAI_API_KEY": "k"}


@pytest.mark.parametrize(
    ("name", "base_url", "api", "environment", "spoken"),
    [
        ("openai/gpt-5", None, None, OPENAI, "responses"),
        ("openai/gpt-5", "https://api.openai.com/v1", None, OPENAI, "responses"),
        ("openai/gpt-5", "https://eu.api.openai.com/v1", None, OPENAI, "responses"),
        ("openai/gpt-5", None, "chat", OPENAI, "chat"),
        ("openai/llama", "http://localhost:11434/v1", None, {}, "chat"),
        ("openai/llama", "http://localhost:11434/v1", "responses", {}, "responses"),
        ("openai/llama", "https://notapi.openai.com.example/v1", None, {}, "chat"),
        ("openai/gpt-5", None, None, {**OPENAI, "OPENAI_BASE_URL": "http://gateway/v1"}, "chat"),
        ("anthropic/claude", None, None, {"ANTHROPIC_API_KEY": "k"}, "messages"),
        ("google/gemini", None, None, {"GEMINI_API_KEY": "k"}, "generate"),
    ],
)
def test_what_is_spoken_depends_on_where(
    name: str, base_url: str | None, api: Any, environment: dict[str, str], spoken: str
) -> None:
    assert endpoint_of(name, base_url, None, api, environment).api == spoken


def test_what_is_given_counts_more_than_the_environment() -> None:
    environment = {"GOOGLE_API_KEY": "a", "GEMINI_API_KEY": "b", "GOOGLE_GEMINI_BASE_URL": "http://env"}
    given = endpoint_of("google/gemini", "http://given", "c", None, environment)
    found = endpoint_of("google/gemini", None, None, None, environment)
    assert (given.base_url, given.api_key) == ("http://given", "c")
    assert (found.base_url, found.api_key) == ("http://env", "a")


def test_a_variable_that_is_empty_is_not_set() -> None:
    with pytest.raises(ModelError, match="set OPENAI_API_KEY"):
        endpoint_of("openai/gpt-5", None, None, None, {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""})


async def test_the_environment_is_read_when_the_model_is_asked(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.say({"content": "hello"})
    agent: Agent[Any] = Agent("greeter", "openai/gpt-5")
    for key in ("sk-one", "sk-two"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        await agent("go")
    assert [asked.headers["authorization"] for asked in api.requests] == ["Bearer sk-one", "Bearer sk-two"]
