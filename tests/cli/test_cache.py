"""`sardonyx cache`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from sardonyx.disk_cache import DiskCache, shared_cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache with one object."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "c"))
    shared_cache.cache_clear()
    DiskCache(tmp_path / "c").store("a" * 64, b"object")
    yield tmp_path / "c"
    shared_cache.cache_clear()


def test_info_says_what_is_there(invoke: Callable[..., Result], folder: Path) -> None:
    """Where, how many, how much, and whether it can be used."""
    facts = json.loads(invoke("cache", "info", "--json").stdout)
    assert (facts["folder"], facts["files"], facts["damaged"], facts["problem"]) == (str(folder), 1, None, "")
    shown = invoke("cache", "info").output
    assert "can be read and written, by this user only" in shown
    assert "not looked at (--check)" in shown


def test_damaged_objects_are_counted(invoke: Callable[..., Result], folder: Path) -> None:
    """Where asked for."""
    next(folder.iterdir()).write_bytes(b"x")
    assert json.loads(invoke("cache", "info", "--check", "--json").stdout)["damaged"] == 1


def test_clear_empties_it(invoke: Callable[..., Result], folder: Path) -> None:
    """It says how much that was."""
    assert "1 files deleted" in invoke("cache", "clear").output
    assert list(folder.iterdir()) == []
    assert json.loads(invoke("cache", "clear", "--json").stdout)["deleted"] == 0


def test_without_a_cache_it_says_so(invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to clear."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", "")
    shared_cache.cache_clear()
    try:
        assert "there is no cache" in invoke("cache", "info").output
        assert invoke("cache", "clear").exit_code == 1
    finally:
        shared_cache.cache_clear()
