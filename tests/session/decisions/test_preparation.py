"""What is done when the package is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sardonyx.session.decisions.preparation import prepare_process

_SETS_LATER = """
import os, sardonyx
os.environ["SARDONYX_CACHE_DIR"] = ""
os.environ["SARDONYX_NUM_THREADS"] = "1"
from sardonyx.disk_cache import shared_cache
assert shared_cache() is None
"""


def test_variables_may_be_set_after_the_import() -> None:
    """A session obeys them: nothing of the environment was kept."""
    assert subprocess.run([sys.executable, "-c", _SETS_LATER], check=False).returncode == 0


def test_what_cannot_be_read_is_left_to_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import does not fail."""

    def fails() -> None:
        raise OSError("no such file")

    monkeypatch.setattr("sardonyx.session.decisions.preparation.read_processor", fails)
    prepare_process()
