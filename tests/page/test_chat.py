"""A conversation in the browser: started, watched, answered, stopped, lost and found again."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.page.checks import check_accessibility, check_snapshot
from tests.page.guard import PageGuard
from tests.server.servers import TIMBAL, Server

pytestmark = pytest.mark.slow

APP = Path(__file__).parent / "apps" / "office.py"


class Office:
    """A server of the office in a folder."""

    def __init__(self, folder: Path, port: str = "0") -> None:
        self.folder = folder
        (folder / "office.py").write_bytes(APP.read_bytes())
        self.server = Server(folder, command=[TIMBAL, "serve", "office.py", "--port", port])
        self.url = self.server.url

    def again(self) -> "Office":
        """The same, after it was killed."""
        self.server.kill()
        return Office(self.folder, self.url.rpartition(":")[2])

    def resume(self, run_id: str, *options: str) -> None:
        command = [TIMBAL, "resume", run_id, "office.py::assistant", *options]
        subprocess.run(command, cwd=self.folder, check=True, stdin=subprocess.DEVNULL, capture_output=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """One for all tests that leave each other alone."""
    office = Office(tmp_path_factory.mktemp("office"))
    with office.server:
        yield office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """One of the test's own."""
    office = Office(tmp_path)
    with office.server:
        yield office


def log(page: Page) -> Locator:
    return page.get_by_role("log")


def box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message to assistant")


def start(page: Page, office: Office, words: str) -> str:
    """Begin a conversation; gives the run's id once the address has it."""
    page.goto(f"{office.url}/#/new/assistant")
    say(page, words)
    page.wait_for_url(re.compile("#/chat/"))
    return run_of(page)


def say(page: Page, words: str) -> None:
    box(page).fill(words)
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()  # what ran before has ended
    box(page).press("Enter")


def run_of(page: Page) -> str:
    return page.url.rpartition("/")[2]


def item_of(office: Office, run_id: str) -> str:
    with office.server.client() as client:
        items = client.get("/pending").json()["items"]
    (found,) = (item["id"] for item in items if item["run_id"] == run_id)
    return str(found)


def answer(office: Office, run_id: str, value: Any) -> None:
    """Somebody else answers."""
    with office.server.client() as client:
        client.post(f"/pending/{run_id}/{item_of(office, run_id)}", json={"value": value}).raise_for_status()


# -- a first visit -----------------------------------------------------------------------------------------------------


def test_a_first_visit_says_what_this_is_and_offers_examples(any_page: Page, shared: Office) -> None:
    any_page.goto(f"{shared.url}/#/new/assistant")
    expect(any_page.get_by_role("button", name="Plan a database")).to_be_visible()
    expect(any_page.get_by_text("Never shown")).to_have_count(0)
    check_snapshot(any_page.get_by_role("main"), "chat-new")
    check_accessibility(any_page)
    any_page.get_by_role("link", name="researcher").click()
    expect(any_page.get_by_text("Say what you need. It works step by step")).to_be_visible()


def test_a_name_that_is_not_served_is_told(page: Page, shared: Office) -> None:
    page.goto(f"{shared.url}/#/new/nobody")
    expect(page.get_by_text("This server does not have “nobody”")).to_be_visible()


# -- a conversation ----------------------------------------------------------------------------------------------------


def test_the_story_by_mouse(any_page: Page, shared: Office) -> None:
    page = any_page
    page.goto(f"{shared.url}/#/new/assistant")
    page.get_by_role("button", name="Plan a database").click()
    expect(log(page).get_by_role("heading", name="The plan")).to_be_visible()
    expect(log(page).get_by_role("link", name="the manual")).to_have_attribute("rel", "noopener noreferrer")
    check_accessibility(page)
    log(page).get_by_role("radio", name="mysql").check()
    page.get_by_role("button", name="Send answer").click()
    expect(log(page).get_by_text("Done: mysql")).to_be_visible()
    expect(log(page).get_by_text("Thinking", exact=True)).to_have_count(1)
    say(page, "Thank you")
    expect(log(page).get_by_text("You said: Thank you")).to_be_visible()
    check_snapshot(log(page).get_by_role("article", name="Turn").last, "chat-turn")
    check_accessibility(page)
    page.reload()
    expect(log(page).get_by_text("You said: Thank you")).to_be_visible()
    expect(log(page).get_by_text("Done: mysql")).to_be_visible()
    expect(log(page).get_by_role("article", name="Turn")).to_have_count(2)
    expect(page.get_by_role("button", name="Send answer")).to_have_count(0)


