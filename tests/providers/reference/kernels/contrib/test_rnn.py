"""DynamicQuantizeLSTM: an LSTM of the numbers behind its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

T, N, FEATURES, H, D = 3, 2, 4, 5, 2


def parameters(per_column: bool) -> list[Any]:
    generator = np.random.default_rng(0)
    sizes = (D, 4 * H) if per_column else (D,)
    w, r = (generator.integers(0, 256, (D, inputs, 4 * H)).astype(np.uint8) for inputs in (FEATURES, H))
    w_scale, r_scale = (generator.random(sizes).astype(np.float32) / 100 for _ in range(2))
    w_zero, r_zero = (generator.integers(0, 256, sizes).astype(np.uint8) for _ in range(2))
    bias = generator.standard_normal((D, 8 * H)).astype(np.float32)
    return [w, r, bias, None, None, None, None, w_scale, w_zero, r_scale, r_zero]


def numbers(weights: Array, scale: Array, zero: Array) -> Array:
    return ((weights - zero.astype(np.float32).reshape(D, 1, -1)) * scale.reshape(D, 1, -1)).swapaxes(1, 2)


@pytest.mark.parametrize("per_column", [False, True])
def test_weights_are_dequantized_and_transposed(per_column: bool) -> None:
    """W and R lie as (inputs, gates), unlike those of LSTM; scales go by direction or by column."""
    x = np.random.default_rng(1).standard_normal((T, N, FEATURES)).astype(np.float32)
    given = parameters(per_column)
    results = run_op("DynamicQuantizeLSTM", x, *given, domain="com.microsoft", direction="bidirectional", outputs=3)
    w, r = numbers(given[0], given[7], given[8]), numbers(given[1], given[9], given[10])
    for result, expected in zip(results, run_op("LSTM", x, w, r, given[2], direction="bidirectional", outputs=3), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_a_scale_of_another_size_is_an_error() -> None:
    """The message holds both shapes that would do."""
    given = parameters(False)
    given[7] = np.ones(3, np.float32)
    with pytest.raises(InvalidArgument, match=r"the scale of W has shape \(3,\).*\(2,\) or \(2, 20\)"):
        run_op("DynamicQuantizeLSTM", np.zeros((T, N, FEATURES), np.float32), *given, domain="com.microsoft")
