"""Facts about families."""

from __future__ import annotations

from collections import Counter

from sardonyx.ops.families import FAMILIES, family_of


def test_each_operator_has_one_family() -> None:
    """No operator stands in two families."""
    counts = Counter(name for names in FAMILIES.values() for name in names.split())
    assert [name for name, count in counts.items() if count > 1] == []


def test_family_is_found_by_name() -> None:
    """An operator leads to its family, an unknown one to None."""
    assert family_of("Conv") == "conv"
    assert family_of("NoSuchOperator") is None


def test_every_operator_of_the_standard_has_a_family() -> None:
    """Each operator of each domain of onnx is in a family."""
    import onnx.defs

    assert {schema.name for schema in onnx.defs.get_all_schemas() if family_of(schema.name) is None} == set()
