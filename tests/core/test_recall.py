"""How operations are recognised: properties of `Recall` over generated records and arrivals."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timbal.core.ids import spawned_segment
from timbal.core.ledger import Op
from timbal.core.recall import Held, Mismatch, Recall, Recalled

KINDS = ["step", "Tool", "Agent", "suspend"]
operations = st.tuples(st.sampled_from(KINDS), st.sampled_from(["one", "two"]))
#: In tasks: kind, name and the digest of the arguments; few of each, so that equal ones are common.
arrivals = st.tuples(st.sampled_from(KINDS), st.sampled_from(["one", "two"]), st.sampled_from(["x", "y", "z"]))
lists = st.lists(operations, max_size=8)
spawned_lists = st.lists(arrivals, max_size=8)


def spawn_all(recall: Recall, arriving: list[tuple[str, str, str]]) -> list[Recalled]:
    """Let them arrive in this order; what is held tries again when the others have come. All must get through."""
    placed: list[Recalled] = []
    waiting = list(arriving)
    while waiting:
        held = []
        for kind, name, what in waiting:
            place = recall.spawned(kind, name, what)
            if isinstance(place, Recalled):
                placed.append(place)
            else:
                held.append((kind, name, what))
        assert len(held) < len(waiting), "nothing moves any more"
        waiting = held
    return placed


def recorded(own: list[tuple[str, str]] = (), spawned: list[tuple[str, str, str]] = ()) -> dict[str, Op]:  # type: ignore[assignment]
    """The records that a first execution with these operations leaves."""
    recall = Recall(None)
    records = {recall.own(kind, name).segment: Op(kind, name) for kind, name in own}
    for kind, name, what in spawned:
        place = recall.spawned(kind, name, what)
        assert isinstance(place, Recalled)
        records[place.segment] = Op(kind, name)
    return records


def is_call(kind: str) -> bool:
    return kind in ("Tool", "Agent")


def alike(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether recognition takes them for the same: a tool that became an agent of the same name is still that call."""
    return one[1] == other[1] and (one[0] == other[0] or (is_call(one[0]) and is_call(other[0])))


@given(lists)
def test_the_first_execution_places_its_own_operations_one_after_the_other_and_knows_none(
    own: list[tuple[str, str]],
) -> None:
    recall = Recall(None)
    assert [recall.own(*op) for op in own] == [Recalled(str(i), False) for i in range(len(own))]
    recall.check_complete()


@given(lists, st.integers(0, 8))
def test_a_re_execution_finds_its_own_operations_at_their_places(own: list[tuple[str, str]], more: int) -> None:
    recall = Recall(recorded(own))
    assert [recall.own(*op) for op in own] == [Recalled(str(i), True) for i in range(len(own))]
    recall.check_complete()
    for i in range(more):
        assert recall.own("step", "new") == Recalled(str(len(own) + i), False)
    recall.check_complete()


@given(lists.filter(bool), st.data())
def test_another_kind_or_name_at_a_place_is_a_mismatch_that_names_both(own: list[tuple[str, str]], data: Any) -> None:
    place = data.draw(st.integers(0, len(own) - 1))
    other = data.draw(operations.filter(lambda op: not alike(op, own[place])))
    recall = Recall(recorded(own))
    for op in own[:place]:
        recall.own(*op)
    with pytest.raises(Mismatch) as error:
        recall.own(*other)
    for text in (f"operation {place + 1} ", repr(own[place][1]), repr(other[1])):
        assert text in str(error.value)
    assert recall.own(*own[place]) == Recalled(str(place), True), "a refused operation claims nothing"


@given(lists.filter(bool), st.data())
def test_a_handler_that_returns_with_records_left_over_is_a_mismatch_that_names_them(
    own: list[tuple[str, str]], data: Any
) -> None:
    done = data.draw(st.integers(0, len(own) - 1))
    recall = Recall(recorded(own))
    for op in own[:done]:
        recall.own(*op)
    with pytest.raises(Mismatch) as error:
        recall.check_complete()
    assert all(repr(name) in str(error.value) for _, name in own[done:])


