"""Seals of compiled partitions."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from support.users import STRANGER, needs_root

from sardonyx.session.context.seal import seal_of, seal_problem
from sardonyx.trace import observe

_CONTENT = b"the digest of some program"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_seal_holds_for_its_content_only(folder: Path) -> None:
    """Another content, or another text, is not sealed by it."""
    seal = seal_of(_CONTENT)
    assert seal_problem(_CONTENT, seal) == ""
    for content, notes in ((b"the digest of another", seal), (_CONTENT, seal[:-1]), (_CONTENT, "")):
        assert seal_problem(content, notes) == "its seal is not under this user's key"


def test_the_key_stays_and_is_the_owner_s_alone(folder: Path) -> None:
    """A second seal is the same; nobody else may read the file."""
    assert seal_of(_CONTENT) == seal_of(_CONTENT)
    (key,) = folder.iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_another_user_s_seal_does_not_hold(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a key of his own."""
    seal = seal_of(_CONTENT)
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "other"))
    assert "there is no key for seals in" in seal_problem(_CONTENT, seal)
    seal_of(_CONTENT)
    assert seal_problem(_CONTENT, seal) == "its seal is not under this user's key"


def test_without_a_cache_folder_nothing_is_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty seal is no seal; that there is no key is traced."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", "")
    seen: list[str] = []
    with observe(lambda event: seen.append(event.name)):
        assert seal_of(_CONTENT) == ""
    assert seen == ["context.no_key"]
    assert seal_problem(_CONTENT, "") == "there is no cache folder, and so no key for seals"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_key_in_a_folder_that_others_may_write_is_no_key(folder: Path, mode: int) -> None:
    """They could have put theirs there; neither is a seal made with it."""
    seal = seal_of(_CONTENT)
    folder.chmod(mode)
    assert "the key for seals is not used, since" in seal_problem(_CONTENT, seal)
    assert f"{folder} can be written by others (mode {mode:o}); set SARDONYX_CACHE_DIR to" in seal_problem(_CONTENT, seal)
    assert seal_of(_CONTENT) == ""


def test_a_key_that_others_may_read_is_no_key(folder: Path) -> None:
    """Who knows it can seal what he likes."""
    seal = seal_of(_CONTENT)
    (folder / "context.key").chmod(0o644)
    assert "context.key can be read or written by others (mode 644); remove it" in seal_problem(_CONTENT, seal)


@needs_root
@pytest.mark.parametrize("which", ["context.key", ".", ".."])
def test_a_key_that_another_user_put_there_is_no_key(folder: Path, which: str) -> None:
    """Whether the file, its folder or one above is his."""
    seal = seal_of(_CONTENT)
    os.chown(folder / which, STRANGER, STRANGER)
    assert f"belongs to user {STRANGER}" in seal_problem(_CONTENT, seal)
    assert seal_of(_CONTENT) == ""


@needs_root
def test_a_key_in_a_folder_that_another_user_made_first_is_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the sticky /tmp: also where he lets it look as if it were ours, by a link."""
    public, own = tmp_path / "public", tmp_path / "own"
    for place in (public, own):
        place.mkdir()
    public.chmod(0o1777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(own))
    monkeypatch.delenv("SARDONYX_CACHE_DIR", raising=False)
    seal = seal_of(_CONTENT)
    assert seal_problem(_CONTENT, seal) == ""
    (public / "cache").symlink_to(own)
    os.chown(public / "cache", STRANGER, STRANGER, follow_symlinks=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(public / "cache"))
    assert f"{public / 'cache'} belongs to user {STRANGER}" in seal_problem(_CONTENT, seal)


def test_a_key_that_is_a_link_is_no_key(folder: Path) -> None:
    """It is opened without following links."""
    seal = seal_of(_CONTENT)
    (folder / "context.key").rename(folder / "another")
    (folder / "context.key").symlink_to(folder / "another")
    assert "cannot be used" in seal_problem(_CONTENT, seal)


def test_a_key_of_another_length_is_no_key(folder: Path) -> None:
    """An empty one would be known to all."""
    seal = seal_of(_CONTENT)
    (folder / "context.key").write_bytes(b"")
    assert "context.key has 0 bytes, not 32; remove it" in seal_problem(_CONTENT, seal)
    (folder / "context.key").write_bytes(bytes(31))
    assert "context.key has 31 bytes, not 32; remove it" in seal_problem(_CONTENT, seal)
    assert seal_of(_CONTENT) == ""
