"""Entry points of installed packages."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sardonyx.installed import installed_points, installed_version, points_in, recorded_version, search_path


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


def test_a_group_that_no_record_names_is_not_searched_further(package: Path) -> None:
    """Reading all records takes 20 ms and 2 MiB."""
    code = "import sys; from sardonyx.installed import *; print(installed_points('no.such', search_path()), 'email' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == [
        "()",
        "False",
    ]


def test_points_of_a_package_in_an_archive_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lie in no folder."""
    with zipfile.ZipFile(tmp_path / "toy.zip", "w") as archive:
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        archive.writestr("toy-1.0.dist-info/entry_points.txt", "[toy.group]\na = toy:first\n")
    monkeypatch.syspath_prepend(tmp_path / "toy.zip")
    assert _values() == ["toy:first"]


def test_the_version_of_a_package_is_that_of_the_record_beside_it(package: Path) -> None:
    """The record itself is not read."""
    (package / "toy").mkdir()
    (package / "toy" / "__init__.py").touch()
    (package / "toy-1.0.dist-info" / "METADATA").unlink()
    assert installed_version("toy") == "1.0"


def test_a_record_elsewhere_tells_the_version_too(package: Path) -> None:
    """A package installed for editing has its modules elsewhere."""
    assert installed_version("toy") == "1.0"


def test_a_package_without_a_record_has_no_version() -> None:
    """As in a frozen application."""
    assert installed_version("toy") is None


def test_what_records_of_a_folder_name_is_apart(package: Path) -> None:
    """The first lines of one do not belong to the last group of the one before."""
    second = package / "other-1.0.dist-info"
    second.mkdir()
    (second / "entry_points.txt").write_text("stray = other:thing\n")
    lines = (points_in(str(package)) or b"").decode().split()
    assert lines[lines.index("[toy.group]") - 1] == "[]"


@pytest.mark.parametrize("entry", [None, 3, b"/nowhere", Path("/nowhere"), []])
def test_a_recorded_version_is_found_whatever_is_on_the_path(package: Path, monkeypatch: pytest.MonkeyPatch, entry: object) -> None:
    """As entry points are; what is not recorded has none."""
    monkeypatch.setattr(sys, "path", [entry, *sys.path])
    assert recorded_version("toy") == "1.0"
    assert recorded_version("no-such-package") is None
