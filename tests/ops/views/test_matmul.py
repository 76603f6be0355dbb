"""The view of Gemm."""

from __future__ import annotations

from support.view_node import node

from sardonyx.ops.views.matmul import Gemm


def test_defaults() -> None:
    """Nothing is scaled or transposed; columns lie along axis 1 of B."""
    view = Gemm.of(node("Gemm", 13))
    assert view == Gemm(1.0, 1.0, transposes_a=False, transposes_b=False)
    assert (view.is_scaled, view.column_axis) == (False, 1)


def test_a_transposed_b_has_its_columns_along_axis_0() -> None:
    """And either factor scales."""
    view = Gemm.of(node("Gemm", 13, transB=1, beta=0.5))
    assert (view.is_scaled, view.column_axis) == (True, 0)
    assert Gemm.of(node("Gemm", 13, alpha=2.0)).is_scaled
