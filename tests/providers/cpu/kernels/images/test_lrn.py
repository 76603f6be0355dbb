"""LRN against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_any_size_and_rank(size: int, isa: str) -> None:
    """Also of more channels than there are, and of nothing."""
    for shape in ((2, 7, 5, 9), (1, 3, 40), (0, 3, 4), (2, 5)):
        dims = ", ".join("ABCD"[: len(shape)])
        body = f"graph(x: float[{dims}]) -> (y) {{ y = LRN(x) {{size = {size}, alpha = 0.3, beta = 0.6, bias = 2.0}} }}"
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 3
        found = cpu_session(body, isa=isa, threads=2).run(None, {"x": x})[0]
        np.testing.assert_allclose(found, reference(body, {"x": x})[0], rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("isa", LEVELS)
def test_float64(isa: str) -> None:
    """Squares, sums and powers are of float64, too."""
    body = "graph(x: double[A, B, C]) -> (y) { y = LRN(x) {size = 3, alpha = 0.3, beta = 0.6, bias = 2.0} }"
    x = np.random.default_rng(0).standard_normal((2, 7, 43)) * 3
    np.testing.assert_allclose(cpu_session(body, isa=isa).run(None, {"x": x})[0], reference(body, {"x": x})[0], rtol=1e-13)


def test_what_is_left_to_others() -> None:
    """What has no channels."""
    assert "none of which counts channels" in declined("graph(x: float[A]) -> (y) { y = LRN(x) {size = 3} }")[0]
