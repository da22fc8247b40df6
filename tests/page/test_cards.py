"""What a card shows of each kind of question, and what is sent when it is answered."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.asking import ADDRESS, APP, REFUND, ask, run
from tests.page.checks import check_accessibility, check_snapshot
from tests.page.guard import PageGuard
from tests.server.servers import TIMBAL, Server

pytestmark = pytest.mark.slow

STRING, BOOLEAN = {"type": "string"}, {"type": "boolean"}
COLOURS = ["red", "green", "blue"]
SOME = {"type": "array", "items": {"type": "string", "enum": COLOURS}, "minItems": 1, "maxItems": 2}
TAKEN = "Your answer was taken"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests here: each looks at the item that it has asked itself."""
    with Server(tmp_path_factory.mktemp("cards"), command=[TIMBAL, "serve", str(APP), "--port", "0"]) as one:
        yield one


def by_mouse(card: Locator, *names: str) -> None:
    for name in names:
        card.get_by_text(name, exact=True).or_(card.get_by_role("button", name=name)).first.click()


KINDS: dict[str, tuple[dict[str, Any], list[str], list[str], Any]] = {
    "a choice": (
        {"kind": "ask_user", "payload": {"question": "Which?", "options": ["a", "b"]}, "response_schema": STRING},
        ["b", "Send answer"],
        ["2", "Control+Enter"],
        "b",
    ),
    "a choice without a schema": (
        {"kind": "ask_user", "payload": {"question": "Which?", "options": ["a", "b"]}},
        ["a", "Send answer"],
        ["1", "Enter"],
        "a",
    ),
    "several": (
        {"kind": "ask_user_multi", "payload": {"question": "Which?", "options": COLOURS}, "response_schema": SOME},
        ["blue", "red", "Send answer"],
        ["3", "1", "Control+Enter"],
        ["red", "blue"],
    ),
    "yes": (
        {"kind": "confirm", "payload": {"action": "Delete all"}, "response_schema": BOOLEAN},
        ["Yes, do it"],
        ["a"],
        True,
    ),
    "no": (
        {"kind": "confirm", "payload": {"action": "Delete all"}, "response_schema": BOOLEAN},
        ["No, don't"],
        ["r"],
        False,
    ),
    "yes or no of an unknown kind": (
        {"kind": "strange", "payload": {"question": "Well?"}, "response_schema": BOOLEAN},
        ["Yes, do it"],
        ["a"],
        True,
    ),
}


@pytest.mark.parametrize("way", ["mouse", "keyboard"])
@pytest.mark.parametrize(("asked", "clicks", "keys", "value"), KINDS.values(), ids=KINDS)
def test_a_question_is_answered(
    server: Server, page: Page, asked: Any, clicks: list[str], keys: list[str], value: Any, way: str
) -> None:
    item = ask(server, **asked)
    card = item.open(page)
    expect(card.get_by_role("group").first).to_be_visible()
    if way == "mouse":
        by_mouse(card, *clicks)
    else:
        for key in keys:
            page.keyboard.press(key)
    expect(card).to_contain_text(TAKEN)
    assert item.value() == value
    expect(page.get_by_role("link", name=re.compile("^(Next|Back to the inbox)$"))).to_be_focused()


def test_a_text_of_several_lines_is_sent_as_it_is(server: Server, page: Page) -> None:
    item = run(server, "assistant", prompt="go")
    card = item.open(page)
    card.get_by_role("group", name="Which colour?").get_by_label("Your answer").fill("green\nor blue, a, e, r, 1, j")
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text(TAKEN)
    assert item.value() == "green\nor blue, a, e, r, 1, j"


def test_an_answer_besides_the_options_can_be_written(server: Server, page: Page) -> None:
    item = ask(server, {"question": "Which?", "options": ["a", "b"]}, "ask_user", response_schema=STRING)
    card = item.open(page)
    card.get_by_label("Other").check()
    expect(card.get_by_label("Your answer")).to_be_focused()
    page.keyboard.type("neither, j")
    card.get_by_role("button", name="Send answer").click()
    expect(card).to_contain_text(TAKEN)
    assert item.value() == "neither, j"


def test_where_the_schema_lists_all_answers_no_other_is_offered(server: Server, page: Page) -> None:
    item = ask(server, {"question": "Which?"}, "ask_user", response_schema={"type": "string", "enum": ["x", "y"]})
    card = item.open(page)
    expect(card.get_by_role("radio")).to_have_count(2)
    expect(card.get_by_label("Other")).to_have_count(0)


def test_an_answer_that_is_missing_is_asked_for_at_its_place(server: Server, page: Page) -> None:
    item = ask(server, {"question": "Which?", "options": ["a", "b"]}, "ask_user", response_schema=STRING)
    card = item.open(page)
    card.get_by_role("button", name="Send answer").click()
    expect(card.get_by_role("alert")).to_have_text("Choose one of these.")
    expect(card.get_by_role("radio", name="a")).to_be_focused()
    card.get_by_role("radio", name="b").check()
    expect(card.get_by_role("alert")).to_have_count(0)


