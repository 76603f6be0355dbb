"""Tests of model packages that are made and changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sardonyx as ort
from sardonyx.errors import Fail, InvalidArgument, NoSuchFile
from sardonyx.model_packages.package import ModelPackage, ModelPackageWriteMode


def _manifest(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "manifest.json").read_text())
    return found


def _files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def _external(root: Path) -> ModelPackage:
    """Return a package in `root` with a component in a file, whose variant has a folder with a file."""
    (root / "d" / "v").mkdir(parents=True)
    (root / "d" / "v" / "m").write_text("m")
    (root / "d" / "component.json").write_text('{"variants": {"v": {}, "w": {"variant_directory": "v"}}}')
    (root / "manifest.json").write_text('{"schema_version": "1.0", "components": {"c": "d"}}')
    return ModelPackage.open(root)


def _inline() -> ModelPackage:
    made = ModelPackage()
    made.set_component_inline("c", '{"variants": {}}')
    made.set_variant("c", "v", '{"ep": "CPUExecutionProvider"}')
    return made


def test_the_names_are_onnxruntimes() -> None:
    """At the top, and among the compiled module's."""
    from sardonyx.capi import onnxruntime_pybind11_state

    assert ort.ModelPackage is ModelPackage is onnxruntime_pybind11_state.ModelPackage
    assert str(ort.ModelPackageWriteMode.DENSE) == "ModelPackageWriteMode.DENSE"


def test_a_package_is_made_and_read_again(tmp_path: Path) -> None:
    """With all that it was told."""
    made = _inline()
    made.set_metadata("name", "1.2")
    made.set_metadata(description="d")
    made.set_layout("portable")
    made.set_variant_executor_info_inline("c", "v", "ort", '{"model_file": "m.onnx"}')
    for scope, component, variant in (("manifest", None, None), ("component", "c", None), ("variant", "c", "v")):
        made.set_additional_metadata_json(scope, component, variant, '{"k": [1]}')
    made.commit(tmp_path / "p")
    info: Any = ModelPackage.open(tmp_path / "p").get_info()
    assert info == made.get_info()
    assert [info[key] for key in ("package_name", "package_version", "description", "schema_version_major")] == [
        "name",
        "1.2",
        "d",
        1,
    ]
    assert info["additional_metadata_json"] == info["components"][0]["additional_metadata_json"] == '{"k":[1]}'
    assert info["components"][0]["variants"][0] == {
        "name": "v",
        "variant_directory": None,
        "ep": "CPUExecutionProvider",
        "device": None,
        "compatibility_string": None,
        "additional_metadata_json": '{"k":[1]}',
        "executor_info": {"ort": '{"model_file":"m.onnx"}'},
    }


def test_what_is_said_is_taken_back(tmp_path: Path) -> None:
    """Metadata, executors, variants and components; what there is not may be taken out too."""
    made = _inline()
    made.set_additional_metadata_json("variant", "c", "v", json="3")
    made.set_additional_metadata_json("variant", "c", "v")
    made.set_variant_executor_info_external("c", "v", "ort", "o.json")
    made.remove_variant_executor_info("c", "v", "ort")
    made.remove_variant_executor_info("c", "v", "none")
    assert json.loads(made.get_variant_json("c", "v")) == {"ep": "CPUExecutionProvider", "executor_info": {}}
    made.remove_variant("c", "none")
    made.remove_variant("c", "v")
    assert made.get_component_json("c") == '{"variants":{}}'
    made.remove_component("none")
    made.remove_component("c")
    made.commit(tmp_path / "p")
    assert _manifest(tmp_path / "p")["components"] == {}


def test_a_copy_has_all_files(tmp_path: Path) -> None:
    """Each component stays where it is; the copy is the package's folder then."""
    package = _external(tmp_path / "p")
    package.commit(tmp_path / "q")
    assert _files(tmp_path / "q") == ["d/component.json", "d/v/m", "manifest.json"]
    package.set_metadata("n")
    package.commit()
    assert _manifest(tmp_path / "q")["package_name"] == "n"
    assert "package_name" not in _manifest(tmp_path / "p")


def test_components_are_written_into_the_manifest(tmp_path: Path) -> None:
    """Their variants' folders are named from the package's then."""
    package = _external(tmp_path / "p")
    package.commit(mode=ModelPackageWriteMode.DENSE)
    variants = _manifest(tmp_path / "p")["components"]["c"]["variants"]
    assert variants == {"v": {"variant_directory": "d/v"}, "w": {"variant_directory": "d/v"}}
    assert ModelPackage.open(tmp_path / "p").get_info() == package.get_info()


def test_what_a_file_says_is_not_written_into_the_manifest(tmp_path: Path) -> None:
    """As in onnxruntime."""
    package = _external(tmp_path / "p")
    package.set_variant_executor_info_external("c", "v", "ort", "o.json")
    with pytest.raises(Fail, match="set_variant_executor_info_inline"):
        package.commit(tmp_path / "q", ModelPackageWriteMode.DENSE)
    assert not (tmp_path / "q").exists()


