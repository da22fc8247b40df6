"""The public API as a type checker sees it: mypy checks these, and they run."""

from typing import Any, assert_type

from pydantic import BaseModel

from timbal import Agent, Tool, step, suspend
from timbal.core.grants import Grant
from timbal.stores import MemoryStore
from timbal.testing import TestModel
from timbal.types.approval import ApprovalPolicyDecision, ApprovalResolution, Principal
from timbal.types.events import ApprovalEvent, InteractionEvent, OutputEvent


class Money(BaseModel):
    amount: int


def pay(money: Money) -> str:
    return f"paid {money.amount}"


def too_much(money: Money) -> bool | ApprovalPolicyDecision:
    return ApprovalPolicyDecision(True, prompt="Much?") if money.amount > 10 else False


async def test_gates_are_typed() -> None:
    store = MemoryStore()
    tool: Tool[..., str] = Tool(pay, requires_approval=too_much, approval_redact_keys=["iban"], store=store)
    assert_type(tool, Tool[..., str])
    paused = await tool(money=Money(amount=50))
    gate = paused.pending[0]
    assert isinstance(gate, ApprovalEvent)
    assert_type(gate.approval_id, str)
    assert_type(gate.input, dict[str, Any])
    decision = ApprovalResolution(approved=True, scope="conversation", max_uses=1)
    done = await tool(parent_id=paused.run_id, resume={gate.id: decision}, by=Principal("ada"))
    assert done.output == "paid 50"
    grants = assert_type(await store.grants(done.run_id), list[Grant])
    assert_type(await store.revoke(done.run_id, grants[0].id), Grant)
    agent: Agent[Any] = Agent("clerk", TestModel(["x"]), [pay], approvals={"p*": too_much}, requires_approval=True)
    assert (await agent("go")).status.reason == "approval_required"


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