def test_how_many_may_be_chosen_is_told_and_checked(server: Server, page: Page) -> None:
    item = ask(server, {"question": "Which?", "options": COLOURS}, "ask_user_multi", response_schema=SOME)
    card = item.open(page)
    expect(card).to_contain_text("Choose 1 to 2.")
    for colour in COLOURS:
        card.get_by_label(colour).check()
    card.get_by_role("button", name="Send answer").click()
    expect(card.get_by_role("alert")).to_have_text("Choose 1 to 2.")
    assert item.record()["state"] == "pending"


def test_anything_can_be_answered_as_json(server: Server, page: Page) -> None:
    item = ask(server, {"x": 1, "deep": {"y": [{"z": 2}]}}, "mystery")
    card = item.open(page)
    expect(card.get_by_text("mystery")).to_be_visible()
    card.get_by_role("button", name="Show 1 field").click()
    expect(card.get_by_role("button", name="Show 1 entries")).to_be_visible()
    area = card.get_by_label("Answer, as JSON")
    area.fill('{"a": ')
    expect(card.get_by_role("alert")).to_contain_text("This is no JSON yet")
    area.press("Control+Enter")
    expect(area).to_be_focused()
    area.fill('{"a": [1, null]}')
    expect(card.get_by_role("alert")).to_have_text("")
    area.press("Control+Enter")
    expect(card).to_contain_text(TAKEN)
    assert item.value() == {"a": [1, None]}


# -- approvals ---------------------------------------------------------------------------------------------------------


def test_an_approval_tells_what_would_run_and_is_approved_by_a_key(server: Server, page: Page) -> None:
    item = run(server, "refund", **REFUND)
    card = item.open(page)
    for told in [
        "Refund 250 EUR to Ada?",
        "Refunds can't be taken back.",
        "customer",
        "[redacted]",
        "left in the till",
    ]:
        expect(card).to_contain_text(told)
    card.get_by_role("button", name="Show 2 fields").click()
    expect(card).to_contain_text("Main Street 1")
    check_snapshot(card, "approval")
    page.keyboard.press("a")
    expect(card).to_contain_text(TAKEN)
    expect(card).to_contain_text("Approved")
    assert item.value() is True


def test_an_approval_is_denied_with_a_reason(server: Server, page: Page) -> None:
    item = run(server, "refund", **REFUND)
    card = item.open(page)
    page.keyboard.press("r")
    reason = card.get_by_label("Why not?")
    expect(reason).to_be_focused()
    reason.fill("no receipt")
    reason.press("Control+Enter")
    expect(card).to_contain_text("Denied")
    expect(card).to_contain_text("no receipt")
    assert item.value() == {"approved": False, "reason": "no receipt"}


def test_a_decision_for_the_conversation_is_offered_where_it_counts(server: Server, page: Page) -> None:
    item = run(server, "refund", **REFUND)
    card = item.open(page)
    card.get_by_label("don't ask again").check()
    card.get_by_role("button", name="Approve", exact=True).click()
    expect(card).to_contain_text("later calls in this conversation")
    assert item.value() == {"approved": True, "scope": "conversation"}
    card = run(server, "once", **REFUND).open(page)
    expect(card).to_contain_text("May once run?")
    expect(card.get_by_label("don't ask again")).to_have_count(0)


def test_what_runs_is_changed_after_a_look_at_the_difference(server: Server, page: Page) -> None:
    item = run(server, "refund", **REFUND)
    card = item.open(page)
    page.keyboard.press("e")
    amount = card.get_by_label("Amount")
    expect(card.get_by_label("Card")).to_have_count(0)
    amount.fill("100")
    card.get_by_label("City").fill("Graz")
    page.keyboard.press("Control+Enter")
    changes = card.get_by_role("definition")
    expect(changes.filter(has_text="100")).to_have_text(re.compile(r"250\s*→\s*100"))
    expect(changes.filter(has_text="Graz")).to_have_text(re.compile(r"Vienna\s*→\s*Graz"))
    assert item.record()["state"] == "pending"
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text("Approved with changes")
    edit = {"amount": 100, "address": {**ADDRESS, "city": "Graz"}}
    assert item.value() == {"approved": True, "override_input": edit}


def test_a_change_that_the_server_refuses_is_told_at_its_field(
    server: Server, page: Page, page_guard: PageGuard
) -> None:
    page_guard.expect(422)
    item = ask(server, {"question": "Your order?"}, "order", response_schema={"type": "object"})
    card = item.open(page)
    expect(card.get_by_role("button", name="Send answer")).to_be_visible()
    item = run(server, "order")
    card = item.open(page)
    card.get_by_label("Count").fill("3")
    card.get_by_label("Note").fill("soon")
    # The page would not let it through: what is refused here is what only the server knows.
    page.route("**/pending/*/*", lambda route: route.continue_(post_data='{"value": {"count": 11, "note": "soon"}}'))
    card.get_by_role("button", name="Send answer").click()
    expect(card.get_by_label("Count")).to_be_focused()
    page.unroute_all()
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text(TAKEN)


