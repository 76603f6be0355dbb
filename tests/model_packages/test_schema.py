"""Tests of the schema of model packages."""

from __future__ import annotations

from typing import Any

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.model_packages.schema import as_object, check_component, check_manifest, check_variant, dump, parse, schema_version

GOOD: dict[str, Any] = {"schema_version": "1.0", "components": {"a": {"variants": {}}, "b": "folder"}}


@pytest.mark.parametrize(("value", "version"), [("1.0", (1, 0)), ("1", (1, 0)), (1, (1, 0)), ("1.12", (1, 12))])
def test_versions_that_are_read(value: object, version: tuple[int, int]) -> None:
    """A text of two numbers, or a whole number."""
    assert schema_version({"schema_version": value}) == version


@pytest.mark.parametrize("value", ["2.0", "0.9", "a", 1.5, True, None, "1.", [1]])
def test_versions_that_are_refused(value: object) -> None:
    """Other major numbers among them."""
    with pytest.raises(InvalidArgument, match="schema_version"):
        schema_version({"schema_version": value})


def test_a_manifest_that_is_right() -> None:
    """Unknown fields are refused in what else is read too."""
    assert check_manifest(GOOD, is_strict=True)
    assert check_manifest({**GOOD, "layout": "installed", "additional_metadata": 3, "description": "d"}, is_strict=True)


def test_fields_of_a_newer_version_are_passed_over() -> None:
    """Nobody can know them."""
    assert not check_manifest({**GOOD, "schema_version": "1.1", "z": 1}, is_strict=True)
    assert not check_manifest({**GOOD, "z": 1}, is_strict=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"z": 1}, "manifest.json has a field 'z'"),
        ({"layout": "x"}, "layout in manifest.json is one of portable, installed, got 'x'"),
        ({"layout": 3}, "layout of manifest.json is a text, got 3"),
        ({"package_name": 3}, "package_name of manifest.json is a text"),
        ({"components": []}, "components in manifest.json: expected an object"),
        ({"components": {"a": 3}}, "component 'a' in manifest.json is an object or a path, got 3"),
        ({"shared_assets": {"md5:1": "a"}}, "a key of shared_assets in manifest.json is sha256: and 64 digits, got 'md5:1'"),
        ({"shared_assets": {"sha256:" + "a" * 64: 3}}, "is a path, got 3"),
    ],
)
def test_a_manifest_that_is_wrong(change: dict[str, object], message: str) -> None:
    """Is refused with the field's name."""
    with pytest.raises(InvalidArgument, match=message):
        check_manifest({**GOOD, **change}, is_strict=True)


def test_a_manifest_without_components() -> None:
    """Is none."""
    with pytest.raises(InvalidArgument, match="has no components"):
        check_manifest({"schema_version": "1.0"}, is_strict=True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "component 'c' has no variants"),
        ({"variants": []}, "variants of component 'c': expected an object"),
        ({"variants": {"v": 3}}, "variant 'v': expected an object"),
        ({"variants": {}, "component_name": 3}, "component_name of component 'c' is a text"),
        ({"variants": {"v": {"ep": 3}}}, "ep of variant 'v' is a text, got 3"),
    ],
)
def test_a_component_that_is_wrong(body: dict[str, object], message: str) -> None:
    """Is refused with its name, or its variant's."""
    with pytest.raises(InvalidArgument, match=message):
        check_component("c", body, is_strict=True)


def test_what_a_variant_says_to_executors() -> None:
    """An object or a path."""
    check_variant("v", {"executor_info": {"a": {}, "b": "file.json"}}, is_strict=True)
    with pytest.raises(InvalidArgument, match=r"executor_info\['a'\] of variant 'v' is an object or a path, got 3"):
        check_variant("v", {"executor_info": {"a": 3}}, is_strict=True)


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000])
def test_what_is_no_json(text: str) -> None:
    """Is refused with what it stands for."""
    with pytest.raises(InvalidArgument, match="thing: this is no JSON"):
        parse("thing", text)


def test_objects_of_json() -> None:
    """Are written without spaces, in their order."""
    assert dump(as_object("it", '{"b": [1, 2], "a": "é"}')) == '{"b":[1,2],"a":"é"}'
    with pytest.raises(InvalidArgument, match=r"it: expected an object, got \[1\]"):
        as_object("it", "[1]")
