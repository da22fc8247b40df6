"""Each state of the page as it was agreed: its roles and names, and nothing that keeps anybody out."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.asking import APP, REFUND, ask, run
from tests.page.checks import check_accessibility, check_snapshot
from tests.server.servers import TIMBAL, Server

pytestmark = pytest.mark.slow

COLOURS = ["red", "green", "blue"]
SOME = {"type": "array", "items": {"type": "string", "enum": COLOURS}, "minItems": 1, "maxItems": 2}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("states"), command=[TIMBAL, "serve", str(APP), "--port", "0"]) as one:
        yield one


def check(page: Page, shown: Locator, name: str) -> None:
    check_accessibility(page)
    check_snapshot(shown, name)


def test_a_question_a_choice_and_a_decision(server: Server, page: Page) -> None:
    cards = {
        "card-options": ask(server, {"question": "Which?", "options": ["a", "b"]}, "ask_user"),
        "card-text": ask(server, {"question": "What?"}, "ask_user"),
        "card-several": ask(server, {"question": "Which?", "options": COLOURS}, "ask_user_multi", response_schema=SOME),
        "card-confirm": ask(server, {"action": "Delete all"}, "confirm"),
        "card-json": ask(server, {"x": 1}, "mystery"),
        "card-form": run(server, "order"),
    }
    for name, item in cards.items():
        card = item.open(page)
        expect(card.get_by_role("button").first).to_be_visible()
        check(page, card, name)


def test_an_approval_that_is_edited_reviewed_and_settled(server: Server, any_page: Page) -> None:
    card = run(server, "refund", **REFUND).open(any_page)
    card.get_by_role("button", name="Change, then approve").click()
    check(any_page, card, "approval-edit")
    card.get_by_label("Amount").fill("100")
    card.get_by_role("button", name="Review changes").click()
    check(any_page, card, "approval-review")
    card.get_by_role("button", name="Approve with these changes").click()
    expect(card).to_contain_text("Your answer was taken")
    card.get_by_text("Record").click()
    check_accessibility(any_page)
    check_snapshot(card.get_by_role("status"), "approval-settled")


def test_a_draft_that_came_too_late(server: Server, any_page: Page) -> None:
    item = ask(server, {"question": "Which colour?"}, "ask_user")
    card = item.open(any_page)
    card.get_by_label("Your answer").fill("green")
    item.answer("red")
    expect(card.get_by_label("You can copy it")).to_be_visible()
    check(any_page, card, "card-lost")


def test_a_conversation_that_asks_and_the_record_of_its_run(server: Server, any_page: Page) -> None:
    item = run(server, "assistant", prompt="go")
    any_page.goto(f"{server.url}/#/chat/{item.run_id}")
    expect(any_page.get_by_label("Your answer")).to_be_visible()
    check(any_page, any_page.get_by_role("main"), "chat-asking")
    any_page.get_by_role("link", name="Details of this run").click()
    expect(any_page.get_by_role("heading", name="What happened")).to_be_visible()
    check_accessibility(any_page)
    record = any_page.get_by_role("list").last
    expect(record.get_by_role("listitem").filter(has_text=re.compile("Asked: .*Which colour"))).to_be_visible()
