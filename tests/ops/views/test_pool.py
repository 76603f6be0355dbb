"""The view of pools."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.pool import Norm, Pool


def test_defaults() -> None:
    """Padding is not counted, indices count from the last axis, norms are Euclidean."""
    view = Pool.of(node("MaxPool", 12, kernel_shape=[2]))
    assert (view.counts_padding, view.counts_by_column, view.order) == (False, False, 2.0)
    assert view.window.kernel == (2,)


def test_the_order_of_a_norm_was_a_float() -> None:
    """LpPool and GlobalLpPool have a float `p` in their first version, an int since."""
    assert Norm.of(node("GlobalLpPool", 1, p=3.0)) == Norm.of(node("GlobalLpPool", 2, p=3)) == Norm(3.0)
    assert Pool.of(node("LpPool", 1, kernel_shape=[2], p=1.0)).order == 1.0


def test_a_pool_without_a_kernel_shape_is_refused() -> None:
    """There are no weights that would say it."""
    with pytest.raises(InvalidGraph, match="kernel_shape is missing"):
        Pool.of(node("MaxPool", 12))


def test_a_norm_of_order_0_is_refused() -> None:
    """It is none."""
    with pytest.raises(InvalidGraph, match="p=0"):
        Norm.of(node("LpPool", 11, p=0))
