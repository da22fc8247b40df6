"""The example of a front end of one's own, on the client module alone."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.server.servers import Server

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "front_end"
APP = """
from timbal.demo.assistant import assistant

agent = assistant("scripted")
"""


def test_a_front_end_of_sixty_lines_asks_and_goes_on(page: Page, serve: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    server = serve(Path("app.py"), "--static", str(EXAMPLE))
    page.goto(f"{server.url}/static/index.html")
    expect(page.get_by_text("0 waiting")).to_be_visible()
    page.get_by_role("button", name="Send").click()
    page.get_by_role("button", name="mysql").click()
    expect(page.get_by_text("1 waiting")).to_be_visible()
    page.get_by_role("button", name="no", exact=True).click()
    expect(page.get_by_text("The old database is untouched.")).to_be_visible()
    expect(page.get_by_text("0 waiting")).to_be_visible()


def test_it_has_at_most_sixty_lines_of_its_own() -> None:
    lines = [line for path in EXAMPLE.iterdir() for line in path.read_text().splitlines()]
    assert len(lines) <= 60
