"""Filled and counted tensors, and shapes as values."""

import numpy as np
import pytest
from support.cpu_run import declined, steps_of
from support.moving import same


def test_filled_tensors() -> None:
    """The shape is computed from another one; the element is an attribute, or 0."""
    body = """graph(x: float[N, M]) -> (y, z, b) {
        s = Shape(x)
        y = ConstantOfShape(s)
        z = ConstantOfShape(s) {value: int64[1] = [7]}
        b = ConstantOfShape(s) {value: bool[1] = [1]}
    }"""
    same(body, (3, 4), (0, 4), (200, 300))


def test_counted_tensors() -> None:
    """From 0 to a size, in steps, and backwards."""
    body = """graph(x: float[N, M]) -> (y, z, w) {
        zero: int64[] = 0
        one: int64[] = 1
        two: int64[] = 2
        down: int64[] = -3
        n = Shape(x) {start = 0, end = 1}
        k = Squeeze(n)
        y = Range(zero, k, one)
        z = Range(two, k, two)
        w = Range(k, zero, down)
    }"""
    same(body, (7, 1), (0, 1), (1, 1), (40, 1))


def test_shapes_and_sizes() -> None:
    """Given out, and read by other operators."""
    same("graph(x: float[N, 3, M]) -> (y, z, w) { y = Shape(x) z = Size(x) w = Shape(x) {start = -2} }", (2, 3, 5), (0, 3, 1))


def test_a_shape_for_a_view_is_not_computed() -> None:
    """The whole chain vanishes."""
    body = """graph(x: float[N, 3, M]) -> (y) {
        i: int64[] = 0
        rest: int64[1] = [-1]
        a = Neg(x)
        s = Shape(a)
        n = Gather(s, i)
        u = Unsqueeze(n, q)
        q: int64[1] = [0]
        t = Concat(u, rest) {axis = 0}
        r = Reshape(a, t)
        y = Softplus(r)
    }""".replace("        q: int64[1] = [0]\n", "").replace("        a = Neg", "        q: int64[1] = [0]\n        a = Neg")
    assert steps_of(body) in (["Neg", "Softplus"], ["Neg+Softplus"])
    same(body.replace("Softplus", "Abs"), (2, 3, 5), (1, 3, 7))


def test_arithmetic_on_sizes_is_done_when_sizes_are_known() -> None:
    """Halves, products and sums, in one partition."""
    body = """graph(x: float[N, M]) -> (y, f) {
        i: int64[] = 1
        two: int64[] = 2
        s = Shape(x)
        m = Gather(s, i)
        h = Div(m, two)
        d = Sub(m, h)
        p = Mul(d, two)
        y = Add(p, h)
        f = Cast(p) {to = 1}
    }"""
    same(body, (2, 5), (3, 8), (1, 1), (1, 0))


def test_sizes_that_data_decide() -> None:
    """What NonZero finds is not known from shapes; what comes after it is, in a partition of its own."""
    body = "graph(x: float[N]) -> (y) { z = NonZero(x) s = Shape(z) y = Neg(s) }"
    assert declined(body) == []
    same(body, {"x": np.array([1, 0, 2], np.float32)}, {"x": np.zeros(0, np.float32)})


def test_a_float_range_of_inputs_is_left_alone() -> None:
    """How long it is depends on the data."""
    assert declined("graph(a: float, b: float, c: float) -> (y) { y = Range(a, b, c) }")


def test_masks_of_attention() -> None:
    """Positions compared with one another, as exporters write causal masks."""
    body = """graph(x: float[N, T]) -> (y) {
        zero: int64[] = 0
        one: int64[] = 1
        i: int64[] = 1
        axis: int64[1] = [1]
        s = Shape(x)
        t = Gather(s, i)
        r = Range(zero, t, one)
        c = Unsqueeze(r, axis)
        y = GreaterOrEqual(c, r)
    }"""
    same(body, {"x": np.zeros((1, 5), np.float32)}, {"x": np.zeros((2, 33), np.float32)})


@pytest.mark.parametrize("k", [0, 1, -2, 1000, -(1 << 60)])
def test_matrices_with_a_diagonal(k: int) -> None:
    """Of the input's type, and of another; of any size."""
    for kind, attribute in (("float", ""), ("uint8", ""), ("float", ", dtype = 11")):
        body = f"graph(x: {kind}[A, B]) -> (y) {{ y = EyeLike(x) {{k = {k}{attribute}}} }}"
        same(
            body, *({"x": np.zeros(shape, "float32" if kind == "float" else kind)} for shape in ((3, 4), (37, 20), (0, 3), (5, 0)))
        )
