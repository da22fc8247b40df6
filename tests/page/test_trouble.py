"""What goes wrong around the page: lost connections, wrong clocks, browsers that keep nothing, double clicks."""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jwt
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from tests.page.asking import APP, ask, run
from tests.page.checks import check_accessibility, check_snapshot
from tests.page.guard import PageGuard
from tests.server.servers import Server

pytestmark = pytest.mark.slow

COLOUR = {"question": "Which colour?"}
TAKEN = "Your answer was taken"
KEY = "a secret of this test, of 32 bytes or more"


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(APP)


def posts(page: Page) -> list[str]:
    """The answers that the page sends from now on."""
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    return sent


def press_slowly(page: Page, button: Locator) -> None:
    """The pointer goes down and up at one place, wherever the button is by then."""
    box = button.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + box["height"] - 5)
    page.mouse.down()
    page.evaluate("() => new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))")
    page.mouse.up()


# -- clicks ------------------------------------------------------------------------------------------------------------


def test_a_click_right_after_a_wrong_field_reaches_its_button(server: Server, page: Page) -> None:
    card = run(server, "order").open(page)
    card.get_by_label("Note").fill("soon")
    card.get_by_label("Count").fill("11")
    press_slowly(page, card.get_by_role("button", name="Send answer"))
    expect(card.get_by_role("alert")).to_have_text("Must be at most 10")
    expect(card.get_by_label("Count")).to_be_focused()


def test_what_the_server_refused_is_sent_again_with_one_click(
    server: Server, page: Page, page_guard: PageGuard
) -> None:
    page_guard.expect(422)
    item = run(server, "order")
    card = item.open(page)
    card.get_by_label("Count").fill("3")
    card.get_by_label("Note").fill("soon")
    page.route("**/pending/*/*", lambda route: route.continue_(post_data='{"value": {"count": 11, "note": "soon"}}'))
    button = card.get_by_role("button", name="Send answer")
    button.click()
    expect(card.get_by_role("alert")).to_be_visible()
    page.unroute_all()
    press_slowly(page, button)
    expect(card).to_contain_text(TAKEN)
    assert item.value() == {"count": 3, "note": "soon"}


# -- connections -------------------------------------------------------------------------------------------------------


def test_an_answer_whose_reply_was_lost_counts_once_and_as_ones_own(
    server: Server, page: Page, page_guard: PageGuard
) -> None:
    page_guard.expect("ERR_")
    item = ask(server, COLOUR, "ask_user")
    card = item.open(page)

    def lose(route: Route) -> None:
        if route.request.method == "POST":
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page.route("**/pending/*/*", lose)
    card.get_by_label("Your answer").fill("green")
    page.keyboard.press("Control+Enter")
    expect(card.get_by_role("status")).to_contain_text("green")
    expect(card).not_to_contain_text("Somebody else")
    expect(card.get_by_label("You can copy it")).to_have_count(0)
    expect(card.get_by_role("alert")).to_have_count(0)
    assert item.value() == "green"


def test_offline_an_answer_is_kept_and_sent_once_when_one_tries_again(
    server: Server, page: Page, page_guard: PageGuard
) -> None:
    page_guard.expect("ERR_INTERNET_DISCONNECTED")
    item = ask(server, COLOUR, "ask_user")
    card = item.open(page)
    card.get_by_label("Your answer").fill("green")
    page.context.set_offline(True)
    page.keyboard.press("Control+Enter")
    expect(card.get_by_role("alert")).to_contain_text("the server can't be reached")
    page.context.set_offline(False)
    sent = posts(page)
    card.get_by_role("button", name="Try again").dblclick()
    expect(card).to_contain_text(TAKEN)
    assert item.value() == "green"
    assert len(sent) == 1


# -- browsers ----------------------------------------------------------------------------------------------------------


