"""Tests of how model packages are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sardonyx.errors import Fail
from sardonyx.model_packages.contents import Component, Contents, read_contents
from sardonyx.model_packages.writing import inlined, write_copy, write_in_place


def _manifest(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "manifest.json").read_text())
    return found


def _package(root: Path, path: str, **variant: object) -> Contents:
    """Return a package whose component lies in `path`, with a variant "v" and its folder."""
    file = root / path
    (file.parent / "v").mkdir(parents=True)
    (file.parent / "v" / "m").write_text("m")
    file.write_text(json.dumps({"variants": {"v": variant}}))
    (root / "manifest.json").write_text(json.dumps({"schema_version": "1.3", "components": {"c": path}, "package_name": "é"}))
    return read_contents(root)


def test_a_package_is_written_where_it_is(tmp_path: Path) -> None:
    """With the version that it had; nothing else stays in its folder."""
    contents = _package(tmp_path, "d/c.json")
    contents.components["c"].body["component_name"] = "n"
    write_in_place(contents, tmp_path)
    assert (tmp_path / "manifest.json").read_text().endswith('"package_name": "é"\n}\n')
    assert _manifest(tmp_path)["schema_version"] == "1.3"
    assert json.loads((tmp_path / "d" / "c.json").read_text()) == {"variants": {"v": {}}, "component_name": "n"}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["c.json", "d", "m", "manifest.json", "v"]


def test_what_was_added_is_a_part_of_it_then(tmp_path: Path) -> None:
    """Copied once; a folder of the same URI is the same."""
    (tmp_path / "a").mkdir()
    uri = "sha256:" + "0" * 64
    for _ in range(2):
        contents = Contents(added={uri: tmp_path / "a"})
        write_in_place(contents, tmp_path / "p")
        assert contents.added == {}
    assert (tmp_path / "p" / "shared_assets" / f"sha256-{'0' * 64}").is_dir()


@pytest.mark.parametrize("path", ["c.json", "d/c.json", "d/component.json"])
def test_a_copy_can_be_read(tmp_path: Path, path: str) -> None:
    """And is what the package is, with the variants' files."""
    made = write_copy(_package(tmp_path / "p", path), tmp_path / "q")
    again = read_contents(tmp_path / "q")
    assert again.info() == made.info()
    folder = again.variant_folder("c", "v")
    assert folder is not None
    assert (folder / "m").read_text() == "m"
    assert folder.is_relative_to(tmp_path / "q")


def test_folders_outside_are_not_copied(tmp_path: Path) -> None:
    """An installed package refers to them from wherever it lies."""
    (tmp_path / "out").mkdir()
    contents = Contents(manifest={"layout": "installed"})
    contents.components["c"] = Component({"variants": {"v": {"variant_directory": str(tmp_path / "out")}}})
    made = write_copy(contents, tmp_path / "q")
    assert made.variant_folder("c", "v") == tmp_path / "out"
    assert [path.name for path in (tmp_path / "q").iterdir()] == ["manifest.json"]


def test_components_within_the_manifest(tmp_path: Path) -> None:
    """Name their variants' folders from the package's; the package that they are of stays as it is."""
    contents = _package(tmp_path, "d/component.json")
    assert inlined(contents).components["c"] == Component({"variants": {"v": {"variant_directory": "d/v"}}})
    assert contents.components["c"].body == {"variants": {"v": {}}}
    assert inlined(inlined(contents)) == inlined(contents)


def test_an_executors_file_cannot_stand_in_the_manifest(tmp_path: Path) -> None:
    """The error says how it can."""
    (tmp_path / "v").mkdir(parents=True)
    (tmp_path / "v" / "o.json").write_text("{}")
    contents = _package(tmp_path / "d", "component.json", executor_info={"ort": {}})
    contents.components["c"].variants["v"]["executor_info"] = {"ort": "o.json"}
    with pytest.raises(Fail, match="set_variant_executor_info_inline"):
        inlined(contents)


def test_a_copy_needs_an_empty_folder(tmp_path: Path) -> None:
    """Which may be there already."""
    (tmp_path / "q").mkdir()
    write_copy(Contents(), tmp_path / "q")
    with pytest.raises(Fail, match="is written to an empty folder"):
        write_copy(Contents(), tmp_path / "q")