def test_a_component_gets_a_file_of_its_own(tmp_path: Path) -> None:
    """When the package lies somewhere; its body stays."""
    package = _inline()
    with pytest.raises(Fail, match="lies nowhere yet"):
        package.set_component_external("c", "d")
    package.commit(tmp_path / "p")
    package.set_component_external("c", "d")
    package.set_component_external("e", "e.json")
    package.commit()
    assert _manifest(tmp_path / "p")["components"] == {"c": "d", "e": "e.json"}
    assert json.loads((tmp_path / "p" / "d" / "component.json").read_text())["variants"] == {"v": {"ep": "CPUExecutionProvider"}}
    assert json.loads((tmp_path / "p" / "e.json").read_text()) == {"variants": {}}


def test_folders_that_nothing_has_are_deleted(tmp_path: Path) -> None:
    """Only where `prune` is asked for, and not while another variant has one."""
    package = _external(tmp_path / "p")
    package.remove_variant("c", "v")
    package.prune()
    assert (tmp_path / "p" / "d" / "v" / "m").is_file()
    package.remove_component("c")
    package.commit()
    assert (tmp_path / "p" / "d" / "v" / "m").is_file()
    package.prune()
    assert _files(tmp_path / "p") == ["manifest.json"]


def test_shared_folders(tmp_path: Path) -> None:
    """Are copied into the package when it is written, and deleted when they are taken out."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("f")
    package = _inline()
    uri = package.add_shared_asset(tmp_path / "a")
    assert uri == ModelPackage.compute_directory_hash(tmp_path / "a") == package.add_shared_asset(tmp_path / "a", uri)
    assert package.resolve_asset_uri(uri) == str(tmp_path / "a")
    package.commit(tmp_path / "p")
    folder = tmp_path / "p" / "shared_assets" / uri.replace(":", "-")
    assert (folder / "f").read_text() == "f"
    assert package.resolve_string_ref(f"{uri}/f", must_exist=True) == str(folder / "f")
    package.commit(tmp_path / "q")
    assert package.get_info()["shared_assets"] == [
        {"uri": uri, "resolved_path": str(tmp_path / "q" / "shared_assets" / folder.name)}
    ]
    package.remove_shared_asset(uri)
    assert _files(tmp_path / "q") == ["manifest.json"]
    with pytest.raises(NoSuchFile):
        package.resolve_asset_uri(uri)


def test_a_shared_folder_may_stay_where_it_is(tmp_path: Path) -> None:
    """In an installed package; a copy of it has its own."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("f")
    package = _inline()
    with pytest.raises(Fail, match="which is portable"):
        package.add_shared_asset(tmp_path / "a", copy_in=False)
    package.set_layout("installed")
    uri = package.add_shared_asset(tmp_path / "a", copy_in=False)
    assert package.resolve_asset_uri(uri) == str(tmp_path / "a")
    package.commit(tmp_path / "p")
    assert "shared_assets" not in _manifest(tmp_path / "p")
    assert package.resolve_asset_uri(uri) == str(tmp_path / "p" / "shared_assets" / uri.replace(":", "-"))


def test_a_hash_that_is_not_the_expected_one(tmp_path: Path) -> None:
    """Is told with both."""
    with pytest.raises(Fail, match="not sha256:0"):
        ModelPackage().add_shared_asset(tmp_path, "sha256:0")


def test_a_package_is_not_written_over_anything(tmp_path: Path) -> None:
    """Nor nowhere, nor with a path that leads out of it."""
    (tmp_path / "f").write_text("")
    with pytest.raises(Fail, match="empty folder"):
        _inline().commit(tmp_path)
    with pytest.raises(Fail, match="empty folder"):
        _inline().commit(tmp_path / "f")
    with pytest.raises(Fail, match="give dest_root"):
        _inline().commit()
    package = _external(tmp_path / "p")
    package.set_variant("c", "x", '{"variant_directory": "../../.."}')
    with pytest.raises(InvalidArgument, match=r"'\.\.' is not allowed"):
        package.commit()
    info: Any = package.get_info()
    assert info["components"][0]["variants"][2]["variant_directory"] is None


def test_arguments_of_another_type_are_named() -> None:
    """As everywhere."""
    package: Any = _inline()
    for call in (
        lambda: package.set_metadata(3),
        lambda: package.set_variant("c", "v", {}),
        lambda: package.set_component_inline(3, '{"variants": {}}'),
        lambda: package.resolve_string_ref(None),
        lambda: ModelPackage.open(3),  # type: ignore[arg-type]  # what is tested
        lambda: package.commit(3),
    ):
        with pytest.raises(TypeError, match=" is a "):
            call()
    with pytest.raises(InvalidArgument, match="scope is one of"):
        package.set_additional_metadata_json("package")
    with pytest.raises(InvalidArgument, match="component_name and variant_name must be given"):
        package.set_additional_metadata_json("variant", "c")
    with pytest.raises(InvalidArgument, match="layout is one of portable, installed"):
        package.set_layout("none")


def test_a_closed_package() -> None:
    """Says nothing any more, and may be closed again."""
    package = _inline()
    package.close()
    package.close()
    with pytest.raises(InvalidArgument, match="closed"):
        package.get_info()
