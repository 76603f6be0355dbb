"""DynamicQuantizeLSTM: an LSTM of the numbers behind its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model
from support.run_op import run_op

import sardonyx as ort
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_proto

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


def rounded(x: Array) -> Array:
    """What x stands for once it is quantized to uint8, by the operator that the standard has for it."""
    integers, scale, zero = run_op("DynamicQuantizeLinear", x, outputs=3)
    return np.asarray((integers.astype(np.float32) - zero.astype(np.float32)) * scale)


@pytest.mark.parametrize("per_column", [False, True])
def test_weights_are_dequantized_and_transposed(per_column: bool) -> None:
    """W and R lie as (inputs, gates), unlike those of LSTM; scales go by direction or by column. X is rounded to 8 bits."""
    x = np.random.default_rng(1).standard_normal((1, N, FEATURES)).astype(np.float32)
    given = parameters(per_column)
    results = run_op("DynamicQuantizeLSTM", x, *given, domain="com.microsoft", direction="bidirectional", outputs=3)
    w, r = numbers(given[0], given[7], given[8]), numbers(given[1], given[9], given[10])
    expected = run_op("LSTM", rounded(x), w, r, given[2], direction="bidirectional", outputs=3)
    for result, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, other, rtol=1e-5, atol=1e-6)


def test_the_state_is_rounded_in_each_step() -> None:
    """Over its own range: as an LSTM of single steps, each of which gets the state of the last, rounded."""
    x = np.random.default_rng(1).standard_normal((T, N, FEATURES)).astype(np.float32)
    given = [None if value is None else value[:1] for value in parameters(True)]
    y, _, _ = run_op("DynamicQuantizeLSTM", x, *given, domain="com.microsoft", outputs=3)
    w, r = (
        ((a - zero.astype(np.float32)[:, None]) * scale[:, None]).swapaxes(1, 2)
        for a, scale, zero in ((given[0], given[7], given[8]), (given[1], given[9], given[10]))
    )
    h, c, whole = np.zeros((1, N, H), np.float32), np.zeros((1, N, H), np.float32), rounded(x)
    for step in range(T):
        _, h, c = run_op("LSTM", whole[step : step + 1], w, r, given[2], None, rounded(h), c, outputs=3)
        np.testing.assert_allclose(y[step, 0], h[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("lengths", [[3, 1, 2], [2, 0, 1], [4, 4, 4], [1, 5, 5]])
def test_sequences_that_have_ended_do_not_widen_a_range(direction: str, lengths: list[int]) -> None:
    """Neither those of the state nor, behind the longest one, that of x: as in onnxruntime, to the rounding of floats."""
    onnxruntime = pytest.importorskip("onnxruntime")
    text = f"""graph(x: float[5, 3, 4]) -> (y: float[5, 1, 3, 6], h: float[1, 3, 6], c: float[1, 3, 6]) {{
        w: int8[1, 4, 24] = ... 1 r: int8[1, 6, 24] = ... 2 b: float[1, 48] = ... 3 l: int32[3] = {lengths}
        s: float[1] = [0.004] z: int8[1] = [0]
        y, h, c = com.microsoft.DynamicQuantizeLSTM(x, w, r, b, l, _, _, _, s, z, s, z)
        {{hidden_size = 6, direction = "{direction}"}} }}"""
    x = np.random.default_rng(6).standard_normal((5, 3, 4)).astype(np.float32) * np.float32([[[1]], [[1]], [[1]], [[1]], [[9]]])
    proto = to_proto(model(text, opset="17, com.microsoft 1")).SerializeToString()
    wanted = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    found = ort.InferenceSession(proto, providers=["ReferenceExecutionProvider"]).run(None, {"x": x})
    for own, other in zip(found[:1] if 0 in lengths else found, wanted, strict=False):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-5)


def test_a_scale_of_another_size_is_an_error() -> None:
    """The message holds both shapes that would do."""
    given = parameters(False)
    given[7] = np.ones(3, np.float32)
    with pytest.raises(InvalidArgument, match=r"the scale of W has shape \(3,\).*\(2,\) or \(2, 20\)"):
        run_op("DynamicQuantizeLSTM", np.zeros((T, N, FEATURES), np.float32), *given, domain="com.microsoft")
