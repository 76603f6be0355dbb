"""Files of models whose digests are remembered."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sardonyx.session.decisions import known_files
from sardonyx.session.decisions.known_files import known_digests, remember_digests, settled_file


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, in a process where nothing is remembered and every file has been as it is for a while."""
    monkeypatch.setattr(known_files, "_SETTLED_NS", 0)
    monkeypatch.setattr(known_files, "_DIGESTS", {})
    path = tmp_path / "m.onnx"
    path.write_bytes(b"model")
    return path


def test_a_file_is_the_same_until_it_is_written_to(file: Path) -> None:
    """Also where a tool puts its size and its time back to what they were."""
    before, status = settled_file(file), file.stat()
    assert before == settled_file(str(file)) is not None
    time.sleep(0.02)
    file.write_bytes(b"other")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert settled_file(file) != before


def test_a_file_that_was_written_just_now_is_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one that is not there, one whose name is none, and one that is mapped."""
    assert settled_file(file.with_name("nothing")) is None
    assert settled_file("a\0b") is None
    monkeypatch.setattr(known_files, "_SETTLED_NS", 60_000_000_000)
    assert settled_file(file) is None
    monkeypatch.setattr(known_files, "_SETTLED_NS", 0)
    monkeypatch.setenv("SARDONYX_MAP_WEIGHTS", "1")
    assert settled_file(file) is None


def test_digests_are_found_again(file: Path) -> None:
    """Of so many files at most."""
    found = settled_file(file)
    assert found is not None
    assert known_digests(found) is None
    remember_digests(found, "message", b"content")
    assert known_digests(found) == ("message", b"content")
    for number in range(known_files._MOST_FILES):
        remember_digests((f"/{number}", found[1], found[2]), "", b"")
    assert known_digests(found) is None
