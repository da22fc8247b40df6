"""S17 and S20: an answer that comes again, and a resume with another input."""

import asyncio
from typing import Any

import pytest

from tests.scenarios.effects_tools import Log, World, answers, ask, asked, go_on, tool_calls, tool_results, turns_so_far
from tests.scenarios.programs import house
from timbal import Agent, Tool
from timbal.testing import TestModel
from timbal.types.approval import Cancel, Principal

ONCE = ["reserve 10", "pay 10", "handler went on with yes"]


async def test_s17_the_same_answer_sent_again_gives_the_winners_result_while_it_runs_and_after_it_has_finished(
    world: World,
) -> None:
    log: Log = []
    entered, opened = asyncio.Event(), asyncio.Event()

    async def gate(what: str) -> None:
        entered.set()
        await opened.wait()

    paused = await house.order(world.store, log)()
    winner = asyncio.ensure_future(go_on(house.order(world.cold(), log, gate), paused, {"pay?": "yes"}))
    await entered.wait()
    while_it_runs = asyncio.ensure_future(go_on(house.order(world.cold(), log, gate), paused, {"pay?": "yes"}))
    lost_early = await go_on(house.order(world.cold(), log), paused, {"pay?": "no"})
    assert not winner.done()
    opened.set()
    won, followed = await winner, await while_it_runs
    afterwards = await go_on(house.order(world.cold(), log), paused, {"pay?": "yes"})
    lost_late = await go_on(house.order(world.cold(), log), paused, {"pay?": "no"})
    for out in (followed, afterwards):
        assert (out.run_id, out.status, out.output) == (won.run_id, won.status, "10: yes")
    for out in (lost_early, lost_late):
        assert (out.status.code, out.status.reason) == ("cancelled", "interaction_already_claimed")
        assert won.run_id in (out.status.message or "")
        assert "yes" in (out.status.message or "")
    assert log == ONCE


async def test_s17_the_receipts_say_what_became_of_each_id(world: World) -> None:
    log: Log = []
    paused = await house.order(world.store, log)()
    (item,) = answers(paused, {"pay?": "yes"})
    ada = Principal("ada", ["boss"])
    first = await house.order(world.cold(), log)(parent_id=paused.run_id, resume={item: "yes"}, by=ada)
    same = await house.order(world.cold(), log)(parent_id=paused.run_id, resume={item: "yes"})
    other = await house.order(world.cold(), log)(parent_id=paused.run_id, resume={item: "no"}, by=Principal("bob"))
    (accepted,) = first.receipts
    at = accepted["at"]
    assert paused.t1 <= at <= first.t1
    settled = {"id": item, "run_id": first.run_id, "value": "yes", "by": {"sub": "ada", "roles": ["boss"]}, "at": at}
    assert accepted == {**settled, "state": "accepted", "same_value": True}
    assert same.receipts == [{**settled, "state": "already_settled", "same_value": True}]
    assert other.receipts == [{**settled, "state": "already_settled", "same_value": False}]
    assert same.receipts == same.metadata["receipts"]
    assert (await house.order(world.cold(), log)(parent_id=paused.run_id, resume={})).receipts == []


async def test_s17_the_receipts_are_in_the_order_of_the_resume(world: World) -> None:
    log: Log = []
    paused = await house.four(world.store, log)("go")
    await go_on(house.four(world.cold(), log), paused, {"b": 2})
    out = await go_on(house.four(world.cold(), log), paused, {"d": 4, "b": 2, "a": 1})
    ids = asked(paused)
    expected = [(ids["d"], "accepted"), (ids["b"], "already_settled"), (ids["a"], "accepted")]
    assert [(receipt["id"], receipt["state"]) for receipt in out.receipts] == expected


async def test_s17_the_same_answer_sent_again_after_the_winner_has_paused_again_gives_its_pause(world: World) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        def twice() -> list[Any]:
            first = ask("first")
            log.append("between")
            return [first, ask("second")]

        return Tool(twice, store=world.cold())

    paused = await fresh()()
    second = await go_on(fresh(), paused, {"first": 1})
    again = await go_on(fresh(), paused, {"first": 1})
    assert (again.run_id, asked(again), again.output) == (second.run_id, asked(second), second.output)
    done = await go_on(fresh(), again, {"second": 2})
    late = await go_on(fresh(), paused, {"first": 1})
    assert done.output == late.output == [1, 2]
    assert log == ["between", "between"], "once in each execution that got that far, and never for a repeated answer"


