"""Checks of a page as a whole: accessibility by axe, and its roles and names against a golden file."""

import os
import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

#: Set it to write the golden files anew.
WRITE = "TIMBAL_WRITE_GOLDEN"
#: Where a link leads to that holds an id: another one each time.
_ADDRESS = re.compile(r":\n *- /url: [^\n]*[0-9a-f]{32}[^\n]*")
GOLDEN = Path(__file__).parent / "golden"
AXE = Path(__file__).parents[2] / ".venv" / "node" / "node_modules" / "axe-core" / "axe.min.js"


def check_accessibility(page: Page) -> None:
    """axe finds nothing serious or critical on the page as it is now."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    # Without preload: it would put what style sheets import into inline styles, which the page's policy forbids.
    found = page.evaluate("axe.run({ resultTypes: ['violations'], preload: false })")["violations"]
    serious = [
        f"{one['id']}: {one['help']}: {node['html'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    assert not serious, "\n".join(serious)


def check_snapshot(locator: Locator, name: str, timeout: float | None = None) -> None:
    """The roles and names inside are those of `golden/<name>.yaml`, within so many milliseconds."""
    file = GOLDEN / f"{name}.yaml"
    if os.environ.get(WRITE):
        file.write_text(_ADDRESS.sub("", locator.aria_snapshot()) + "\n", encoding="utf-8")
    expect(locator).to_match_aria_snapshot(file.read_text(encoding="utf-8"), timeout=timeout)