def test_the_story_by_keyboard(page: Page, shared: Office) -> None:
    page.goto(f"{shared.url}/#/new/assistant")
    box(page).focus()
    page.keyboard.type("Plan a database")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("please")
    page.keyboard.press("Control+Enter")
    options = log(page).get_by_role("radio")
    expect(options).to_have_count(3)
    while not page.evaluate("document.activeElement.matches('[type=radio]')"):
        page.keyboard.press("Shift+Tab")
    while not options.first.is_checked():
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+Enter")
    expect(log(page).get_by_text("Done: postgres")).to_be_visible()


def test_text_comes_as_it_is_said_and_finished_words_are_read_out(page: Page, shared: Office) -> None:
    start(page, shared, "Hello there")
    expect(page.get_by_role("status")).to_have_text("You said: Hello there")
    expect(log(page)).to_have_attribute("aria-live", "off")


def test_several_questions_are_answered_one_after_the_other(page: Page, shared: Office) -> None:
    start(page, shared, "Everything at once")
    expect(log(page).get_by_role("radio", name="Europe")).to_be_visible()
    expect(log(page).get_by_text("failed")).to_be_visible()
    page.get_by_role("button", name="Yes, do it").click()
    expect(page.get_by_role("button", name="Yes, do it")).to_have_count(0)
    log(page).get_by_role("radio", name="Europe").check()
    page.get_by_role("button", name="Send answer").click()
    expect(log(page).get_by_text("researcher").first).to_be_visible()
    page.get_by_role("button", name=re.compile("^Deny")).click()
    page.get_by_role("button", name=re.compile("^Deny")).click()
    expect(log(page).get_by_text(re.compile("^Done: .*The market grows"))).to_be_visible()
    expect(log(page).get_by_text("denied", exact=True)).to_be_visible()
    expect(log(page).get_by_text("look_up")).to_have_count(2)


# -- lost and found ----------------------------------------------------------------------------------------------------


def test_a_reload_in_the_middle_reads_on(office: Office, page: Page) -> None:
    start(page, office, "Wait for it")
    expect(log(page).get_by_text("page 3 of 3").last).to_be_visible()
    page.reload()
    expect(log(page).get_by_text("page 3 of 3").last).to_be_visible()
    expect(log(page).get_by_text(re.compile("^running"))).to_be_visible()
    (office.folder / "go").touch()
    expect(log(page).get_by_text(re.compile("^Done:"))).to_be_visible()
    expect(log(page).get_by_text("This takes a while.")).to_have_count(1)


def test_a_server_that_is_killed_and_comes_back_goes_on_in_the_same_transcript(
    office: Office, page: Page, page_guard: PageGuard
) -> None:
    page_guard.expect("ERR_")  # of what was open, and of each look whether the server is back
    start(page, office, "Wait for it")
    expect(log(page).get_by_text("page 3 of 3").last).to_be_visible()
    office.server.kill()
    expect(page.get_by_text("The connection is lost")).to_be_visible()
    again = Office(office.folder, office.url.rpartition(":")[2])
    with again.server:
        expect(page.get_by_text("The connection is lost")).to_have_count(0)
        (office.folder / "go").touch()
        expect(log(page).get_by_text(re.compile("^Done:"))).to_be_visible(timeout=60_000)
        expect(log(page).get_by_text("This takes a while.")).to_have_count(1)


def test_an_answer_from_elsewhere_goes_on_here_and_in_every_tab(
    open_context: Callable[..., BrowserContext], shared: Office
) -> None:
    context = open_context()
    first, second = context.new_page(), context.new_page()
    run_id = start(first, shared, "Plan a database")
    second.goto(first.url)
    for page in (first, second):
        expect(log(page).get_by_text("waits for an answer")).to_be_visible()
    answer(shared, run_id, "mysql")
    for page in (first, second):
        expect(log(page).get_by_text("Done: mysql")).to_be_visible()
    say(first, "Plan another")
    expect(log(first).get_by_text("waits for an answer")).to_be_visible()


