"""Inverse against float64."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined

from sardonyx.errors import InvalidArgument

BODY = "graph(x: float[A, M, M]) -> (y) { y = com.microsoft.Inverse(x) }"


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 17, 40])
def test_every_size(size: int, kind: str, isa: str) -> None:
    """Any number of dimensions before."""
    session = cpu_session(f"graph(x: {kind}[A, B, M, M]) -> (y) {{ y = com.microsoft.Inverse(x) }}", isa=isa)
    x = np.random.default_rng(size).standard_normal((2, 3, size, size)).astype(kind.replace("float", "float32"))
    if size > 1:
        x[0, 0, 0, 0] = 0
    found, exact = session.run(None, {"x": x})[0], np.linalg.inv(x.astype(np.float64))
    assert found.dtype == x.dtype
    bound = np.linalg.cond(x.astype(np.float64)).max() if size else 1
    np.testing.assert_allclose(found, exact, rtol=1e-6 if kind == "float" else 1e-15 * bound, atol=1e-15 * bound)


def test_a_singular_matrix_is_named() -> None:
    """As the reference provider refuses it, with its number."""
    x = np.stack([np.eye(3), np.ones((3, 3))]).astype(np.float32)
    with pytest.raises(InvalidArgument, match="matrix 1 of X.*is singular"):
        cpu_session(BODY).run(None, {"x": x})


def test_threads_do_not_change_bits() -> None:
    """Each matrix is computed as it is alone."""
    x = np.random.default_rng(0).standard_normal((100, 5, 5)).astype(np.float32)
    whole, session = cpu_session(BODY, threads=2).run(None, {"x": x})[0], cpu_session(BODY)
    for place in (0, 50, 99):
        assert_same_bits(session.run(None, {"x": x[place : place + 1]})[0], whole[place : place + 1])


def test_what_is_left_to_others() -> None:
    """Matrices that are not square."""
    assert "square" in declined("graph(x: float[2, 3]) -> (y: float[2, 3]) { y = com.microsoft.Inverse(x) }")[0]
