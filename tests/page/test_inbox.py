"""The inbox over all runs, live, in several tabs and browsers."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, BrowserContext, Page, Route, expect

from tests.page.asking import APP, Asked, ask, run
from tests.page.checks import check_accessibility, check_snapshot
from tests.page.guard import PageGuard
from tests.server.servers import TIMBAL, Server

pytestmark = pytest.mark.slow

COLOUR = {"question": "Which colour?"}
#: Counts what changes inside the list, times left aside.
#: Puts a new inbox in the place of the old one, until it is on the screen.
RENDER = """() => new Promise((done) => {
  const fresh = document.createElement('timbal-inbox');
  document.querySelector('timbal-inbox').replaceWith(fresh);
  requestAnimationFrame(() => setTimeout(() => fresh.querySelector('li') && done()));
})"""
OBSERVE = """() => {
  window.changed = new Set();
  new MutationObserver((all) => all.forEach(({ target }) => {
    const row = (target.nodeType === 1 ? target : target.parentElement)?.closest('li');
    if (row && !target.closest?.('timbal-time')) window.changed.add(row.textContent);
  })).observe(document.querySelector('.list'), {
    subtree: true, childList: true, characterData: true, attributes: true,
  });
}"""


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(APP)


def rows(page: Page) -> Any:
    return page.get_by_role("region", name="What waits").get_by_role("listitem")


def open_inbox(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/#/inbox")


def test_an_empty_inbox_explains_itself_and_fills_by_itself(server: Server, any_page: Page) -> None:
    open_inbox(server, any_page)
    expect(any_page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    expect(any_page.get_by_role("link", name="Start a run")).to_be_visible()
    check_accessibility(any_page)
    ask(server, COLOUR, "ask_user")
    expect(rows(any_page)).to_have_count(1)
    expect(any_page.get_by_label("1 waiting")).to_be_visible()
    check_accessibility(any_page)
    rows(any_page).get_by_role("link").click()
    expect(any_page.get_by_role("article")).to_contain_text("Which colour?")


def test_the_list_is_as_it_was_agreed(server: Server, page: Page) -> None:
    ask(server, COLOUR, "ask_user", labels={"tenant": "acme"})
    ask(server, {"action": "Delete all"}, "confirm", expires_in=86400 * 3)
    open_inbox(server, page)
    expect(rows(page)).to_have_count(2)
    check_snapshot(page.get_by_role("region", name="What waits"), "inbox")


def test_the_most_urgent_comes_first_on_demand_and_filters_stay(server: Server, page: Page) -> None:
    ask(server, {"question": "Old?"}, "ask_user", labels={"tenant": "a"})
    ask(server, {"question": "Urgent?"}, "ask_user", expires_in=900, labels={"tenant": "b"})
    ask(server, {"action": "Go"}, "confirm", expires_in=9000, labels={"tenant": "b"})
    open_inbox(server, page)
    expect(rows(page)).to_contain_text(["Old?", "Urgent?", "Go"])
    page.get_by_label("Most urgent first").check()
    expect(rows(page)).to_contain_text(["Urgent?", "Go", "Old?"])
    page.get_by_label("Label").select_option("tenant=b")
    expect(rows(page)).to_contain_text(["Urgent?", "Go"])
    page.get_by_label("Kind").select_option("Yes or no")
    expect(rows(page)).to_contain_text(["Go"])
    page.reload()
    expect(rows(page)).to_contain_text(["Go"])
    expect(page.get_by_label("Kind")).to_have_value("confirm")
    page.get_by_label("Search").fill("nothing like it")
    page.get_by_role("button", name="Show all").click()
    expect(rows(page)).to_have_count(3)


def test_the_keys_lead_from_one_to_the_next(server: Server, page: Page) -> None:
    for n in range(3):
        ask(server, {"question": f"Question {n}?", "options": ["x", "y"]}, "ask_user")
    open_inbox(server, page)
    expect(rows(page)).to_have_count(3)
    card = page.get_by_role("article")
    for key, shown in [("j", 0), ("j", 1), ("j", 2), ("k", 1)]:
        page.keyboard.press(key)
        expect(card).to_contain_text(f"Question {shown}?")
    page.keyboard.press("2")
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text("Your answer was taken")
    expect(page.get_by_role("link", name="Next")).to_be_focused()
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Question 2?")
    expect(rows(page)).to_contain_text(["Question 0?", "Question 2?"])


def test_what_is_typed_survives_what_happens_meanwhile(server: Server, page: Page) -> None:
    others = [ask(server, {"question": f"Question {n}?"}, "ask_user") for n in range(30)]
    card = others[20].open(page)
    area = card.get_by_label("Your answer")
    area.fill("half a tho")
    scroll = page.evaluate("document.querySelector('.list').scrollTop")
    page.evaluate(OBSERVE)
    ask(server, {"question": "A new one?"}, "ask_user")
    expect(rows(page)).to_have_count(31)
    others[3].answer("gone")
    expect(rows(page)).to_have_count(30)
    page.keyboard.type("ught")
    expect(area).to_be_focused()
    expect(area).to_have_value("half a thought")
    assert page.evaluate("[...window.changed]") == []
    assert page.evaluate("document.querySelector('.list').scrollTop") == pytest.approx(scroll, abs=100)
    page.reload()
    expect(area).to_have_value("half a thought")
    area.press("Control+Enter")
    expect(card).to_contain_text("Your answer was taken")
    assert page.evaluate("Object.keys(sessionStorage).filter(key => key.includes('/')).length") == 0


def test_in_another_tab_the_card_turns_read_only_and_keeps_what_was_typed(
    server: Server, open_context: Callable[..., BrowserContext]
) -> None:
    item = ask(server, COLOUR, "ask_user")
    context = open_context()
    here, there = context.new_page(), context.new_page()
    mine, theirs = item.open(here), item.open(there)
    mine.get_by_label("Your answer").fill("green, I think")
    theirs.get_by_label("Your answer").fill("red")
    theirs.get_by_role("button", name="Send answer").click()
    expect(theirs).to_contain_text("Your answer was taken")
    expect(mine).to_contain_text("Somebody else was faster.")
    expect(mine).to_contain_text("red")
    expect(mine.get_by_label("You can copy it")).to_have_value("green, I think")
    expect(mine.get_by_role("button", name="Send answer")).to_have_count(0)
    expect(rows(here)).to_have_count(1)
    here.get_by_role("link", name="Inbox").click()
    expect(here.get_by_role("heading", name="Nothing waits for you")).to_be_visible()


def test_of_two_browsers_that_answer_at_once_the_slower_one_learns_it(
    server: Server, open_context: Callable[..., BrowserContext], page_guard: PageGuard
) -> None:
    page_guard.expect(409)
    item = ask(server, COLOUR, "ask_user")
    slow = open_context().new_page()
    card = item.open(slow)
    card.get_by_label("Your answer").fill("green")

    def first(route: Route) -> None:
        item.answer("red")
        route.continue_()

    slow.route("**/pending/*/*", first)
    slow.keyboard.press("Control+Enter")
    expect(card).to_contain_text("Somebody else was faster.")
    expect(card).to_contain_text("red")
    expect(card.get_by_label("You can copy it")).to_have_value("green")
    assert item.value() == "red"


def test_an_answer_is_sent_once_however_often_it_is_clicked(server: Server, page: Page) -> None:
    item = ask(server, {"action": "Delete all"}, "confirm")
    card = item.open(page)
    sent: list[str] = []
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.method == "POST":
            sent.append(route.request.url)
            held.append(route)
        else:
            route.continue_()

    page.route("**/pending/*/*", hold)
    button = card.get_by_role("button", name="Yes, do it")
    button.dblclick()
    page.keyboard.press("Enter")
    page.keyboard.press("a")
    expect(button).to_have_attribute("aria-disabled", "true")
    held[0].continue_()
    expect(card).to_contain_text("Your answer was taken")
    assert len(sent) == 1


def test_the_news_of_ones_own_answer_may_come_before_the_reply(server: Server, page: Page) -> None:
    item = ask(server, COLOUR, "ask_user")
    card = item.open(page)
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/pending/*/*", lambda route: held.append((route, route.fetch())))
    card.get_by_label("Your answer").fill("green")
    page.keyboard.press("Control+Enter")
    expect(rows(page)).to_contain_text(["settled"])
    expect(card.get_by_role("button", name="Sending")).to_be_visible()
    route, response = held[0]
    route.fulfill(response=response)
    expect(card).to_contain_text("Your answer was taken")
    expect(card).not_to_contain_text("Somebody else")


def test_an_item_that_was_cancelled_says_so(server: Server, page: Page, page_guard: PageGuard) -> None:
    item = ask(server, COLOUR, "ask_user")
    card = item.open(page)
    card.get_by_label("Your answer").fill("green")
    item.answer({"type": "timbal.cancel", "reason": "not needed"})
    expect(card).to_contain_text("The run was cancelled")
    expect(card.get_by_label("You can copy it")).to_have_value("green")


def test_without_the_server_the_draft_is_kept_and_sent_when_it_is_back(
    serve: Callable[..., Server], tmp_path: Path, page: Page, page_guard: PageGuard
) -> None:
    page_guard.expect("ERR_")
    server = serve(APP)
    item = ask(server, COLOUR, "ask_user")
    card = item.open(page)
    card.get_by_label("Your answer").fill("green")
    server.stop()
    expect(page.get_by_text("Offline:")).to_be_visible()
    card.get_by_role("button", name="Send answer").click()
    expect(card.get_by_role("alert")).to_contain_text("the server can't be reached")
    port = server.url.rpartition(":")[2]
    with Server(tmp_path, command=[TIMBAL, "serve", str(APP), "--port", port]) as again:
        card.get_by_role("button", name="Try again").click()
        expect(card).to_contain_text("Your answer was taken")
        assert Asked(again, item.run_id, item.id).value() == "green"


def test_a_thousand_items_are_shown_at_once_and_change_one_by_one(server: Server, page: Page) -> None:
    many = run(server, "many", count=1000)
    open_inbox(server, page)
    expect(rows(page)).to_have_count(1000, timeout=60_000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    before = worked()
    page.evaluate(RENDER)
    # The promise of the page, in seconds of its thread's work: others are busy on this machine.
    assert worked() - before < 0.2
    expect(rows(page)).to_have_count(1000)
    page.evaluate(OBSERVE)
    many.answer("yes")
    expect(rows(page)).to_have_count(999)
    assert page.evaluate("[...window.changed]") == []


# -- renderers of one's own --------------------------------------------------------------------------------------------

EXAMPLE = Path(__file__).parents[2] / "examples" / "page"


def test_the_example_shows_a_kind_of_its_own(serve: Callable[..., Server], page: Page) -> None:
    server = serve(EXAMPLE / "app.py", "--static", str(EXAMPLE / "static"))
    item = run(server, "plan", topic="the harbour")
    card = item.open(page)
    expect(card.get_by_role("heading", name="Where do we meet about the harbour?")).to_be_visible()
    card.get_by_role("button", name="Old mill").click()
    expect(card).to_contain_text("Your answer was taken")
    expect(card.get_by_role("button", name="Old mill")).to_be_disabled()
    assert item.value() == "Old mill"
    item = run(server, "plan", topic="the mill")
    card = item.open(page)
    expect(card.get_by_role("button", name="Harbour")).to_be_visible()
    page.keyboard.press("1")
    expect(card).to_contain_text("Your answer was taken")
    assert item.value() == "Harbour"


BROKEN = {
    "in its constructor": "constructor() { super(); throw new Error('broken'); }",
    "when it gets the item": "set item(item) { throw new Error('broken'); }",
    "when it is shown": "connectedCallback() { throw new Error('broken'); }",
    "later": "updateComplete = Promise.reject(new Error('broken'));",
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_view_that_throws_gives_way_to_a_plain_one(
    serve: Callable[..., Server], tmp_path: Path, page: Page, body: str
) -> None:
    (tmp_path / "own").mkdir()
    script = f"""import {{ registerRenderer }} from "../web/renderers.js";
    customElements.define("is-broken", class extends HTMLElement {{ {body} }});
    registerRenderer("mystery", "is-broken");"""
    (tmp_path / "own" / "custom.js").write_text(script)
    server = serve(APP, "--static", str(tmp_path / "own"))
    item = ask(server, {"question": "Well?"}, "mystery")
    card = item.open(page)
    expect(card).to_contain_text(re.compile("does not work.*broken"))
    card.get_by_label("Answer, as JSON").fill("12")
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text("Your answer was taken")
    assert item.value() == 12


def test_a_view_that_comes_late_takes_over_what_is_shown(server: Server, page: Page) -> None:
    card = ask(server, {"question": "Well?"}, "mystery").open(page)
    expect(card.get_by_label("Answer, as JSON")).to_be_visible()
    page.evaluate(
        """async () => {
          const { registerRenderer } = await import("/web/renderers.js");
          registerRenderer("mystery", "comes-late");
          customElements.define("comes-late", class extends HTMLElement {
            connectedCallback() { this.textContent = "Now as it should be"; }
          });
        }"""
    )
    expect(card).to_contain_text("Now as it should be")
    expect(card.get_by_label("Answer, as JSON")).to_have_count(0)
