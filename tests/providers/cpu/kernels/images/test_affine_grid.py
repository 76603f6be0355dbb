"""AffineGrid against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference

from sardonyx.errors import InvalidArgument


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 5, 17), (1, 1, 1, 1), (3, 1, 4, 16), (2, 1, 3, 4, 9), (0, 1, 2, 2), (1, 1, 0, 3)])
def test_every_size(size: tuple[int, ...], align: int, kind: str, isa: str) -> None:
    """In two and three axes, of one element and of none."""
    rank = len(size) - 2
    body = (
        f"graph(t: {kind}[A, {rank}, {rank + 1}]) -> (y) "
        f"{{ s: int64[{len(size)}] = {list(size)} y = AffineGrid(t, s) {{align_corners = {align}}} }}"
    )
    theta = np.random.default_rng(0).standard_normal((size[0], rank, rank + 1)).astype(kind.replace("float", "float32"))
    found = cpu_session(body, opset=20, isa=isa).run(None, {"t": theta})[0]
    wanted = reference(body, {"t": theta}, opset=20)[0]
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-7 if kind == "float" else 1e-15)


def test_the_size_of_another_tensor() -> None:
    """It is known when shapes are."""
    body = "graph(t: float[A, 2, 3], x: float[A, C, H, W]) -> (y) { s = Shape(x) y = AffineGrid(t, s) }"
    feeds = {"t": np.ones((2, 2, 3), np.float32), "x": np.zeros((2, 3, 4, 5), np.float32)}
    found = cpu_session(body, opset=20).run(None, feeds)[0]
    np.testing.assert_allclose(found, reference(body, feeds, opset=20)[0], atol=1e-6)


def test_a_matrix_for_each_image() -> None:
    """Neither more nor fewer."""
    body = "graph(t: float[A, 2, 3]) -> (y) { s: int64[4] = [3, 1, 2, 2] y = AffineGrid(t, s) }"
    with pytest.raises(InvalidArgument, match="a matrix for each of 3 images"):
        cpu_session(body, opset=20).run(None, {"t": np.ones((2, 2, 3), np.float32)})


def test_what_is_left_to_others() -> None:
    """Matrices that do not suit the size."""
    body = "graph(t: float[A, 2, 4]) -> (y) { s: int64[4] = [3, 1, 2, 2] y = AffineGrid(t, s) }"
    assert "matrices (N, r, r + 1)" in declined(body, opset=20)[0]
