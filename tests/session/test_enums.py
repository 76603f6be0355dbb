"""Enumerations with onnxruntime's numbers."""

from __future__ import annotations

import pytest

import sardonyx as ort
from sardonyx.session import enums


@pytest.mark.parametrize("name", ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel"])
def test_names_and_numbers_are_onnxruntimes(name: str) -> None:
    """As its own enumerations have them."""
    onnxruntime = pytest.importorskip("onnxruntime")
    theirs = getattr(onnxruntime, name).__members__
    assert {member.name: member.value for member in getattr(enums, name)} == {key: int(value) for key, value in theirs.items()}


@pytest.mark.parametrize("name", ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "OrtCompileApiFlags"])
def test_members_print_as_onnxruntimes(name: str) -> None:
    """The class and the member."""
    assert [str(member) for member in getattr(ort, name).__members__.values()] == [
        f"{name}.{key}" for key in getattr(ort, name).__members__
    ]


def test_compatibility_prints_by_its_public_name() -> None:
    """The name that onnxruntime gives it."""
    assert str(ort.OrtCompiledModelCompatibility.EP_UNSUPPORTED) == "OrtCompiledModelCompatibility.EP_UNSUPPORTED"