def test_a_browser_that_keeps_nothing_and_shares_no_worker_will_do(server: Server, page: Page) -> None:
    page.add_init_script(
        "delete window.SharedWorker;"
        "Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('no', 'SecurityError'); } });"
    )
    item = ask(server, COLOUR, "ask_user")
    card = item.open(page)
    card.get_by_label("Your answer").fill("green")
    other = ask(server, {"question": "And now?"}, "ask_user")
    expect(page.get_by_label("2 waiting")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text(TAKEN)
    other.answer("x")
    expect(page.get_by_label("1 waiting")).to_have_count(0)


def test_a_clock_that_is_an_hour_off_changes_no_deadline(server: Server, page: Page) -> None:
    page.add_init_script("{ const now = Date.now; Date.now = () => now() + 3_600_000; }")
    card = ask(server, COLOUR, "ask_user", expires_in=600).open(page)
    expect(card).to_contain_text(re.compile(r"asked just now\s*9:\d\d left"))


def test_an_address_that_was_cut_off_says_so(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/#/inbox")
    expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    page.goto(f"{server.url}/#/%E0%A4%A")
    expect(page.get_by_text("There is nothing at this address.")).to_be_visible()


def test_eight_tabs_are_live(server: Server, open_context: Callable[..., BrowserContext]) -> None:
    context = open_context()
    tabs = [context.new_page() for _ in range(8)]
    for tab in tabs:
        tab.goto(f"{server.url}/#/inbox")
    item = ask(server, COLOUR, "ask_user")
    for tab in tabs:
        expect(tab.get_by_label("1 waiting")).to_be_visible()
    item.answer("green")
    for tab in tabs:
        expect(tab.get_by_role("heading", name="Nothing waits for you")).to_be_visible()


def test_the_page_works_below_a_path_of_another_application(page: Page, tmp_path: Path) -> None:
    (tmp_path / "questions.py").write_bytes(APP.read_bytes())
    (tmp_path / "yours.py").write_text(
        "from fastapi import FastAPI\n"
        "from questions import order\n"
        "from timbal.server import lifespan, router\n"
        "api = router(order, store='memory://')\n"
        "yours = FastAPI(lifespan=lifespan(api))\n"
        "yours.include_router(api, prefix='/ai')\n"
    )
    with Server(tmp_path, command=[sys.executable, "-m", "uvicorn", "yours:yours", "--port", "0"]) as server:
        page.goto(f"{server.url}/ai")
        page.get_by_role("button", name="Start").click()
        page.get_by_label("Count").fill("2")
        page.get_by_label("Note").fill("soon")
        page.get_by_role("button", name="Send answer").click()
        expect(page.get_by_role("region", name="Result")).to_contain_text("soon")


def test_back_and_forward_lead_through_all_views(server: Server, page: Page) -> None:
    item = ask(server, COLOUR, "ask_user")
    shown = {
        "#/new/many": page.get_by_role("heading", name="many"),
        "#/inbox": page.get_by_role("heading", name="Inbox"),
        f"#/inbox/{item.run_id}/{item.id}": page.get_by_label("Your answer"),
        "#/runs": page.get_by_role("heading", name="Runs"),
        f"#/runs/{item.run_id}": page.get_by_role("heading", name="What happened"),
        f"#/chat/{item.run_id}": page.get_by_role("log").get_by_label("Your answer"),
    }
    for place, landmark in shown.items():
        page.goto(f"{server.url}/{place}")
        expect(landmark).to_be_visible()
    for landmark in [*shown.values()][-2::-1]:
        page.go_back()
        expect(landmark).to_be_visible()
    for landmark in [*shown.values()][1:]:
        page.go_forward()
        expect(landmark).to_be_visible()


def test_a_message_that_is_not_sent_yet_is_kept_when_one_looks_elsewhere(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/#/new/assistant")
    message = page.get_by_role("textbox", name="Message to assistant")
    message.fill("half a tho")
    page.get_by_role("link", name="Inbox").click()
    expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    page.go_back()
    expect(message).to_have_value("half a tho")
    page.reload()
    expect(message).to_have_value("half a tho")
    message.press("Enter")
    expect(page.get_by_label("Your answer")).to_be_visible()
    expect(message).to_have_value("")
    page.goto(f"{server.url}/#/new/assistant")
    expect(page.get_by_role("heading", name="assistant")).to_be_visible()
    expect(message).to_have_value("")


# -- people ------------------------------------------------------------------------------------------------------------


def token(sub: str, *roles: str) -> str:
    return jwt.encode({"sub": sub, "exp": int(time.time()) + 600, "roles": roles}, KEY)


def sign_in(page: Page, given: str) -> None:
    page.get_by_label("Token").fill(given)
    page.get_by_role("button", name="Sign in").click()


def test_signing_in_leads_to_where_the_link_leads(
    serve: Callable[..., Server], any_page: Page, page_guard: PageGuard
) -> None:
    page_guard.expect(401)
    server = serve(APP, "--jwt-key", KEY)
    admin = {"Authorization": f"Bearer {token('root', 'admin')}"}
    item = run(server, "ask", admin, payload=COLOUR, kind="ask_user", audience=["role:answer"])
    any_page.goto(f"{server.url}/#/inbox/{item.run_id}/{item.id}")
    check_accessibility(any_page)
    sign_in(any_page, "wrong")
    expect(any_page.get_by_role("alert")).to_contain_text("the token is not accepted")
    check_snapshot(any_page.get_by_role("main"), "sign-in")
    check_accessibility(any_page)
    sign_in(any_page, token("ada", "answer"))
    card = any_page.get_by_role("article")
    expect(any_page.get_by_text("ada", exact=True)).to_be_visible()
    expect(any_page.get_by_role("navigation", name="Page").get_by_role("link")).to_have_count(1)
    card.get_by_label("Your answer").fill("green")
    card.get_by_role("button", name="Send answer").click()
    expect(card).to_contain_text(TAKEN)
    expect(card).to_contain_text("by you")
    any_page.get_by_role("button", name="Sign out").click()
    expect(any_page.get_by_label("Token")).to_be_visible()


def test_who_is_not_in_the_audience_is_told_that_it_is_for_others(
    serve: Callable[..., Server], page: Page, page_guard: PageGuard
) -> None:
    page_guard.expect(401)
    page_guard.expect(403)
    server = serve(APP, "--jwt-key", KEY)
    admin = {"Authorization": f"Bearer {token('root', 'admin')}"}
    item = run(server, "ask", admin, payload=COLOUR, kind="ask_user", audience=["role:finance"])
    page.goto(f"{server.url}/#/inbox/{item.run_id}/{item.id}")
    sign_in(page, token("ada", "answer"))
    expect(page.get_by_role("alert")).to_contain_text("it is for others to answer")


# -- questions ---------------------------------------------------------------------------------------------------------


def test_what_is_asked_again_says_why_and_is_the_next_one(server: Server, page: Page) -> None:
    card = run(server, "pair").open(page)
    card.get_by_label("Answer").fill("3")
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text(TAKEN)
    page.get_by_role("link", name="Next").click()
    expect(card).to_contain_text("an even number, please")
    card.get_by_label("Answer", exact=True).fill("4")
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text(TAKEN)
    expect(page.get_by_role("link", name="Back to the inbox")).to_be_visible()


@pytest.mark.parametrize("kind", ["constructor", "toString", "__proto__"])
def test_a_kind_of_any_name_is_named(server: Server, page: Page, kind: str) -> None:
    card = ask(server, COLOUR, kind).open(page)
    expect(card.get_by_text(kind, exact=True)).to_be_visible()
    expect(card.get_by_label("Answer, as JSON")).to_be_visible()


def test_a_thousand_options_can_be_chosen_from(server: Server, page: Page) -> None:
    options = [f"option {n}" for n in range(1000)]
    item = ask(server, {"question": "Which?", "options": options}, "ask_user")
    card = item.open(page)
    card.get_by_role("radio", name="option 999").check()
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text(TAKEN)
    assert item.value() == "option 999"


def test_fifty_questions_of_one_run_are_answered_in_its_conversation(server: Server, page: Page) -> None:
    many = run(server, "many", count=50)
    page.goto(f"{server.url}/#/chat/{many.run_id}")
    cards = page.get_by_role("log").get_by_role("article", name=re.compile("^Question"))
    expect(cards).to_have_count(50)
    for n in (49, 0, 25):
        card = cards.filter(has_text=f"Question {n}?")
        card.get_by_role("radio", name="no").check()
        card.get_by_role("button", name="Send answer").click()
        expect(card).to_contain_text(TAKEN)
    expect(page.get_by_label("47 waiting")).to_be_visible()


def test_fifty_questions_that_come_at_once_are_not_fifty_requests(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/#/runs")
    expect(page.get_by_text("Nothing has run yet.")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/runs?" in request.url else None)
    run(server, "many", count=50)
    expect(page.get_by_label("50 waiting")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(1)
    assert len(asked) < 10


CAREFREE = """import { registerRenderer } from "../web/renderers.js";
customElements.define("is-carefree", class extends HTMLElement {
  connectedCallback() {
    const say = (value) => this.dispatchEvent(new CustomEvent("answer", { detail: { value } }));
    const button = (words, act) => {
      const made = document.createElement("button");
      made.textContent = words;
      made.onclick = act;
      this.append(made);
    };
    button("Twice", () => (say("first"), say("second")));
    button("No JSON", () => say(1n));
    button("Nothing", () => this.dispatchEvent(new Event("answer")));
  }
});
registerRenderer("mystery", "is-carefree");"""


def test_a_view_that_answers_twice_or_with_no_json_harms_nothing(
    serve: Callable[..., Server], tmp_path: Path, page: Page
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "custom.js").write_text(CAREFREE)
    item = ask(serve(APP, "--static", str(tmp_path / "own")), COLOUR, "mystery")
    card = item.open(page)
    card.get_by_role("button", name="No JSON").click()
    expect(card.get_by_role("alert")).to_contain_text("BigInt")
    card.get_by_role("button", name="Nothing").click()
    expect(card.get_by_role("alert")).to_contain_text("no answer in that")
    card.get_by_role("button", name="Twice").click()
    expect(card).to_contain_text(TAKEN)
    assert item.value() == "first"


def test_a_form_half_filled_in_is_kept_when_its_run_is_cancelled_elsewhere(server: Server, page: Page) -> None:
    item = run(server, "order")
    card = item.open(page)
    card.get_by_label("Note").fill("soon, please")
    with server.client() as client:
        client.post(f"/cancel/{item.run_id}", json={}).raise_for_status()
    expect(card).to_contain_text("The run was cancelled")
    expect(card.get_by_label("You can copy it")).to_have_value(re.compile("soon, please"))
    expect(card.get_by_role("button", name="Send answer")).to_have_count(0)
    check_accessibility(page)
