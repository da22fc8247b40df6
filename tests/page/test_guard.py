"""A page that reports something fails its test."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.checks import WRITE, check_accessibility, check_snapshot
from tests.page.guard import PageGuard
from tests.page.site import Site
from tests.server.servers import APP, Server

pytestmark = pytest.mark.slow

REPORTS = {
    "a message": ("console.info('hello')", "console.info: hello"),
    "an error": ("throw new Error('lost')", "lost"),
    "a rejection": ("Promise.reject(new Error('late'))", "late"),
    "a bad response": ("await fetch('/missing')", "response 404 GET"),
    "a breach of the policy": ("eval('1')", "unsafe-eval"),
}


def show(pages: Site, page: Page, script: str) -> None:
    """A page with this script, once it has run."""
    pages.files["/script.js"] = f"document.title = 'done'; {script};"
    pages.files["/"] = (
        '<!doctype html><html lang="en"><script type="module" src="/script.js"></script><h1>Page</h1></html>'
    )
    page.goto(pages.url, wait_until="networkidle")


@pytest.mark.parametrize(("script", "report"), REPORTS.values(), ids=REPORTS)
def test_what_a_page_reports_fails_the_test(script: str, report: str, browser: Browser, pages: Site) -> None:
    def visit() -> None:
        with PageGuard().checking() as guard, browser.new_context() as context:
            guard.watch(context)
            show(pages, context.new_page(), script)

    with pytest.raises(AssertionError, match=report):
        visit()


def test_a_report_that_the_test_expects_passes(page: Page, page_guard: PageGuard, pages: Site) -> None:
    page_guard.expect(404)
    page_guard.expect("hello")
    show(pages, page, "console.info('hello, you'); await fetch('/missing')")


def test_an_expected_report_that_does_not_come_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="response 409"), PageGuard().checking() as guard:
        guard.expect(409)


def test_axe_finds_a_field_without_a_name(page: Page, pages: Site) -> None:
    show(pages, page, "document.body.append(document.createElement('input'))")
    with pytest.raises(AssertionError, match="label: "):
        check_accessibility(page)


def test_a_page_is_held_against_its_golden_file(page: Page, pages: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    show(pages, page, "")
    check_snapshot(page.get_by_role("heading"), "guard")
    monkeypatch.delenv(WRITE, raising=False)
    show(pages, page, "document.querySelector('h1').textContent = 'Another'")
    with pytest.raises(AssertionError, match="Another"):
        check_snapshot(page.get_by_role("heading"), "guard", timeout=100)


def test_a_server_is_reached(page: Page, serve: Callable[..., Server]) -> None:
    page.goto(f"{serve(APP).url}/openapi.json")
    expect(page.get_by_text("openapi").first).to_be_visible()
