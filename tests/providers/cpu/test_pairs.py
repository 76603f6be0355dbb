"""Operands in pairs of bfloat16; what they compute is in test_precision.py."""

from __future__ import annotations

import dataclasses

import pytest

from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.pairs import as_pairs, multiplies_pairs
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.steps import Buffer

FAST = dataclasses.replace(host_target(), features="+avx512bf16")


@pytest.mark.parametrize(
    ("precision", "lengths", "expected"),
    [
        (Precision.MEDIUM, (4, 6), True),
        (Precision.MEDIUM, (4, 5), False),
        (Precision.HIGH, (4,), False),
        (Precision.HIGHEST, (4,), False),
    ],
)
def test_pairs_are_for_medium_precision_and_even_lengths(precision: Precision, lengths: tuple[int, ...], expected: bool) -> None:
    """On a processor that is fast at them."""
    assert multiplies_pairs(Lowering(FAST, 1, precision=precision), *lengths) is expected
    assert not multiplies_pairs(Lowering(dataclasses.replace(FAST, features=""), 1, precision=precision), *lengths)


def test_elements_are_rounded_once_for_all_products() -> None:
    """One step writes what they share."""
    low, data = Lowering(FAST, 1, precision=Precision.MEDIUM), Buffer(DataType.FLOAT, (3, 4))
    node = Node("MatMul", [Value("a"), Value("b")], version=21)
    assert as_pairs(low, node, data) is as_pairs(low, node, data)
    assert len(low.steps) == 1