async def test_s17_the_same_answer_sent_again_after_the_winner_has_failed_gives_its_failure(world: World) -> None:
    log: Log = []

    def fresh() -> Tool[..., Any]:
        def flaky() -> str:
            answer = ask("go on?")
            log.append("tried")
            if len(log) == 1:
                raise ConnectionError("the line is bad")
            return str(answer)

        return Tool(flaky, store=world.cold())

    paused = await fresh()()
    failed = await go_on(fresh(), paused, {"go on?": "yes"})
    again = await go_on(fresh(), paused, {"go on?": "yes"})
    assert (again.run_id, again.status) == (failed.run_id, failed.status)
    assert log == ["tried"]
    done = await fresh()(parent_id=paused.run_id, resume={})
    assert (done.output, log) == ("yes", ["tried", "tried"])


async def test_s17_the_same_answer_sent_again_after_the_winner_was_interrupted_goes_on(world: World) -> None:
    log: Log = []
    entered = asyncio.Event()

    async def gate(what: str) -> None:
        entered.set()
        await asyncio.Event().wait()

    paused = await house.order(world.store, log)()
    winner = house.order(world.cold(), log, gate)(parent_id=paused.run_id, resume=answers(paused, {"pay?": "yes"}))
    running = asyncio.ensure_future(winner.collect())
    await entered.wait()
    await winner.aclose()
    assert (await running).status.reason == "interrupted"
    done = await go_on(house.order(world.cold(), log), paused, {"pay?": "yes"})
    assert (done.status.code, done.output) == ("success", "10: yes")
    assert log == ONCE


@pytest.mark.parametrize("how", ["the same answer", "resume={}"])
async def test_s17_an_answer_that_was_only_settled_is_used_by_whoever_goes_on(world: World, how: str) -> None:
    log: Log = []
    paused = await house.order(world.store, log)()
    resume = answers(paused, {"pay?": "yes"})
    (settled,) = await world.cold().answer(paused.run_id, resume, by=Principal("ada"))
    assert (settled["state"], settled["run_id"], settled["value"]) == ("accepted", None, "yes")
    assert log == ["reserve 10"]
    (again,) = await world.cold().answer(paused.run_id, resume)
    assert (again["state"], again["same_value"], again["by"]["sub"]) == ("already_settled", True, "ada")
    given, stores = resume if how == "the same answer" else {}, [world.cold() for _ in range(5)]
    outs = await asyncio.gather(
        *(house.order(stores[i % 5], log)(parent_id=paused.run_id, resume=given).collect() for i in range(20))
    )
    assert {out.output for out in outs} == {"10: yes"}
    assert log == ONCE


async def test_s17_many_that_go_on_with_a_failed_run_at_the_same_moment_try_it_again_once(world: World) -> None:
    log: Log = []

    def fresh(store: Any) -> Tool[..., Any]:
        def flaky() -> str:
            log.append("tried")
            if len(log) == 1:
                raise ConnectionError("the line is bad")
            return "done"

        return Tool(flaky, store=store)

    failed = await fresh(world.store)()
    stores = [world.cold() for _ in range(5)]
    resumes = [fresh(stores[i % 5])(parent_id=failed.run_id, resume={}).collect() for i in range(20)]
    outs = await asyncio.gather(*resumes)
    assert {out.output for out in outs} == {"done"}
    assert log == ["tried", "tried"]


async def test_s17_a_cancel_sent_again_gives_the_same_output_and_an_answer_then_is_told_so(world: World) -> None:
    log: Log = []
    paused = await house.order(world.store, log)()
    (item,) = answers(paused, {"pay?": "yes"})
    first = await house.order(world.cold(), log)(parent_id=paused.run_id, resume={item: Cancel("changed my mind")})
    again = await house.order(world.cold(), log)(parent_id=paused.run_id, resume={item: Cancel("changed my mind")})
    late = await house.order(world.cold(), log)(parent_id=paused.run_id, resume={item: "yes"})
    for out in (first, again):
        assert (out.status.code, out.status.reason, out.status.message) == ("cancelled", "cancelled", "changed my mind")
    assert again.run_id == first.run_id
    assert late.status.reason == "resume_rejected"
    assert late.receipts[0]["state"] == "cancelled"
    assert log == ["reserve 10"]


