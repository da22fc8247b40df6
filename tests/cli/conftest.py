"""What the tests of the command line share."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with `shop.py` in it, and nothing else."""
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("apps") / "shop.py", folder)
    return folder
