"""Operands in pairs of bfloat16; what they compute is in test_precision.py."""

from __future__ import annotations

import dataclasses

import pytest
from support.cpu_run import TILES

from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node, Value
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.pairs import as_pair_rows, as_pairs, multiplies_pairs, multiplies_tiles
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


def test_tiles_are_for_medium_precision_and_any_length() -> None:
    """On a processor that has them."""
    found = [multiplies_tiles(Lowering(TILES, 1, precision=precision)) for precision in Precision]
    assert dict(zip(Precision, found, strict=True)) == {Precision.HIGHEST: False, Precision.HIGH: True, Precision.MEDIUM: True}
    assert not multiplies_tiles(Lowering(FAST, 1, precision=Precision.MEDIUM))


def test_rows_for_tiles_are_made_once_with_room_behind_them() -> None:
    """15 rows more, of whole tiles."""
    low, data = Lowering(TILES, 1, precision=Precision.MEDIUM), Buffer(DataType.FLOAT, (2, 3, 40))
    node = Node("MatMul", [Value("a"), Value("b")], version=21)
    rows = as_pair_rows(low, node, data)
    assert rows is as_pair_rows(low, node, data)
    assert rows.shape == (2 * 3 + 15, 64)
    assert len(low.steps) == 1