def test_a_new_message_in_another_tab_is_followed(open_context: Callable[..., BrowserContext], shared: Office) -> None:
    context = open_context()
    first, second = context.new_page(), context.new_page()
    start(first, shared, "Plan a database")
    second.goto(first.url)
    for page in (first, second):
        expect(log(page).get_by_text("waits for an answer")).to_be_visible()
    say(first, "Hello instead")
    for page in (first, second):
        expect(log(page).get_by_text("Left here: a new message came instead of an answer.")).to_be_visible()
        expect(log(page).get_by_text("You said: Hello instead")).to_be_visible()


def test_an_answer_in_a_terminal_is_followed_from_its_record(office: Office, page: Page) -> None:
    run_id = start(page, office, "Plan a database")
    expect(log(page).get_by_text("waits for an answer")).to_be_visible()
    office.resume(run_id, "--answer", f"{item_of(office, run_id)}=postgres")
    expect(log(page).get_by_text("Done: postgres")).to_be_visible()
    expect(page.get_by_text("Some of this ran elsewhere")).to_be_visible()
    page.reload()
    expect(log(page).get_by_text("Done: postgres")).to_be_visible()
    expect(log(page).get_by_text("Thinking", exact=True)).to_have_count(1)


def test_a_run_from_a_terminal_is_shown_from_its_record(office: Office, page: Page) -> None:
    command = [TIMBAL, "run", "office.py::assistant", "--prompt", "Hello from afar", "--json"]
    subprocess.run(command, cwd=office.folder, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    with office.server.client() as client:
        (run,) = client.get("/runs").json()["items"]
    page.goto(f"{office.url}/#/chat/{run['run_id']}")
    expect(log(page).get_by_text("You said: Hello from afar")).to_be_visible()
    expect(page.get_by_text("Some of this ran elsewhere")).to_be_visible()


def test_a_hidden_tab_lets_go_of_its_stream_and_reads_on_when_it_is_shown(office: Office, page: Page) -> None:
    start(page, office, "Wait for it")
    expect(log(page).get_by_text("page 3 of 3").last).to_be_visible()
    hide = "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
    hide += "document.dispatchEvent(new Event('visibilitychange')) }"
    with page.expect_event("requestfailed", lambda request: "/events" in request.url):
        page.evaluate(hide, True)
    (office.folder / "go").touch()
    with office.server.client() as client:
        assert client.get(f"/runs/{run_of(page)}/events?after=0&wait_ms=10000").status_code == 200
    with page.expect_request(re.compile(r"/events\?after=[1-9]")):
        page.evaluate(hide, False)
    expect(log(page).get_by_text(re.compile("^Done:"))).to_be_visible()
    expect(log(page).get_by_text("This takes a while.")).to_have_count(1)


def test_a_link_leads_to_a_question_where_it_was_asked(page: Page, shared: Office) -> None:
    run_id = start(page, shared, "Plan a database")
    expect(log(page).get_by_text("waits for an answer")).to_be_visible()
    item = item_of(shared, run_id)
    page.goto(f"{shared.url}/#/runs")
    page.goto(f"{shared.url}/#/chat/{run_id}?item={item}")
    expect(page.locator(f"[data-item='{item}']")).to_be_focused()


def test_a_run_that_is_not_there_is_told(page: Page, shared: Office, page_guard: PageGuard) -> None:
    page_guard.expect(404)
    page.goto(f"{shared.url}/#/chat/{'0' * 32}")
    expect(page.get_by_role("alert")).to_contain_text("there is no run")


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_a_run_is_stopped_and_its_words_can_be_sent_again(page: Page, shared: Office) -> None:
    start(page, shared, "Wait for it")
    page.get_by_role("button", name="Stop").click()
    expect(log(page).get_by_text("Stopped.")).to_be_visible()
    page.get_by_role("button", name="Edit and send again").click()
    expect(box(page)).to_have_value("Wait for it")


def test_a_failed_run_says_why_and_is_tried_again_in_place(page: Page, shared: Office) -> None:
    start(page, shared, "Fail")
    expect(log(page).get_by_text("It failed: ").filter(has_text="the model is not there")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("button", name="Try again")).to_be_enabled()
    expect(log(page).get_by_text("It failed: ")).to_have_count(1)


def test_a_message_is_refused_while_an_approval_waits_and_stays_in_its_box(
    page: Page, shared: Office, page_guard: PageGuard
) -> None:
    page_guard.expect(422)
    start(page, shared, "Pay Ada")
    expect(log(page).get_by_text("waits for an answer")).to_be_visible()
    say(page, "Never mind")
    expect(page.get_by_role("alert")).to_have_text("Not sent: something above has to be answered or cancelled first.")
    expect(box(page)).to_have_value("Never mind")
    page.get_by_role("button", name="Cancel this run").click()
    expect(log(page).get_by_text("Stopped.")).to_be_visible()


# -- tools -------------------------------------------------------------------------------------------------------------


def test_a_tool_has_its_form_and_what_the_server_refuses_stands_at_the_fields(
    page: Page, shared: Office, page_guard: PageGuard
) -> None:
    page.goto(f"{shared.url}/#/new/ship")
    page.get_by_label("Product").fill("lamp")
    page.get_by_label("Count").fill("3")
    page.get_by_label("Street").fill("12")
    page.get_by_label("City").fill("Rome")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_label("Street")).to_be_focused()
    page.get_by_label("Street").fill("12 Main Street")
    page.get_by_role("button", name="Start").click()
    expect(
        log(page).get_by_text("waits for an answer").or_(page.get_by_role("button", name="Cancel this run")).first
    ).to_be_visible()
    answer(shared, run_of(page), True)
    expect(log(page).get_by_role("region", name="Result")).to_contain_text("3 lamp go to Rome as a gift")
    page.get_by_role("link", name="Run it again").click()
    expect(page.get_by_label("City")).to_have_value("Rome")
    page.get_by_label("Count").fill("100")
    page.get_by_role("button", name="Start").click()
    expect(log(page).get_by_text("It failed: we do not have so many")).to_be_visible()


