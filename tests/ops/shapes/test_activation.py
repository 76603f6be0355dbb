"""Facts about activations."""

from __future__ import annotations

import pytest
from support.infer_op import A, B, error_of, floats, infer_shape

from sardonyx.ops.fact import UNKNOWN


@pytest.mark.parametrize("op_type", ["Relu", "Gelu", "LeakyRelu", "HardSwish", "Selu"])
def test_shape_is_kept(op_type: str) -> None:
    """An activation keeps the shape."""
    assert infer_shape(op_type, floats(A, 3)) == (A, 3)


def test_bounds_of_clip_are_scalars() -> None:
    """Clip takes scalars as bounds, of which either may be missing."""
    assert infer_shape("Clip", floats(A), None, floats()) == (A,)
    assert "min has shape [2], expected a scalar" in error_of("Clip", floats(A), floats(2))


def test_slope_of_prelu_broadcasts() -> None:
    """The slope must broadcast to the input."""
    assert infer_shape("PRelu", floats(A, 3, 4), floats(3, 1)) == (A, 3, 4)
    assert "do not broadcast" in error_of("PRelu", floats(A, 3), floats(4))


def test_swiglu_needs_equal_shapes() -> None:
    """SwiGLU broadcasts nothing and takes what either input says."""
    assert infer_shape("SwiGLU", floats(A, 3), floats(2, 3)) == (2, 3)
    assert infer_shape("SwiGLU", UNKNOWN, floats(B)) == (B,)
    assert "got 3 and 4" in error_of("SwiGLU", floats(3), floats(4))