# -- S20: another input ------------------------------------------------------------------------------------------------

CHANGED: dict[str, dict[str, Any]] = {
    "another amount": {"amount": 1_000_000},
    "a default given differently": {"note": "urgent"},
    "the same amount and another note": {"amount": 10, "note": "urgent"},
    "an unknown argument": {"amount": 10, "extra": 1},
    "an argument that does not fit": {"amount": "much"},
}
SAME: dict[str, dict[str, Any]] = {
    "left out": {},
    "given again": {"amount": 10},
    "given again in full": {"amount": 10, "note": ""},
    "given as text that means the same": {"amount": "10"},
}


def paying(world: World, log: Log) -> Tool[..., Any]:
    def pay(amount: int, note: str = "") -> str:
        answer = ask("pay?")
        log.append(f"pay {amount}{note}")
        return f"{amount}{note} {answer}"

    return Tool(pay, store=world.cold())


@pytest.mark.parametrize("case", CHANGED)
async def test_s20_a_resume_with_another_input_is_refused_and_what_is_stored_runs_at_the_right_call(
    world: World, case: str
) -> None:
    log: Log = []
    paused = await paying(world, log)(amount=10)
    resume = answers(paused, {"pay?": "yes"})
    refused = await paying(world, log)(**CHANGED[case], parent_id=paused.run_id, resume=resume)
    assert (refused.status.code, refused.status.reason) == ("error", "resume_rejected")
    assert log == []
    still = await paying(world, log)(parent_id=paused.run_id, resume={})
    assert asked(still) == asked(paused)
    done = await paying(world, log)(amount=10, parent_id=paused.run_id, resume=resume)
    assert (done.output, log) == ("10 yes", ["pay 10"])


@pytest.mark.parametrize("case", SAME)
async def test_s20_a_resume_with_the_same_input_is_taken(world: World, case: str) -> None:
    log: Log = []
    paused = await paying(world, log)(amount=10)
    done = await paying(world, log)(**SAME[case], parent_id=paused.run_id, resume=answers(paused, {"pay?": "yes"}))
    assert (done.status.code, done.output, log) == ("success", "10 yes", ["pay 10"])
    assert done.input == {"amount": 10, "note": ""}


async def test_s20_a_default_that_differs_each_time_is_stored_and_does_not_stand_in_the_way(world: World) -> None:
    stamps = iter("abcdef")
    got: list[str] = []

    def fresh() -> Tool[..., Any]:
        def pay(amount: int, stamp: str) -> str:
            got.append(stamp)
            return f"{amount} {stamp} {ask('pay?')}"

        return Tool(pay, default_params={"stamp": lambda: next(stamps)}, store=world.cold())

    paused = await fresh()(amount=10)
    done = await fresh()(amount=10, parent_id=paused.run_id, resume=answers(paused, {"pay?": "yes"}))
    assert (done.output, got) == ("10 a yes", ["a", "a"])
    refused = await fresh()(amount=10, stamp="z", parent_id=paused.run_id, resume=answers(paused, {"pay?": "yes"}))
    assert refused.status.reason == "resume_rejected"


async def test_s20_an_agent_takes_the_same_prompt_again_and_refuses_another_one(world: World) -> None:
    log: Log = []

    def fresh() -> Agent[Any]:
        def pay(amount: int) -> str:
            answer = ask("pay?")
            log.append(f"pay {amount}")
            return str(answer)

        def model(messages: Any) -> Any:
            prompt = messages[0].collect_text()
            return (
                str(tool_results(messages)) if turns_so_far(messages) else tool_calls(("pay", {"amount": len(prompt)}))
            )

        return Agent("payer", TestModel(handler=model), [pay], store=world.cold())

    paused = await fresh()("ten euros!")
    resume = answers(paused, {"pay?": "yes"})
    for other in ("ten euros! ", "a million euros!", [{"type": "text", "text": "ten euros?"}]):
        refused = await fresh()(prompt=other, parent_id=paused.run_id, resume=resume)
        assert refused.status.reason == "resume_rejected", other
    assert log == []
    for same in ("ten euros!", {"role": "user", "content": "ten euros!"}, [{"type": "text", "text": "ten euros!"}]):
        done = await fresh()(prompt=same, parent_id=paused.run_id, resume=resume)
        assert done.status.code == "success", same
    assert log == ["pay 10"]
