"""Seals of compiled partitions."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sardonyx.session.context.seal import is_sealed, seal_of

_CONTENT = b"the digest of some program"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_seal_holds_for_its_content_only(folder: Path) -> None:
    """Another content, or another text, is not sealed by it."""
    seal = seal_of(_CONTENT)
    assert is_sealed(_CONTENT, seal)
    assert not is_sealed(b"the digest of another", seal)
    assert not is_sealed(_CONTENT, seal[:-1])
    assert not is_sealed(_CONTENT, "")


def test_the_key_stays_and_is_the_owner_s_alone(folder: Path) -> None:
    """A second seal is the same; nobody else may read the file."""
    assert seal_of(_CONTENT) == seal_of(_CONTENT)
    (key,) = folder.iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_another_user_s_seal_does_not_hold(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a key of his own."""
    seal = seal_of(_CONTENT)
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "other"))
    assert not is_sealed(_CONTENT, seal)
    seal_of(_CONTENT)
    assert not is_sealed(_CONTENT, seal)


def test_without_a_cache_folder_nothing_is_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty seal is no seal."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", "")
    assert seal_of(_CONTENT) == ""
    assert not is_sealed(_CONTENT, "")
