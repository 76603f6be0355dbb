"""Element-wise operators of TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

from sardonyx.dtypes import Array

X = np.array([-7.5, -2.5, -0.5, 0, 0.5, 1.5, 6.5], np.float32)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ROUND", np.round),
        ("RELU6", lambda x: np.clip(x, 0, 6)),
        ("RELU_N1_TO_1", lambda x: np.clip(x, -1, 1)),
        ("RELU_0_TO_1", lambda x: np.clip(x, 0, 1)),
        ("SQUARE", np.square),
        ("NEG", np.negative),
        ("HARD_SWISH", lambda x: x * np.clip(x + 3, 0, 6) / 6),
        ("ELU", lambda x: np.where(x < 0, np.expm1(x), x)),
    ],
)
def test_unary_operators(code: str, expected: Callable[[Array], Array]) -> None:
    """What each computes; ROUND takes the even one of two."""
    np.testing.assert_allclose(run(one(code, [((7,), "FLOAT32")], ((7,), "FLOAT32")), X)[0], expected(X), atol=1e-6)


@pytest.mark.parametrize("kind", ["FLOAT32", "INT32"])
def test_floor_mod_has_the_sign_of_the_divisor(kind: str) -> None:
    """As in Python."""
    x, y = np.array([7, -7, 7, -7, 6], kind.lower()), np.array([3, 3, -3, -3, 3], kind.lower())
    data = one("FLOOR_MOD", [((5,), kind), ((5,), kind)], ((5,), kind))
    assert run(data, x, y)[0].tolist() == [1, 2, -2, -1, 0]
    data = one("FLOOR_DIV", [((5,), kind), ((5,), kind)], ((5,), kind))
    assert run(data, x, y)[0].tolist() == [2, -3, -3, 2, 2]


def test_quantized_addition_is_within_half_a_step() -> None:
    """Of the real sum."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (50,)).astype(np.int8), rng.integers(-128, 128, (50,)).astype(np.int8)
    sketch = Sketch()
    left, right = sketch.input((50,), "INT8", (0.1, 3)), sketch.input((50,), "INT8", (0.05, -5))
    made = sketch.tensor((50,), "INT8", (0.2, 1))
    sketch.operator("ADD", [left, right], [made], ("AddOptions", {}))
    real = 0.1 * (a.astype(float) - 3) + 0.05 * (b.astype(float) + 5)
    found = 0.2 * (run(sketch.model([made]), a, b)[0].astype(float) - 1)
    assert np.abs(found - np.clip(real, 0.2 * -129, 0.2 * 126)).max() <= 0.1 + 1e-6


def test_a_condition_of_rank_1_chooses_rows() -> None:
    """Of SELECT; SELECT_V2 broadcasts it."""
    condition, x, y = np.array([True, False]), np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    data = one("SELECT", [((2,), "BOOL"), ((2, 3), "FLOAT32"), ((2, 3), "FLOAT32")], ((2, 3), "FLOAT32"))
    assert run(data, condition, x, y)[0].tolist() == [[1, 1, 1], [0, 0, 0]]
