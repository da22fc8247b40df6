"""Takes pictures of each state of the page, for people to look at: `make screenshots`."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.page.asking import APP as QUESTIONS
from tests.page.asking import REFUND, Asked, ask, run
from tests.page.conftest import CHROMIUM, DESKTOP_LIGHT, OPTIONS, PHONE_DARK
from tests.server.servers import TIMBAL, Server

OFFICE = QUESTIONS.with_name("office.py")
TOKEN = "0123456789"
LOOKS = {"desktop": DESKTOP_LIGHT, "phone-dark": PHONE_DARK}
STRING, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 1}
COLOURS = {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 1}
CARDS: dict[str, Callable[[Server], Asked]] = {
    "ask-user": lambda server: ask(
        server, {"question": "Which database should it be?", "options": ["postgres", "mysql"]}, "ask_user"
    ),
    "free-text": lambda server: ask(server, {"question": "What shall we tell the customer?"}, "ask_user"),
    "ask-user-multi": lambda server: ask(
        server,
        {"question": "Which colours?", "options": ["red", "green", "blue"]},
        "ask_user_multi",
        response_schema=COLOURS,
    ),
    "confirm": lambda server: ask(server, {"action": "Drop the old database of the shop"}, "confirm"),
    "approval": lambda server: run(server, "refund", **REFUND),
    "form": lambda server: run(server, "order"),
    "json": lambda server: ask(server, {"map": {"lat": 48.2, "lon": 16.4}, "places": ["Vienna", "Graz"]}, "pick_place"),
    "deadline": lambda server: ask(server, {"question": "Still there?"}, "ask_user", expires_in=600),
    "not-for-you": lambda server: ask(server, {"question": "Pay?"}, "confirm", audience=["role:finance"]),
}


def show_empty(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/#/inbox")
    page.get_by_role("heading", name="Nothing waits").wait_for()


def show_no_runs(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/#/runs")
    page.get_by_role("heading", name="No runs").or_(page.get_by_role("main")).first.wait_for()


def show_inbox(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/#/inbox")
    page.get_by_role("list").first.wait_for()


def show_error(page: Page, server: Server) -> None:
    CARDS["form"](server).open(page).get_by_role("button", name="Send").click()
    page.get_by_role("alert").first.wait_for()


def show_refused(page: Page, server: Server) -> None:
    """Somebody else is faster while one writes."""
    item = CARDS["free-text"](server)
    card = item.open(page)
    card.get_by_role("textbox").fill("That it will be there tomorrow, and that we are")
    item.answer("It is on its way.")
    expect(card).to_contain_text("It is on its way.")


def show_answered(page: Page, server: Server) -> None:
    item = CARDS["ask-user"](server)
    item.answer("postgres")
    item.open(page).get_by_text("Record").click()


def show_denied(page: Page, server: Server) -> None:
    item = CARDS["approval"](server)
    item.answer({"approved": False, "reason": "The customer was paid already."})
    item.open(page)


def show_edit(page: Page, server: Server) -> None:
    card = CARDS["approval"](server).open(page)
    card.get_by_role("button", name=re.compile("change", re.IGNORECASE)).click()
    card.get_by_role("textbox").first.fill("Ada Lovelace")


def show_expired(page: Page, server: Server) -> None:
    item = ask(server, {"question": "Still there?"}, "ask_user", expires_in=0.5)
    expect(item.open(page)).to_contain_text("The time for this is over")


def show_first_visit(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/#/new/assistant")
    page.get_by_role("textbox").wait_for()


def show_tool(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/#/new/ship")
    page.get_by_role("textbox").first.wait_for()


def _say(page: Page, server: Server, words: str) -> None:
    show_first_visit(page, server)
    page.get_by_role("textbox").fill(words)
    page.keyboard.press("Enter")


def show_asking(page: Page, server: Server) -> None:
    _say(page, server, "Plan a database")
    page.get_by_role("radio", name="mysql").wait_for()


def show_everything(page: Page, server: Server) -> None:
    _say(page, server, "Everything at once")
    page.get_by_role("radio", name="Europe").wait_for()


def show_work(page: Page, server: Server) -> None:
    _say(page, server, "Wait for it")
    page.get_by_text("page 3 of 3").last.wait_for()


def show_long(page: Page, server: Server) -> None:
    _say(page, server, "Long story")
    page.get_by_text("Paragraph 399 of a long answer.").first.wait_for()


def show_failed(page: Page, server: Server) -> None:
    _say(page, server, "Fail now")
    page.get_by_role("button", name="Try again").wait_for()


def show_runs(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/#/runs")
    page.get_by_role("link", name=re.compile("assistant")).first.wait_for()


def show_run(page: Page, server: Server) -> None:
    with server.client() as client:
        newest = client.get("/runs", params={"runnable": "assistant", "status": "paused"}).json()["items"][0]["run_id"]
    page.goto(f"{server.url}/#/runs/{newest}")
    page.get_by_role("heading").nth(1).wait_for()


def show_keys(page: Page, server: Server) -> None:
    show_inbox(page, server)
    page.keyboard.press("?")


Show = Callable[[Page, Server], Any]


def _card(made: Callable[[Server], Asked]) -> Show:
    return lambda page, server: made(server).open(page)


EMPTY: dict[str, Show] = {"inbox-empty": show_empty, "runs-empty": show_no_runs}
ASKED: dict[str, Show] = {
    **{f"card-{name}": _card(made) for name, made in CARDS.items()},
    "card-error": show_error,
    "card-edit": show_edit,
    "card-somebody-else": show_refused,
    "card-answered": show_answered,
    "card-denied": show_denied,
    "card-expired": show_expired,
    "inbox": show_inbox,
    "keys": show_keys,
}
TOLD: dict[str, Show] = {
    "first-visit": show_first_visit,
    "tool-form": show_tool,
    "asking": show_asking,
    "everything": show_everything,
    "at-work": show_work,
    "long": show_long,
    "failed": show_failed,
    "runs": show_runs,
    "run": show_run,
}


@contextmanager
def served(app: Path, *options: str) -> Iterator[Server]:
    with TemporaryDirectory() as folder:
        command = [TIMBAL, "serve", str(app), "--port", "0", *options]
        with Server(Path(folder), command=command) as server:
            yield server


def take(browser: Browser, server: Server, states: dict[str, Show], into: Path) -> None:
    """A picture of each state in each look."""
    for look, options in LOOKS.items():
        for name, show in states.items():
            with browser.new_context(**options) as context:
                page = context.new_page()
                show(page, server)
                page.wait_for_timeout(400)
                page.screenshot(path=into / f"{name}-{look}.png")


def take_all(browser: Browser, into: Path) -> None:
    with served(QUESTIONS) as server:
        take(browser, server, EMPTY, into)
        take(browser, server, ASKED, into)
    with served(OFFICE) as server:
        take(browser, server, TOLD, into)
    with served(OFFICE, "--token", TOKEN) as server:
        take(browser, server, {"sign-in": lambda page, server: page.goto(server.url)}, into)


def main(into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        take_all(browser, into)
        browser.close()
    print(f"{len(list(into.glob('*.png')))} pictures are in {into}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"))
