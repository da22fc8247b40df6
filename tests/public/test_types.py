"""The public API as a type checker sees it: mypy checks these, and they run."""

from typing import Any, assert_type

from pydantic import BaseModel

from timbal import Agent, Tool, step, suspend
from timbal.testing import TestModel
from timbal.types.events import ApprovalEvent, InteractionEvent, OutputEvent


class Server(BaseModel):
    name: str


def add(a: int, b: int) -> int:
    return a + b


@step
def double(n: int) -> int:
    return 2 * n


@step
async def triple(n: int) -> int:
    return 3 * n


def asks() -> Server:
    return assert_type(suspend({"question": "Which?"}, response_type=Server), Server)


async def test_the_public_api_is_typed() -> None:
    tool: Tool[..., int] = Tool(add)
    out = assert_type(await tool(a=1, b=2), OutputEvent)
    assert_type(out.pending, list[InteractionEvent | ApprovalEvent])
    assert_type(double(2), int)
    assert_type(await triple(2), int)
    assert (out.output, double(2), await triple(2)) == (3, 4, 6)
    agent = Agent("assistant", TestModel(['{"name": "db"}']), output_model=Server)
    assert_type(agent, Agent[Server])
    assert (await agent("go")).output == Server(name="db")
    paused = await Tool(asks)()
    done = await Tool(asks)(parent_id=paused.run_id, resume={paused.pending[0].id: {"name": "db"}})
    assert_type(done.output, Any)
    assert done.output == Server(name="db")
