"""One page for all tests of forms: opening one takes longer than filling in a form."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.page.conftest import DESKTOP_LIGHT, MILLISECONDS
from tests.page.guard import PageGuard
from tests.page.site import Site, site


@pytest.fixture(scope="package")
def pages() -> Iterator[Site]:
    with site() as one:
        yield one


@pytest.fixture(scope="package")
def watched(browser: Browser) -> Iterator[tuple[Page, PageGuard]]:
    """The page, and who watches it."""
    guard = PageGuard()
    with browser.new_context(**DESKTOP_LIGHT, timezone_id="Europe/Berlin") as context:
        context.set_default_timeout(MILLISECONDS)
        guard.watch(context)
        yield context.new_page(), guard


@pytest.fixture
def page(watched: tuple[Page, PageGuard]) -> Iterator[Page]:
    page, guard = watched
    with guard.checking():
        yield page
