"""Enumerations with onnxruntime's numbers."""

from __future__ import annotations

import pytest

from sardonyx.session import enums


@pytest.mark.parametrize("name", ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel"])
def test_names_and_numbers_are_onnxruntimes(name: str) -> None:
    """As its own enumerations have them."""
    onnxruntime = pytest.importorskip("onnxruntime")
    theirs = getattr(onnxruntime, name).__members__
    assert {member.name: member.value for member in getattr(enums, name)} == {key: int(value) for key, value in theirs.items()}
