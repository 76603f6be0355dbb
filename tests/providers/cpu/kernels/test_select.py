"""NonZero and Compress against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference
from support.moving import same

from sardonyx.dtypes import Array


def _drawn(kind: str, *shape: int) -> Array:
    found: Array = np.random.default_rng(len(shape)).integers(0 if kind[0] in "ub" else -1, 2, shape)
    return found.astype({"float": "float32", "double": "float64"}.get(kind, kind))


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double", "float16", "bool", "int64", "uint8"])
def test_non_zero(kind: str, isa: str) -> None:
    """Of every type and several ranks, of nothing too."""
    shapes = [(3, 4, 5), (2, 1, 100), (0, 3, 4), (3, 4, 0), (1, 1, 1)]
    same(f"graph(x: {kind}[A, B, C]) -> (y) {{ y = NonZero(x) }}", *({"x": _drawn(kind, *shape)} for shape in shapes), isa=isa)
    same(f"graph(x: {kind}[A]) -> (y) {{ y = NonZero(x) }}", *({"x": _drawn(kind, size)} for size in (0, 1, 999)), isa=isa)


@pytest.mark.parametrize("axis", ["", "{axis = 0}", "{axis = 1}", "{axis = -1}"])
def test_compress(axis: str) -> None:
    """Conditions that are shorter and longer than the axis, and none at all."""
    for kind in ("float", "uint8", "double"):
        body = f"graph(x: {kind}[A, B, C], c: bool[L]) -> (y) {{ y = Compress(x, c) {axis} }}"
        shapes, lengths = [(3, 4, 5), (7, 1, 100), (0, 3, 4)], (0, 1, 3, 50)
        same(body, *({"x": _drawn(kind, *shape), "c": _drawn("bool", size)} for shape in shapes for size in lengths))


@pytest.mark.parametrize("guard", [False, True])
def test_a_chain_of_selections(guard: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads what the one before has found."""
    if guard:
        monkeypatch.setenv("SARDONYX_GUARD", "1")
    body = """graph(x: float[N, M]) -> (y, z) {
        half: float[1] = [0.5]
        r = Relu(x)
        i = NonZero(r)
        t = Transpose(i) {perm = [1, 0]}
        g = GatherND(r, t)
        c = Greater(g, half)
        y = Compress(g, c) {axis = 0}
        z = Exp(y)
    }"""
    session = cpu_session(body)
    for shape in ((3, 4), (1, 1), (20, 30)):
        feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
        found, wanted = session.run(None, feeds), reference(body, feeds)
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_allclose(found[1], wanted[1], rtol=3e-7)


def test_what_is_left_to_others() -> None:
    """A scalar has no coordinates; a condition has one dimension."""
    assert "scalar" in declined("graph(x: float[]) -> (y) { y = NonZero(x) }")[0]
    assert "2 dimensions" in declined("graph(x: float[A], c: bool[A, B]) -> (y) { y = Compress(x, c) }")[0]
