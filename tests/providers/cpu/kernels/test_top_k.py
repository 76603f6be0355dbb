"""TopK against the reference provider, by bits; a k that no axis has is an error."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined
from support.moving import same

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

KINDS = ["float", "double", "float16", "int8", "int32", "int64", "uint8", "uint64"]


def _drawn(kind: str, *shape: int) -> Array:
    random = np.random.default_rng(len(shape))
    if kind not in ("float", "double", "float16"):
        return random.integers(0 if kind[0] == "u" else -100, 100, shape).astype(kind)
    found: Array = np.round(random.standard_normal(shape), 1).astype({"float": "float32", "double": "float64"}.get(kind, kind))
    for special in (np.nan, -0.0, np.inf):
        found[random.random(shape) < 0.05] = special
    return found


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_type(kind: str, isa: str) -> None:
    """Ties, NaN, zeros of both signs; rows of several lengths in one session, none too."""
    for largest, k in ((0, 5), (1, 60)):
        body = f"graph(x: {kind}[A, N]) -> (v, i) {{ k: int64[1] = [{k}] v, i = TopK(x, k) {{largest = {largest}}} }}"
        same(body, *({"x": _drawn(kind, *shape)} for shape in ((3, 60), (2, 700), (0, 61))), isa=isa)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_every_axis(axis: int) -> None:
    """With k as a constant, and computed, where the size of the results is known only afterwards."""
    fixed = f"graph(x: float[A, B, C]) -> (v, i) {{ k: int64[1] = [4] v, i = TopK(x, k) {{axis = {axis}}} }}"
    same(fixed, {"x": _drawn("float", 5, 40, 6)}, {"x": _drawn("float", 4, 4, 4)})
    computed = f"graph(x: float[A, B, C], k: int64[1]) -> (v, i) {{ v, i = TopK(x, k) {{axis = {axis}}} }}"
    same(computed, *({"x": _drawn("float", 5, 9, 6), "k": np.array([k])} for k in (0, 1, 5)))


def test_before_opset_10() -> None:
    """The attribute says how many."""
    same("graph(x: float[A, B]) -> (v, i) { v, i = TopK(x) {k = 3, axis = 0} }", (7, 2), opset=9)


def test_what_follows_reads_the_size() -> None:
    """A part behind it is bound to the size that the run has shown."""
    body = """graph(x: float[N], k: int64[1]) -> (y, s) {
        a = Abs(x)
        v, i = TopK(a, k)
        g = Gather(x, i)
        y = Mul(g, v)
        s = Shape(v)
    }"""
    session = cpu_session(body)
    x = _drawn("float", 50)
    for k in (1, 7, 50, 0):
        feeds = {"x": np.where(np.isfinite(x), x, np.float32(0)), "k": np.array([k])}
        y, s = session.run(None, feeds)
        order = np.argsort(-np.abs(feeds["x"]), kind="stable")[:k]
        np.testing.assert_array_equal(y, (feeds["x"] * np.abs(feeds["x"]))[order])
        assert s.tolist() == [k]


@pytest.mark.parametrize("k", [-1, 51, 1 << 62])
def test_a_k_that_the_axis_does_not_have(k: int) -> None:
    """An error that says what is expected, and the next run is well."""
    session = cpu_session("graph(x: float[N], k: int64[1]) -> (v, i) { v, i = TopK(x, k) }")
    x = _drawn("float", 50)
    with pytest.raises(InvalidArgument, match="k is negative, or more than the axis has elements"):
        session.run(None, {"x": x, "k": np.array([k])})
    assert session.run(None, {"x": x, "k": np.array([3])})[0].shape == (3,)
    fixed = cpu_session("graph(x: float[N]) -> (v, i) { k: int64[1] = [51] v, i = TopK(x, k) }")
    with pytest.raises(InvalidArgument, match="k=51 along axis 0"):
        fixed.run(None, {"x": x})


def test_what_is_left_to_others() -> None:
    """More than one k, which the reference provider refuses."""
    assert "one number" in declined("graph(x: float[N], k: int64[K]) -> (v, i) { v, i = TopK(x, k) }")[0]
