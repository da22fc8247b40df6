"""S15, S16 and S21: many answers at the same moment, from one event loop and from several processes."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.answering_tools import answerers
from tests.scenarios.conftest import World
from tests.scenarios.effects_tools import Log, answers, asked, go_on
from tests.scenarios.programs import house
from tests.scenarios.programs.house import FileLines
from timbal.types.events import OutputEvent

ONCE = ["reserve 10", "pay 10", "handler went on with yes"]


def dumped(out: OutputEvent) -> dict[str, Any]:
    return {**out.model_dump(mode="json"), "receipts": out.receipts}


def check_one_winner(outs: list[dict[str, Any]], parent_id: str, value: str) -> None:
    """One resume won, and all the others followed it."""
    receipts = [receipt for out in outs for receipt in out["receipts"]]
    assert len(receipts) == len(outs)
    assert Counter(receipt["state"] for receipt in receipts) == {"accepted": 1, "already_settled": len(outs) - 1}
    (winner,) = {receipt["run_id"] for receipt in receipts}
    assert winner != parent_id
    assert {receipt["same_value"] for receipt in receipts} == {True}
    for out in outs:
        assert out["run_id"] == winner
        assert (out["status"]["code"], out["output"]) == ("success", f"10: {value}")


def check_the_losers(outs: list[dict[str, Any]], winner: str, value: str) -> None:
    """These resumes lost, and were told to what."""
    for out in outs:
        assert (out["status"]["code"], out["status"]["reason"]) == ("cancelled", "interaction_already_claimed")
        (receipt,) = out["receipts"]
        assert (receipt["state"], receipt["run_id"]) == ("already_settled", winner)
        assert (receipt["same_value"], receipt["value"]) == (False, value)


async def test_s15_fifty_equal_answers_from_one_event_loop_have_one_winner_and_one_effect(world: World) -> None:
    log: Log = []
    paused = await house.order(world.store, log)()
    resume = answers(paused, {"pay?": "yes"})
    stores = [world.cold() for _ in range(5)]
    resumes = [house.order(stores[i % 5], log)(parent_id=paused.run_id, resume=resume).collect() for i in range(50)]
    outs = await asyncio.gather(*resumes)
    check_one_winner([dumped(out) for out in outs], paused.run_id, "yes")
    assert log == ONCE


async def test_s15_followers_wait_while_the_winner_still_runs(world: World) -> None:
    log: Log = []
    entered, opened = asyncio.Event(), asyncio.Event()

    async def gate(what: str) -> None:
        entered.set()
        await opened.wait()

    paused = await house.order(world.store, log)()
    resume = answers(paused, {"pay?": "yes"})
    handles = [house.order(world.cold(), log, gate)(parent_id=paused.run_id, resume=resume) for _ in range(5)]
    tasks = [asyncio.ensure_future(handle.collect()) for handle in handles]
    await entered.wait()
    late = asyncio.ensure_future(house.order(world.cold(), log, gate)(parent_id=paused.run_id, resume=resume).collect())
    assert not any(task.done() for task in tasks)
    opened.set()
    check_one_winner([dumped(await task) for task in [*tasks, late]], paused.run_id, "yes")
    assert log == ONCE


@pytest.mark.slow
def test_s15_fifty_equal_answers_from_five_processes_have_one_winner_and_one_effect(
    tmp_path: Path, shared_world: World
) -> None:
    log = FileLines(tmp_path / "log")
    paused = house.order(shared_world.store, log).run_sync()
    with answerers(5, shared_world.url, log, "order") as five:
        for one in five:
            one.resume(paused.run_id, answers(paused, {"pay?": "yes"}), times=10)
        outs = [out for one in five for out in one.outputs()]
    check_one_winner(outs, paused.run_id, "yes")
    assert log.all() == ONCE


async def test_s16_of_different_answers_from_one_event_loop_one_wins_and_the_others_learn_to_what_they_lost(
    world: World,
) -> None:
    log: Log = []
    paused = await house.order(world.store, log)()
    stores = [world.cold() for _ in range(3)]
    values = [f"value {i % 5}" for i in range(50)]
    resumes = [
        house.order(stores[i % 3], log)(parent_id=paused.run_id, resume=answers(paused, {"pay?": value})).collect()
        for i, value in enumerate(values)
    ]
    outs = [dumped(out) for out in await asyncio.gather(*resumes)]
    won = next(value for value, out in zip(values, outs, strict=True) if out["receipts"][0]["state"] == "accepted")
    winners = [out for value, out in zip(values, outs, strict=True) if value == won]
    check_one_winner(winners, paused.run_id, won)
    losers = [out for value, out in zip(values, outs, strict=True) if value != won]
    check_the_losers(losers, winners[0]["run_id"], won)
    assert len({out["run_id"] for out in losers}) == len(losers)
    assert log == ["reserve 10", "pay 10", f"handler went on with {won}"]


@pytest.mark.slow
def test_s16_of_different_answers_from_five_processes_one_wins_and_the_others_learn_to_what_they_lost(
    tmp_path: Path, shared_world: World
) -> None:
    log = FileLines(tmp_path / "log")
    paused = house.order(shared_world.store, log).run_sync()
    with answerers(5, shared_world.url, log, "order") as five:
        for i, one in enumerate(five):
            one.resume(paused.run_id, answers(paused, {"pay?": f"value {i}"}), times=10)
        outs = {f"value {i}": one.outputs() for i, one in enumerate(five)}
    (won,) = [value for value, group in outs.items() if any(out["receipts"][0]["state"] == "accepted" for out in group)]
    winners = outs.pop(won)
    check_one_winner(winners, paused.run_id, won)
    check_the_losers([out for group in outs.values() for out in group], winners[0]["run_id"], won)
    assert log.all() == ["reserve 10", "pay 10", f"handler went on with {won}"]


PAIRS: dict[str, tuple[Any, Any]] = {
    "True and 1": (True, 1),
    "False and 0": (False, 0),
    "empty str and None": ("", None),
    "empty list and empty dict": ([], {}),
    "nested": ({"a": [True]}, {"a": [1]}),
    "order in a list": ([1, 2], [2, 1]),
    "a number and its text": (1, "1"),
}


@pytest.mark.parametrize("pair", PAIRS)
async def test_s16_answers_that_python_takes_for_alike_are_different_answers(world: World, pair: str) -> None:
    log: Log = []
    first, second = PAIRS[pair]
    paused = await house.order(world.store, log)()
    done = await go_on(house.order(world.cold(), log), paused, {"pay?": first})
    lost = await go_on(house.order(world.cold(), log), paused, {"pay?": second})
    assert lost.status.reason == "interaction_already_claimed"
    assert (lost.receipts[0]["run_id"], lost.receipts[0]["same_value"]) == (done.run_id, False)
    assert type(lost.receipts[0]["value"]) is type(first)


async def test_s16_a_resume_that_lost_one_of_its_answers_commits_none_of_the_others(world: World) -> None:
    log: Log = []
    paused = await house.four(world.store, log)("go")
    await go_on(house.four(world.cold(), log), paused, {"a": 1})
    lost = await go_on(house.four(world.cold(), log), paused, {"b": 1, "a": 2, "c": 1})
    assert lost.status.reason == "interaction_already_claimed"
    now = await house.four(world.cold(), log)(parent_id=paused.run_id, resume={})
    assert list(asked(now)) == ["b", "c", "d"]
    assert Counter(log) == {"model 0": 1, "inquired a": 1}


async def until_settled(store: Any, about: str) -> None:
    """Look until the store says that nobody waits for this any more."""
    while any(item.event.payload["q"] == about for item in (await store.pending()).items):  # noqa: ASYNC110
        await asyncio.sleep(0)


FOUR_ONCE = Counter(["model 0", "model 1", *(f"inquired {about}" for about in "abcd")])


async def test_s21_an_answer_that_comes_while_another_ones_tool_still_runs_is_used_once_it_can_be(world: World) -> None:
    log: Log = []
    entered, opened = asyncio.Event(), asyncio.Event()

    async def gate(about: str) -> None:
        if about == "c":
            entered.set()
            await opened.wait()

    paused = await house.four(world.store, log)("go")
    first = asyncio.ensure_future(go_on(house.four(world.cold(), log, gate), paused, {"c": 3}))
    await entered.wait()
    second = asyncio.ensure_future(go_on(house.four(world.cold(), log, gate), paused, {"a": 1}))
    await until_settled(world.cold(), "a")
    assert not first.done()
    assert Counter(log) == {"model 0": 1}
    opened.set()
    assert (await first).status.reason == (await second).status.reason == "input_required"
    assert list(asked(await second)) == ["b", "d"]
    assert Counter(log) == {"model 0": 1, "inquired a": 1, "inquired c": 1}
    await go_on(house.four(world.cold(), log), paused, {"d": 4})
    done = await go_on(house.four(world.cold(), log), await first, {"b": 2})
    assert done.output.collect_text() == "a=1 b=2 c=3 d=4"
    assert Counter(log) == FOUR_ONCE


async def test_s21_four_answers_in_four_resumes_at_the_same_moment_are_all_used(world: World) -> None:
    log: Log = []
    paused = await house.four(world.store, log)("go")
    resumes = [go_on(house.four(world.cold(), log), paused, {about: about}) for about in "dbca"]
    outs = await asyncio.gather(*resumes)
    assert all(out.status.reason in ("input_required", "end_turn") for out in outs)
    done = await house.four(world.cold(), log)(parent_id=paused.run_id, resume={})
    assert done.output.collect_text() == "a=a b=b c=c d=d"
    assert Counter(log) == FOUR_ONCE


@pytest.mark.slow
def test_s21_an_answer_from_another_process_while_the_first_ones_tool_still_runs_is_used_once(
    tmp_path: Path, shared_world: World
) -> None:
    log = FileLines(tmp_path / "log")
    paused = house.four(shared_world.store, log).run_sync("go")

    with answerers(2, shared_world.url, log, "four") as (one, other):
        one.resume(paused.run_id, answers(paused, {"c": 3}), gate=True)
        one.expect("entered")
        other.resume(paused.run_id, answers(paused, {"a": 1}))
        asyncio.run(until_settled(shared_world.store, "a"))
        assert log.all() == ["model 0"]
        one.send("go on")
        outs = [*one.outputs(), *other.outputs()]
    assert [out["status"]["reason"] for out in outs] == ["input_required"] * 2
    assert Counter(log.all()) == {"model 0": 1, "inquired a": 1, "inquired c": 1}
    with answerers(1, shared_world.url, log, "four") as (third,):
        third.resume(paused.run_id, answers(paused, {"d": 4, "b": 2}))
        (done,) = third.outputs()
    assert done["output"]["content"][0]["text"] == "a=1 b=2 c=3 d=4"
    assert Counter(log.all()) == FOUR_ONCE
