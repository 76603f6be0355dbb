"""Det against float64."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 9, 17, 40])
def test_every_size(size: int, kind: str, isa: str) -> None:
    """Any number of dimensions before."""
    session = cpu_session(f"graph(x: {kind}[A, B, M, M]) -> (y) {{ y = Det(x) }}", opset=22, isa=isa)
    x = np.random.default_rng(size).standard_normal((2, 3, size, size)).astype(kind.replace("float", "float32"))
    if size > 1:
        x[0, 0, 0, 0] = 0
        x[1, 1, 1] = x[1, 1, 0]
    found, exact = session.run(None, {"x": x})[0], np.linalg.det(x.astype(np.float64))
    scale = np.maximum(np.abs(exact), np.abs(exact).max())
    assert np.max(np.abs(found - exact) / scale) <= (1e-7 if kind == "float" else 1e-13)


def test_special_numbers() -> None:
    """A zero column gives 0, NaN NaN; one matrix is a scalar."""
    session = cpu_session("graph(x: float[M, M]) -> (y) { y = Det(x) }", opset=22)
    x = np.array([[0, 1], [0, 2]], np.float32)
    assert session.run(None, {"x": x})[0] == 0
    x[1, 1] = np.nan
    assert np.isnan(session.run(None, {"x": x})[0])


def test_threads_do_not_change_bits() -> None:
    """Each matrix is computed as it is alone."""
    body = "graph(x: float[A, M, M]) -> (y) { y = Det(x) }"
    x = np.random.default_rng(0).standard_normal((100, 5, 5)).astype(np.float32)
    whole, session = cpu_session(body, opset=22, threads=2).run(None, {"x": x})[0], cpu_session(body, opset=22)
    for place in (0, 50, 99):
        assert_same_bits(session.run(None, {"x": x[place : place + 1]})[0], whole[place : place + 1])


def test_what_is_left_to_others() -> None:
    """Matrices that are not square."""
    assert "square" in declined("graph(x: float[2, 3]) -> (y: float[]) { y = Det(x) }", opset=22)[0]
