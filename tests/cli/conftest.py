"""What the tests of the command line share."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with the apps in it, and nothing else."""
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("shop.py", "till.py"):
        shutil.copy(Path(__file__).with_name("apps") / name, folder)
    return folder
