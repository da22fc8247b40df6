"""S18 and S19: a resume with one wrong answer or one wrong id changes nothing at all."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tests.scenarios.effects_tools import Log, World, answers, ask, asked, tool_calls, tool_results, turns_so_far
from timbal import Agent, Tool, suspend
from timbal.core.ids import interaction_id
from timbal.testing import TestModel
from timbal.types.approval import Cancel, Principal
from timbal.types.events import OutputEvent


class Line(BaseModel):
    item: str
    count: int


class Basket(BaseModel):
    lines: list[Line]
    pay: Literal["card", "cash"] = "card"


def desk(world: World, log: Log, kind: Any = int, audience: list[str] | None = None, name: str = "desk") -> Agent[Any]:
    """An agent whose two tools ask at once: the question a takes anything, b takes a `kind`."""

    def one() -> str:
        answer = ask("a")
        log.append("one")
        return f"a={answer}"

    def two() -> str:
        answer = suspend({"q": "b"}, response_type=kind, audience=audience)
        log.append("two")
        return f"b={answer}"

    def model(messages: Any) -> Any:
        if turns_so_far(messages) % 2 == 0:
            return tool_calls(("one", {}), ("two", {}))
        return " ".join(map(str, tool_results(messages)))

    return Agent(name, TestModel(handler=model), [one, two], store=world.cold())


async def check_untouched(
    world: World, fresh: Callable[[], Any], paused: OutputEvent, log: Log, refused: OutputEvent
) -> None:
    """It was refused, and nothing has happened: no answer kept, nothing run, all still pending, no run entered."""
    assert (refused.status.code, refused.status.reason) == ("error", "resume_rejected")
    assert refused.output is None
    assert log == []
    assert [item.id for item in (await world.cold().pending(runnable=paused.path)).items] == list(
        asked(paused).values()
    )
    still = await fresh()(parent_id=paused.run_id, resume={})
    assert asked(still) == asked(paused)
    assert refused.run_id not in [run.run_id for run in (await world.cold().runs()).items]


#: The type that b takes, a wrong answer, where it is wrong, and a right one.
WRONG: dict[str, tuple[Any, Any, str, Any]] = {
    "text for a number": (int, "x", "", 1),
    "a float for an int": (int, 1.5, "", 1),
    "a bool for an int": (int, True, "", 1),
    "None": (int, None, "", 1),
    "a deep one": (
        Basket,
        {"lines": [{"item": "tea", "count": 1}, {"item": "tea", "count": "x"}]},
        "/lines/1/count",
        {"lines": []},
    ),
    "a missing field": (Basket, {}, "", {"lines": []}),
    "not one of the words": (Basket, {"lines": [], "pay": "gold"}, "/pay", {"lines": [], "pay": "cash"}),
    "a list for a model": (Basket, [], "", {"lines": []}),
    "an item of a list": (list[int], [1, 2, "x"], "/2", [1]),
    "none of a union": (int | bool, "x", "", True),
    "a dict's value": (dict[str, int], {"a": 1, "b/c": "x"}, "/b~1c", {}),
    "what is no JSON": (int, {1, 2}, "", 1),
    "NaN": (float, float("nan"), "", 1.5),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("first", ["a", "b"], ids=["valid one first", "wrong one first"])
async def test_s18_one_wrong_answer_refuses_the_whole_resume_and_says_where(
    world: World, case: str, first: str
) -> None:
    kind, wrong, pointer, right = WRONG[case]
    log: Log = []

    def fresh() -> Agent[Any]:
        return desk(world, log, kind)

    paused = await fresh()("go")
    given = {"a": "fine", "b": wrong} if first == "a" else {"b": wrong, "a": "fine"}
    refused = await fresh()(parent_id=paused.run_id, resume=answers(paused, given))
    bad = asked(paused)["b"]
    assert bad in (refused.status.message or "")
    receipt = next(receipt for receipt in refused.receipts if receipt["id"] == bad)
    assert receipt["state"] == "invalid"
    assert [error["pointer"] for error in receipt["errors"]] == [pointer]
    assert all(error["message"] for error in receipt["errors"])
    assert "accepted" not in {receipt["state"] for receipt in refused.receipts}
    await check_untouched(world, fresh, paused, log, refused)
    done = await fresh()(parent_id=paused.run_id, resume=answers(paused, {"a": "fine", "b": right}))
    assert done.status.code == "success"
    assert sorted(log) == ["one", "two"]


@pytest.mark.parametrize(
    "wrong", [{1, 2}, object(), float("inf"), {1: 2}, b"x"], ids=lambda wrong: type(wrong).__name__
)
async def test_s18_an_answer_that_is_no_json_is_refused_even_where_anything_is_taken(world: World, wrong: Any) -> None:
    log: Log = []
    paused = await desk(world, log)("go")
    refused = await desk(world, log)(parent_id=paused.run_id, resume=answers(paused, {"b": 1, "a": wrong}))
    assert [receipt["state"] for receipt in refused.receipts if receipt["id"] == asked(paused)["a"]] == ["invalid"]
    await check_untouched(world, lambda: desk(world, log), paused, log, refused)


async def test_s18_a_cancel_beside_a_wrong_answer_cancels_nothing(world: World) -> None:
    log: Log = []
    paused = await desk(world, log)("go")
    refused = await desk(world, log)(parent_id=paused.run_id, resume=answers(paused, {"a": Cancel("stop"), "b": "x"}))
    await check_untouched(world, lambda: desk(world, log), paused, log, refused)


async def test_s18_an_answer_by_someone_outside_the_audience_refuses_the_whole_resume(world: World) -> None:
    log: Log = []

    def fresh() -> Agent[Any]:
        return desk(world, log, audience=["role:boss"])

    paused = await fresh()("go")
    resume = answers(paused, {"a": "fine", "b": 1})
    for by in (None, Principal("bob", ["clerk"])):
        refused = await fresh()(parent_id=paused.run_id, resume=resume, by=by)
        assert [r["state"] for r in refused.receipts if r["id"] == asked(paused)["b"]] == ["forbidden"]
        await check_untouched(world, fresh, paused, log, refused)
    done = await fresh()(parent_id=paused.run_id, resume=resume, by=Principal("ada", ["boss"]))
    assert done.status.code == "success"


# -- S19: wrong ids ----------------------------------------------------------------------------------------------------

# Each of these gives a wrong id; it is handed the world, and the run that waits.


async def of_another_run(world: World, paused: OutputEvent) -> Any:
    other = await desk(world, [], str)("go")
    return next(one for one in asked(other).values() if one not in asked(paused).values())


async def of_another_runnable(world: World, paused: OutputEvent) -> Any:
    return asked(await desk(world, [], name="counter")("go"))["a"]


async def of_a_finished_run(world: World, paused: OutputEvent) -> Any:
    other = await desk(world, [])("before")
    await desk(world, [])(parent_id=other.run_id, resume=answers(other, {"a": 1, "b": 1}))
    return asked(other)["a"]


async def of_the_turn_before(world: World, paused: OutputEvent) -> Any:
    other = await desk(world, [])("before")
    return asked(other)["b"]


async def computed_offline_for_a_call_that_was_never_pending(world: World, paused: OutputEvent) -> Any:
    item = paused.pending[0]
    return interaction_id(item.path, {"q": "a"}, item.tool_call_id, 1)


async def computed_offline_for_another_payload(world: World, paused: OutputEvent) -> Any:
    item = paused.pending[0]
    return interaction_id(item.path, {"q": "other"}, item.tool_call_id, 0)


async def made_up(world: World, paused: OutputEvent) -> Any:
    return "x"


async def the_run_id(world: World, paused: OutputEvent) -> Any:
    return paused.run_id


async def the_tool_call_id(world: World, paused: OutputEvent) -> Any:
    return paused.pending[0].tool_call_id


async def the_call_id(world: World, paused: OutputEvent) -> Any:
    return paused.pending[0].call_id


async def a_part_of_the_id(world: World, paused: OutputEvent) -> Any:
    return asked(paused)["a"][:31]


async def the_id_in_upper_case(world: World, paused: OutputEvent) -> Any:
    return asked(paused)["a"].upper() + " "


async def an_int(world: World, paused: OutputEvent) -> Any:
    return 1


async def none_at_all(world: World, paused: OutputEvent) -> Any:
    return None


async def an_empty_id(world: World, paused: OutputEvent) -> Any:
    return ""


IDS = [
    of_another_run,
    of_another_runnable,
    of_a_finished_run,
    of_the_turn_before,
    computed_offline_for_a_call_that_was_never_pending,
    computed_offline_for_another_payload,
    made_up,
    the_run_id,
    the_tool_call_id,
    the_call_id,
    a_part_of_the_id,
    the_id_in_upper_case,
    an_int,
    none_at_all,
    an_empty_id,
]


@pytest.mark.parametrize("make", IDS, ids=lambda make: make.__name__)
async def test_s19_a_valid_answer_beside_an_id_that_this_run_never_asked_is_refused_and_nothing_runs(
    world: World, make: Any
) -> None:
    log: Log = []

    def fresh() -> Agent[Any]:
        return desk(world, log)

    paused = await fresh()("go")
    wrong = await make(world, paused)
    assert wrong not in asked(paused).values()
    resume = {**answers(paused, {"a": "fine", "b": 1}), wrong: "x"}
    refused = await fresh()(parent_id=paused.run_id, resume=resume)
    unknown = {"state": "unknown", "run_id": None, "same_value": None, "value": None, "by": None, "at": None}
    assert [receipt for receipt in refused.receipts if receipt["id"] == wrong] == [{"id": wrong, **unknown}]
    assert log == []
    still = await fresh()(parent_id=paused.run_id, resume={})
    assert asked(still) == asked(paused)
    done = await fresh()(parent_id=paused.run_id, resume=answers(paused, {"a": "fine", "b": 1}))
    assert done.output.collect_text() == "a=fine b=1"


async def test_s19_a_parent_that_is_missing_or_of_another_runnable_is_refused_with_its_name(world: World) -> None:
    log: Log = []
    paused = await desk(world, log)("go")
    resume = answers(paused, {"a": 1, "b": 1})
    missing = await desk(world, log)(parent_id="0" * 32, resume=resume)
    other = await desk(world, log, name="counter")(parent_id=paused.run_id, resume=resume)
    for refused in (missing, other):
        assert (refused.status.code, refused.status.reason) == ("error", "resume_rejected")
    assert "0" * 32 in (missing.status.message or "")
    assert "desk" in (other.status.message or "")
    assert "counter" in (other.status.message or "")
    await check_untouched(world, lambda: desk(world, log), paused, log, other)


async def test_s19_without_a_parent_an_id_is_found_where_it_is_pending_once_and_refused_elsewhere(world: World) -> None:
    log: Log = []

    def fresh(name: str = "pay") -> Tool[..., Any]:
        def pay() -> str:
            answer = ask("pay?")
            log.append("paid")
            return str(answer)

        return Tool(pay, name=name, store=world.cold())

    first, second = await fresh()(), await fresh()()
    resume = answers(first, {"pay?": "yes"})
    assert resume == answers(second, {"pay?": "yes"})
    for refused in (await fresh()(resume=resume), await fresh("other")(resume=resume), await fresh()(resume={"x": 1})):
        assert (refused.status.code, refused.status.reason) == ("error", "resume_rejected")
        assert "parent_id" in (refused.status.message or "")
    assert log == []
    await fresh()(parent_id=first.run_id, resume=resume)
    done = await fresh()(resume=resume)
    assert (done.output, log) == ("yes", ["paid", "paid"])
    finished = await fresh()(resume=resume)
    assert finished.status.reason == "resume_rejected"
