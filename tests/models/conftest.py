"""Each test with a `model` runs for each API that is spoken."""

import pytest

from tests.fake_api import FakeApi
from timbal import Model

MODELS = {
    "openai chat": lambda: Model("openai/gpt-5"),
    "openai responses": lambda: Model("openai/gpt-5", api="responses"),
    "anthropic": lambda: Model("anthropic/claude-sonnet-4-5"),
    "google": lambda: Model("google/gemini-2.5-pro"),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, api: FakeApi) -> Model:
    """A model that is asked through the fake API, of each kind."""
    return MODELS[request.param]()
