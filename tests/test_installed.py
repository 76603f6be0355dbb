"""Entry points of installed packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sardonyx.installed import installed_points, search_path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path with the record of a package that names two objects."""
    info = tmp_path / "toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[toy.group]\nb = toy:second\na = toy:first\n[toy.other]\nc = toy:third\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def _values() -> list[str]:
    return [point.value for point in installed_points("toy.group", search_path())]


def test_the_points_of_a_group_come_by_name(package: Path) -> None:
    """Those of other groups do not."""
    assert _values() == ["toy:first", "toy:second"]


@pytest.mark.parametrize("entry", [None, 3, b"/nowhere", Path("/nowhere"), []])
def test_what_imports_pass_over_is_passed_over(package: Path, monkeypatch: pytest.MonkeyPatch, entry: object) -> None:
    """Nothing but texts is searched."""
    monkeypatch.setattr(sys, "path", [entry, *sys.path])
    assert entry not in search_path()
    assert _values() == ["toy:first", "toy:second"]
