"""The list of runs, and what happened in one of them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page.checks import check_accessibility
from tests.page.test_chat import Office, answer

pytestmark = pytest.mark.slow


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path)
    with office.server:
        yield office


def run(office: Office, prompt: str, **labels: str) -> str:
    with office.server.client() as client:
        return str(client.post("/assistant/run", json={"prompt": prompt, "labels": labels}).json()["run_id"])


def test_without_runs_the_list_explains_itself(office: Office, any_page: Page) -> None:
    any_page.goto(f"{office.url}/#/runs")
    expect(any_page.get_by_text("Nothing has run yet.")).to_be_visible()
    check_accessibility(any_page)


def test_the_list_has_each_piece_of_work_once_and_is_narrowed_down(office: Office, any_page: Page) -> None:
    page = any_page
    page.goto(f"{office.url}/#/runs")
    expect(page.get_by_text("Nothing has run yet.")).to_be_visible()
    waiting = run(office, "Plan a database", tenant="acme")
    done = run(office, "Hello")
    page.reload()
    rows = page.get_by_role("main").get_by_role("listitem")
    expect(rows).to_have_count(2)
    expect(rows.last).to_contain_text("waits for an answer")
    expect(rows.last).to_contain_text("tenant: acme")
    check_accessibility(page)
    page.get_by_label("State").select_option("done")
    expect(rows).to_have_count(1)
    expect(rows.get_by_role("link")).to_have_attribute("href", f"#/runs/{done}")
    page.get_by_label("State").select_option("All")
    page.get_by_label("Label").fill("tenant=acme")
    page.get_by_label("Label").press("Enter")
    expect(rows).to_have_count(1)
    answer(office, waiting, "mysql")
    expect(rows).not_to_contain_text("waits for an answer")
    expect(rows).to_have_count(1)
    page.get_by_label("Label").fill("tenant=nobody")
    page.get_by_label("Label").press("Enter")
    expect(page.get_by_text("No run is like that.")).to_be_visible()


def test_more_runs_are_shown_on_demand(office: Office, page: Page) -> None:
    for n in range(55):
        run(office, f"Hello {n}")
    page.goto(f"{office.url}/#/runs")
    rows = page.get_by_role("main").get_by_role("listitem")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(55)
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)


def test_a_run_tells_what_happened_and_leads_to_its_questions(office: Office, any_page: Page) -> None:
    page = any_page
    run_id = run(office, "Everything at once")
    page.goto(f"{office.url}/#/runs/{run_id}")
    main = page.get_by_role("main")
    expect(main.get_by_role("link", name="Which region?")).to_have_attribute("href", re.compile(f"^#/inbox/{run_id}/"))
    expect(main.get_by_text("Asked for approval: Pay this?")).to_be_visible()
    main.get_by_text("print_label").click()
    expect(main.get_by_text("the printer has no paper")).to_be_visible()
    check_accessibility(page)
    main.get_by_role("button", name="Stop it for good").click()
    expect(main.get_by_text("stopped", exact=True)).to_be_visible()
    expect(main.get_by_role("button", name="Stop it for good")).to_have_count(0)
    main.get_by_role("link", name="Open the conversation").click()
    expect(page.get_by_role("log").get_by_text("Everything at once")).to_be_visible()