# -- who may, and what is told -----------------------------------------------------------------------------------------


def test_who_is_not_in_the_audience_is_told_before_typing(server: Server, page: Page) -> None:
    card = ask(server, {"question": "May we?"}, "ask_user", audience=["role:finance"]).open(page)
    expect(card).to_contain_text("This is for the role finance.")
    expect(card.get_by_role("button", name="Send answer")).to_have_count(0)


def test_an_item_that_expires_meanwhile_says_so(server: Server, page: Page) -> None:
    card = ask(server, {"question": "Now?"}, "ask_user", expires_in=5).open(page)
    expect(card).to_contain_text(re.compile(r"0:0\d left"))
    expect(card).to_contain_text("The time for this is over")
    expect(card.get_by_role("textbox")).to_have_count(0)


def test_a_settled_item_shows_its_record(server: Server, page: Page) -> None:
    item = ask(server, {"question": "Which?", "options": ["a"]}, "ask_user", labels={"tenant": "acme"})
    item.answer("b")
    card = item.open(page)
    expect(card).to_contain_text("Answered")
    expect(card.get_by_role("radio").first).to_be_disabled()
    card.get_by_text("Record").click()
    expect(card).to_contain_text("tenant=acme")
    link = card.get_by_role("link", name="See it in its run")
    expect(link).to_have_attribute("href", f"#/chat/{item.run_id}?item={item.id}")


def test_an_item_that_is_not_there_is_told(server: Server, page: Page, page_guard: PageGuard) -> None:
    page_guard.expect(404)
    page.goto(f"{server.url}/#/inbox/0123/4567")
    expect(page.get_by_role("alert")).to_contain_text("It can't be shown")


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \u202egnp.exe\u200b\u061c\U000e0041 \u0000"


def test_hostile_texts_are_shown_as_text(server: Server, page: Page) -> None:
    payload = {
        "question": HOSTILE,
        "options": [HOSTILE, "x" * 5000],
        HOSTILE: {HOSTILE: [HOSTILE]},
        "big": "y" * 1_000_000,
    }
    payload = {name.replace("\0", ""): value for name, value in payload.items()}
    item = ask(server, payload, "ask_user", response_schema=STRING, labels={"a": HOSTILE.replace("\0", "")})
    card = item.open(page)
    expect(card.get_by_role("group").first).to_contain_text("<script>alert(1)</script>")
    expect(card.get_by_role("group").first).to_contain_text("[U+202E]gnp.exe[U+200B][U+061C][U+E0041]")
    assert page.evaluate("document.querySelectorAll('article :is(script, img)').length") == 0
    more = card.get_by_role("button", name="Show all 1,000,000 characters")
    more.click()
    assert page.evaluate("[...document.querySelectorAll('bdi')].some(one => one.textContent.length === 1e6)")
    card.get_by_role("button", name="Show less").click()
    expect(more).to_be_visible()
    card.get_by_role("radio").first.check()
    card.get_by_role("button", name="Send answer").click()
    expect(card).to_contain_text(TAKEN)
    assert item.value() == HOSTILE


@pytest.mark.parametrize("kind", ["choice", "several", "confirm", "approval", "text", "json", "denying"])
def test_each_card_is_accessible(server: Server, any_page: Page, kind: str) -> None:
    items = {
        "choice": lambda: ask(server, {"question": "Which?", "options": ["a", "b"]}, "ask_user", expires_in=100),
        "several": lambda: ask(
            server, {"question": "Which?", "options": COLOURS}, "ask_user_multi", response_schema=SOME
        ),
        "confirm": lambda: ask(server, {"action": "Delete all"}, "confirm"),
        "approval": lambda: run(server, "refund", **REFUND),
        "denying": lambda: run(server, "refund", **REFUND),
        "text": lambda: ask(server, {"question": "What?", "more": {"a": 1}}, "ask_user"),
        "json": lambda: ask(server, {"x": 1}, "mystery"),
    }
    card = items[kind]().open(any_page)
    expect(card.get_by_role("button").first).to_be_visible()
    if kind == "denying":
        card.get_by_role("button", name="Deny").click()
    card.get_by_text("Record").click()
    check_accessibility(any_page)


def test_controls_are_large_enough_for_a_thumb(server: Server, phone: Page) -> None:
    card = ask(server, {"question": "Which?", "options": ["a", "b"], "more": {"x": 1}}, "ask_user").open(phone)
    expect(card.get_by_role("radio").first).to_be_visible()
    for control in [
        *card.get_by_role("button").all(),
        card.get_by_text("Record"),
        card.get_by_text("a", exact=True).locator("../.."),
    ]:
        box = control.bounding_box()
        assert box is not None
        assert box["height"] >= 44, control
