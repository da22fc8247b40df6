"""What README and docs show is true: every code block runs."""

import shutil
from pathlib import Path

import pytest

from tests.docs.answers import ANSWERS
from tests.docs.run_page import run_page

ROOT = Path(__file__).parents[2]
PAGES = [path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")))]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a fresh copy of the checkout."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "dist", "htmlcov"))
    monkeypatch.chdir(copy)


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("page", PAGES)
def test_every_code_block_does_what_its_page_says(
    page: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    markdown = (ROOT / page).read_text(encoding="utf-8")
    if page in ANSWERS:
        request.getfixturevalue("api").answer(*ANSWERS[page])
    if "DATABASE_URL" in markdown:
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_schema_url"))
    run_page(page, markdown)