@given(spawned_lists)
def test_spawned_operations_have_places_of_their_own_that_depend_on_what_they_are_and_how_many_came_before(
    arriving: list[tuple[str, str, str]],
) -> None:
    places = [Recall(None).spawned(*one) for one in arriving]
    recall = Recall(None)
    together = [recall.spawned(*one) for one in arriving]
    assert len({place.segment for place in together}) == len(arriving)
    seen: set[tuple[str, ...]] = set()
    for (kind, name, what), alone, place in zip(arriving, places, together, strict=True):
        one = ("call" if is_call(kind) else kind, name, what)
        assert (place.segment == alone.segment) == (one not in seen)
        seen.add(one)
        assert "/" not in place.segment


@given(spawned_lists, st.data())
def test_spawned_operations_are_found_in_whatever_order_they_arrive(
    arriving: list[tuple[str, str, str]], data: Any
) -> None:
    records = recorded(spawned=arriving)
    recall = Recall(records)
    placed = spawn_all(recall, data.draw(st.permutations(arriving)))
    assert all(place.recorded for place in placed)
    assert {place.segment for place in placed} == records.keys()
    recall.check_complete()


@given(spawned_lists, arrivals, st.data())
def test_a_new_spawned_operation_is_held_exactly_while_records_of_its_name_are_unclaimed(
    arriving: list[tuple[str, str, str]], new: tuple[str, str, str], data: Any
) -> None:
    kind, name, _ = new
    new = (kind, name, "never recorded")
    records = recorded(spawned=arriving)
    recall = Recall(records)
    left = list(data.draw(st.permutations(arriving)))
    while True:
        same_name = [one for one in left if alike(one[:2], (kind, name))]
        place = recall.spawned(*new)
        if not same_name:
            assert place == Recalled(place.segment, False)
            break
        assert isinstance(place, Held)
        assert len(place.unclaimed) == len(same_name)
        assert all(alike(records[segment], (kind, name)) for segment in place.unclaimed)
        recall.spawned(*left.pop(0))


@given(lists, spawned_lists, st.data())
def test_own_and_spawned_operations_do_not_disturb_each_other(
    own: list[tuple[str, str]], arriving: list[tuple[str, str, str]], data: Any
) -> None:
    records = recorded(own, arriving)
    recall = Recall(records)
    order = data.draw(st.permutations([*("own" for _ in own), *("spawned" for _ in arriving)]))
    owns, spawneds = iter(own), iter(data.draw(st.permutations(arriving)))
    for which in order:
        place = recall.own(*next(owns)) if which == "own" else recall.spawned(*next(spawneds))
        assert place.recorded if isinstance(place, Recalled) else False
    recall.check_complete()
    assert all(recall.unclaimed(kind, name) == () for kind in KINDS for name in ("one", "two"))


@given(spawned_lists)
def test_records_that_no_task_asked_for_again_are_left_over(arriving: list[tuple[str, str, str]]) -> None:
    recall = Recall(recorded(spawned=arriving))
    if arriving:
        with pytest.raises(Mismatch):
            recall.check_complete()
    else:
        recall.check_complete()


#: Recorded kind, kind that comes, whether it is the same operation.
KIND_PAIRS = {
    "a tool that became an agent": ("Tool", "Agent", True),
    "an agent that became a tool": ("Agent", "Tool", True),
    "a tool that became a workflow": ("Tool", "Workflow", True),
    "a step that became a tool": ("step", "Tool", False),
    "a tool that became a step": ("Tool", "step", False),
    "a question that became a step": ("suspend", "step", False),
    "an agent that became a question": ("Agent", "suspend", False),
}


@pytest.mark.parametrize("case", KIND_PAIRS)
def test_a_call_is_the_same_whatever_runnable_it_is_and_nothing_else_is(case: str) -> None:
    before, now, same = KIND_PAIRS[case]
    recall = Recall({"0": Op(before, "name")})
    if same:
        assert recall.own(now, "name") == Recalled("0", True)
    else:
        with pytest.raises(Mismatch):
            recall.own(now, "name")
    spawned = Recall(recorded(spawned=[(before, "name", "x")]))
    place = spawned.spawned(now, "name", "x")
    assert isinstance(place, Recalled)
    assert place.recorded is same


def test_the_place_of_a_spawned_operation_is_frozen() -> None:
    assert Recall(None).spawned("step", "charge", "x").segment == spawned_segment("step", "charge", "x", 0)
    assert spawned_segment("step", "charge", "x", 0) == FROZEN


FROZEN = "~21f50c2a691acd37.0"
