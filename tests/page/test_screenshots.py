"""The command that takes pictures of each state of the page works."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.page import screenshots

pytestmark = pytest.mark.slow


def test_each_state_can_be_shown(browser: Browser, tmp_path: Path) -> None:
    screenshots.take_all(browser, tmp_path)
    taken = {path.stem for path in tmp_path.glob("*.png")}
    assert len(taken) == len(screenshots.LOOKS) * len(
        {*screenshots.EMPTY, *screenshots.ASKED, *screenshots.TOLD, "sign-in"}
    )
