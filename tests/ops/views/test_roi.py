"""Views of operators that pool regions."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.roi import MaxRoiPool, RoiAlign


def test_defaults() -> None:
    """One cell, as many samples as elements; centres lie at halves since opset 16."""
    assert RoiAlign.of(node("RoiAlign", 16)) == RoiAlign(False, (1, 1), 0, 1.0, True)
    assert RoiAlign.of(node("RoiAlign", 10, mode="max")) == RoiAlign(True, (1, 1), 0, 1.0, False)
    assert MaxRoiPool.of(node("MaxRoiPool", 1, pooled_shape=[2, 3])) == MaxRoiPool((2, 3), 1.0)


@pytest.mark.parametrize(
    "attributes",
    [{"mode": "sum"}, {"output_height": 0}, {"sampling_ratio": -1}, {"sampling_ratio": 1 << 21}],
)
def test_what_cannot_be_is_refused(attributes: dict[str, object]) -> None:
    """A mode, cells or samples."""
    with pytest.raises(InvalidGraph):
        RoiAlign.of(node("RoiAlign", 16, **attributes))


@pytest.mark.parametrize("shape", [[3], [0, 2], [1, 2, 3]])
def test_a_pooled_shape_is_two_lengths(shape: list[int]) -> None:
    """Positive ones."""
    with pytest.raises(InvalidGraph, match="expected two positive lengths"):
        MaxRoiPool.of(node("MaxRoiPool", 1, pooled_shape=shape))