def test_a_tool_that_needs_nothing_is_just_started(page: Page, shared: Office) -> None:
    page.goto(f"{shared.url}/#/new/greet")
    expect(page.get_by_text("It needs nothing from you to start.")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("textbox")).to_have_count(0)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("button", name="Cancel this run")).to_be_visible()
    answer(shared, run_of(page), "Ada")
    expect(log(page).get_by_role("region", name="Result")).to_contain_text("Hello, Ada")


def test_a_tool_tells_its_story(page: Page, shared: Office) -> None:
    page.goto(f"{shared.url}/#/new/tell")
    page.get_by_label("Words").fill("3")
    page.get_by_role("button", name="Start").click()
    expect(log(page).get_by_role("region", name="Result")).to_contain_text("word0 word1 word2")


# -- much, and hostile -------------------------------------------------------------------------------------------------


def test_hostile_words_are_words(page: Page, shared: Office) -> None:
    start(page, shared, "Hostile <b onclick=x>")
    expect(log(page).get_by_text("<script>alert(1)</script>")).to_be_visible()
    expect(log(page).get_by_text("[U+202E]evil")).to_be_visible()
    expect(log(page).get_by_text("[go](javascript:alert(3))")).to_be_visible()
    assert page.locator("timbal-chat").locator("script, img, b, a[href^=javascript]").count() == 0


def test_a_long_transcript_is_followed_only_by_who_is_at_its_end(office: Office, page: Page) -> None:
    start(page, office, "Many")
    expect(log(page).get_by_text("topic: topic 299")).to_be_attached(timeout=60_000)
    expect(log(page).get_by_text(re.compile("^Done:"))).to_be_in_viewport()
    main = page.get_by_role("main")
    say(page, "Wait for it")
    expect(log(page).get_by_text(re.compile("^running"))).to_be_in_viewport()
    main.evaluate("main => main.scrollTo(0, 0)")
    expect(log(page).get_by_text("topic: topic 0", exact=True)).to_be_in_viewport()
    (office.folder / "go").touch()
    page.get_by_role("button", name="New messages").click()
    expect(log(page).get_by_text(re.compile("^Done:")).last).to_be_in_viewport()
    expect(page.get_by_role("button", name="New messages")).to_have_count(0)
    say(page, "Long")
    expect(log(page).get_by_text("Paragraph 399")).to_be_in_viewport()
