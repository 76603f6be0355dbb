"""Filters that the run computes, packed in it."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from support.channels_last import compare, model_of, random
from support.cpu_run import LEVELS, assert_same_bits, cpu_session

_SIZES = [(2, 9, 7), (1, 17, 5), (0, 9, 9)]


@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((33, 16, 1, 1), {}),
        ((33, 16, 1, 1), {"strides": [2, 2]}),
        ((20, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((20, 16, 3, 3), {"pads": [0, 1, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
        ((24, 4, 3, 3), {"pads": [1, 1, 1, 1], "group": 4}),
        ((16, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 16}),
        ((32, 1, 3, 2), {"group": 16}),
        ((2, 16, 3, 3), {"auto_pad": "SAME_UPPER"}),
        ((1, 16, 2, 2), {}),
    ],
)
def test_convolutions(w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """Every way to compute one."""
    model = model_of([helper.make_node("Conv", ["x", "w"], ["y"], **attributes)], {"x": ["n", 16, "h", "v"], "w": list(w)}, {})
    compare(model, [{"x": random(n, 16, height, width), "w": random(*w)} for n, height, width in _SIZES])


@pytest.mark.parametrize(
    ("w", "attributes"),
    [
        ((20, 33, 2, 2), {"strides": [2, 2]}),
        ((20, 33, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ((20, 3, 3, 2), {"strides": [3, 4], "pads": [1, 0, 0, 1]}),
        ((20, 33, 3, 3), {"strides": [2, 3], "dilations": [2, 3]}),
        ((20, 6, 3, 4), {"strides": [2, 2], "group": 4}),
        ((20, 1, 2, 2), {"strides": [2, 2], "group": 20}),
        ((20, 5, 1, 1), {"strides": [2, 2]}),
    ],
)
def test_transposed_convolutions(w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    """The taps of each phase are taken backwards."""
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    model = model_of([node], {"x": ["n", 20, "h", "v"], "w": list(w)}, {})
    compare(model, [{"x": random(n, 20, height, width), "w": random(*w)} for n, height, width in _SIZES])


def test_one_and_three_axes() -> None:
    """Sequences and volumes."""
    for x, w in ([2, 6, 30], [5, 6, 4]), ([1, 6, 5, 6, 7], [5, 6, 2, 3, 2]):
        model = model_of([helper.make_node("Conv", ["x", "w", "b"], ["y"])], {"x": x, "w": w, "b": [5]}, {})
        compare(model, [{"x": random(*x), "w": random(*w), "b": random(5)}])


@pytest.mark.parametrize("isa", LEVELS)
def test_they_are_as_constant_ones(isa: str) -> None:
    """To the last bit, where constants are not transformed."""
    body = "graph(x: float[1, 16, 9, 9], w: float[40, 16, 3, 3]) -> (y) { y = Conv(x, w) {strides = [2, 2]} }"
    x, w = random(1, 16, 9, 9), random(40, 16, 3, 3)
    numbers = ", ".join(map(repr, w.ravel().tolist()))
    fixed = "graph(x: float[1, 16, 9, 9]) -> (y) { w: float[40, 16, 3, 3] = [" + numbers + "] y = Conv(x, w) {strides = [2, 2]} }"
    found = _nhwc(body, isa).run(None, {"x": x, "w": w})[0]
    assert_same_bits(found, _nhwc(fixed, isa).run(None, {"x": x})[0].astype(np.float32))


def _nhwc(body: str, isa: str) -> Any:
    from sardonyx.provider import Layout

    return cpu_session(body, isa=isa, layout=Layout.NHWC)
