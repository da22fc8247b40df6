"""Front ends of one's own: the example on the client module, and the one in the documentation."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.docs.blocks import find_blocks
from tests.server.servers import Server

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "front_end"
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


def test_the_front_end_in_the_documentation_asks_and_goes_on(page: Page, tmp_path: Path) -> None:
    """Its page is served by an application of the reader's own, beside the routes, as the documentation says."""
    blocks = list(find_blocks("http.md", (ROOT / "docs/http.md").read_text()))
    texts = {block.marks["file"]: block.text for block in blocks if "file" in block.marks}
    assert len(texts["page.html"].splitlines()) <= 50
    (tmp_path / "page.html").write_text(texts["page.html"])
    (tmp_path / "deploying.py").write_text(texts["app.py"])
    (tmp_path / "yours.py").write_text(
        "from deploying import deploy\n"
        "from fastapi.responses import FileResponse\n"
        "from timbal.server import create_app\n"
        "app = create_app(deploy, store='sqlite:///runs.db')\n"
        "app.get('/page.html')(lambda: FileResponse('page.html'))\n"
    )
    with Server(tmp_path, command=[sys.executable, "-m", "uvicorn", "yours:app", "--port", "0"]) as server:
        page.goto(f"{server.url}/page.html")
        page.get_by_role("button", name="Deploy").click()
        expect(page.get_by_text("Deploy 2.0?")).to_be_visible()
        page.get_by_role("button", name="yes").click()
        expect(page.get_by_text(", 2.0 is live")).to_be_visible()
