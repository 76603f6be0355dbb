"""Tests of model packages as they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.model_packages.contents import read_contents

URI = "sha256:" + "a" * 64


def _write(root: Path, components: dict[str, Any], **more: object) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "manifest.json").write_text(json.dumps({"schema_version": "1.0", "components": components, **more}))
    return root


def test_a_component_in_the_manifest(tmp_path: Path) -> None:
    """Its variants' folders lie in the package's."""
    _write(tmp_path, {"c": {"variants": {"v": {"ep": "P"}, "w": {}}}})
    (tmp_path / "v").mkdir()
    info: Any = read_contents(tmp_path).info()["components"]
    assert [variant["variant_directory"] for variant in info[0]["variants"]] == [str(tmp_path / "v"), None]
    assert [variant["ep"] for variant in info[0]["variants"]] == ["P", None]


@pytest.mark.parametrize(("path", "file"), [("d", "d/component.json"), ("d/own.json", "d/own.json")])
def test_a_component_in_a_file_of_its_own(tmp_path: Path, path: str, file: str) -> None:
    """Named by its folder or itself; its variants' folders lie beside it, as do what these say in files."""
    _write(tmp_path, {"c": path})
    (tmp_path / "d" / "v").mkdir(parents=True)
    (tmp_path / file).write_text('{"variants": {"v": {"executor_info": {"ort": "o.json", "own": {"a": 1}}}}}')
    (tmp_path / "d" / "v" / "o.json").write_text('{ "x": 1 }')
    found = read_contents(tmp_path)
    assert found.components["c"].file == tmp_path / file
    assert found.variant_folder("c", "v") == tmp_path / "d" / "v"
    assert [found.executor_text("c", "v", key) for key in ("ort", "own")] == ['{ "x": 1 }', '{"a":1}']


def test_assets_are_found_where_they_are_kept_and_named(tmp_path: Path) -> None:
    """The manifest's word stands above the folder's."""
    _write(tmp_path, {}, shared_assets={URI: "here"})
    other = "sha256:" + "b" * 64
    for uri in (URI, other):
        (tmp_path / "shared_assets" / uri.replace(":", "-")).mkdir(parents=True)
    (tmp_path / "shared_assets" / "notes").mkdir()
    folder = tmp_path / "shared_assets" / other.replace(":", "-")
    assert read_contents(tmp_path).assets() == {URI: tmp_path / "here", other: folder}


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ({"c": "nowhere"}, NoSuchFile),
        ({"c": "../c"}, InvalidArgument),
        ({"c": {"variants": {"v": {"variant_directory": "no"}}}}, NoSuchFile),
        ({"c": {"variants": {"v": {"variant_directory": "/"}}}}, InvalidArgument),
        ({"c": {"variants": {"v": {"executor_info": {"ort": "o.json"}}}}}, NoSuchFile),
        ({"c": {"variants": {"here": {"executor_info": {"ort": "no.json"}}}}}, NoSuchFile),
        ({"c": {"variants": {"here": {"executor_info": {"ort": "bad.json"}}}}}, InvalidArgument),
        ({"c": {"variants": {"here": {"executor_info": {"ort": "../x"}}}}}, InvalidArgument),
    ],
)
def test_what_leads_nowhere_is_refused(tmp_path: Path, components: dict[str, Any], error: type[Exception]) -> None:
    """When the package is read."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "bad.json").write_text("{")
    with pytest.raises(error):
        read_contents(_write(tmp_path, components))


def test_a_package_is_a_folder_with_a_manifest(tmp_path: Path) -> None:
    """Whose text is JSON."""
    with pytest.raises(NoSuchFile, match="is no folder"):
        read_contents(tmp_path / "no")
    with pytest.raises(NoSuchFile, match=r"has no manifest\.json"):
        read_contents(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InvalidArgument, match=r"manifest\.json: this is no JSON"):
        read_contents(tmp_path)


def test_paths_may_leave_a_package_where_that_is_allowed(tmp_path: Path) -> None:
    """By the manifest or by the caller."""
    (tmp_path / "out").mkdir()
    component = {"c": {"variants": {"v": {"variant_directory": "../out"}}}}
    for found in (
        read_contents(_write(tmp_path / "a", component, layout="installed")),
        read_contents(_write(tmp_path / "b", component), allows_external=True),
    ):
        assert found.variant_folder("c", "v") == tmp_path / "out"


def test_names_that_there_are_not(tmp_path: Path) -> None:
    """Are told with those that there are."""
    found = read_contents(_write(tmp_path, {"c": {"variants": {"v": {}}}}))
    with pytest.raises(NoSuchFile, match="no component 'd'; it has 'c'"):
        found.component("d")
    with pytest.raises(NoSuchFile, match="component 'c' has no variant 'w'; it has 'v'"):
        found.variant("c", "w")
