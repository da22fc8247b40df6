"""A browser, pages that fail the test on anything unexpected, and something to show in them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.page.guard import PageGuard
from tests.page.site import Site, site
from tests.server.servers import TIMBAL, Server

DESKTOP_LIGHT: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
PHONE_DARK: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "color_scheme": "dark",
    "has_touch": True,
    "is_mobile": True,
}
MILLISECONDS = 15_000
CHROMIUM = "/usr/bin/chromium"
OPTIONS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for the tests of this package in each process.

    Not for the session: while playwright runs, its event loop counts as running, and no async test could start one.
    """
    expect.set_options(timeout=MILLISECONDS)
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield one
        one.close()


@pytest.fixture
def page_guard() -> Iterator[PageGuard]:
    with PageGuard().checking() as guard:
        yield guard


@pytest.fixture
def open_context(
    browser: Browser, page_guard: PageGuard, serve: Callable[..., Server]
) -> Iterator[Callable[..., BrowserContext]]:
    """Open contexts: each is a browser of its own, whose tabs share what they store. They close before servers do."""
    with ExitStack() as stack:

        def opened(**options: Any) -> BrowserContext:
            context = browser.new_context(**{**DESKTOP_LIGHT, **options})
            stack.callback(context.close)
            context.set_default_timeout(MILLISECONDS)
            page_guard.watch(context)
            return context

        yield opened


@pytest.fixture
def page(open_context: Callable[..., BrowserContext]) -> Page:
    """A wide, light page."""
    return open_context().new_page()


@pytest.fixture
def phone(open_context: Callable[..., BrowserContext]) -> Page:
    """A narrow, dark page, with touch."""
    return open_context(**PHONE_DARK).new_page()


@pytest.fixture(params=[DESKTOP_LIGHT, PHONE_DARK], ids=["desktop", "phone"])
def any_page(request: pytest.FixtureRequest, open_context: Callable[..., BrowserContext]) -> Page:
    """Each of the two, in a test of its own."""
    return open_context(**request.param).new_page()


@pytest.fixture
def pages() -> Iterator[Site]:
    """A site that shows what the test puts into it."""
    with site() as one:
        yield one


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """`timbal serve FILE`, as its users run it, in a folder of the test's own; it stops at the end."""
    with ExitStack() as stack:

        def served(app: Path, *options: str, **environment: str) -> Server:
            command = [TIMBAL, "serve", str(app), "--port", "0", *options]
            return stack.enter_context(Server(tmp_path, command=command, **environment))

        yield served
