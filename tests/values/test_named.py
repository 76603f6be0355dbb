"""Enumerations that print as onnxruntime's."""

from __future__ import annotations

from sardonyx.values.named import NamedEnum


class Color(NamedEnum):
    """An example."""

    RED = 3


def test_a_member_prints_its_class_and_name() -> None:
    """And it is the integer that it stands for."""
    assert (str(Color.RED), Color.RED + 0) == ("Color.RED", 3)
