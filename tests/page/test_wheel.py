"""The page as a wheel brings it: bundled, small, and the same."""

import gzip
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.server.servers import TIMBAL, Server

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel holds."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def test_the_page_and_its_scripts_are_at_most_40_kb_together(installed: Path) -> None:
    web = installed / "timbal" / "web"
    sizes = {
        path.name: len(gzip.compress(path.read_bytes()))
        for path in web.rglob("*")
        if path.suffix in (".css", ".html", ".js", ".svg") and path.name != "signin.html"
    }
    assert sizes.keys() >= {"app.js", "client.js", "index.html", "styles.css"}
    assert sum(sizes.values()) <= 40 * 1024, sizes


def test_the_licences_of_vendored_modules_are_in_the_wheel(installed: Path) -> None:
    vendor = installed / "timbal" / "web" / "vendor"
    assert {path.name for path in vendor.glob("LICENSE.*")} == {"LICENSE.lit"}


def test_the_page_of_the_wheel_asks_and_takes_an_answer(installed: Path, page: Page, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from timbal.demo.assistant import assistant\nagent = assistant('scripted')\n")
    command = [TIMBAL, "serve", "app.py::agent", "--port", "0"]
    with Server(tmp_path, command=command, PYTHONPATH=str(installed)) as server:
        page.goto(server.url)
        page.get_by_role("textbox").fill("Set up a database.")
        page.keyboard.press("Enter")
        page.get_by_role("radio", name="mysql").check()
        page.get_by_role("button", name="Send answer").click()
        page.get_by_role("button", name="No, don't").click()
        expect(page.get_by_role("log")).to_contain_text("Done. mysql://shop-db is up. The old database is untouched.")
        page.get_by_role("link", name="Inbox").click()
        expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
