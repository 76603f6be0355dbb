"""MaxUnpool against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, reference
from support.moving import TYPES, same

from sardonyx.errors import InvalidArgument

BODY = "graph(x: %s[N, C, H, W], i: int64[N, C, H, W]) -> (y) { y = MaxUnpool(x, i) {kernel_shape = [2, 2], strides = [2, 2]} }"


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double"])
def test_elements_go_back(kind: str, isa: str) -> None:
    """Of several for one place the last one stays."""
    cases = []
    for shape in ((2, 3, 4, 5), (1, 1, 1, 1)):
        indices = np.random.default_rng(0).integers(0, 4 * np.prod(shape), shape)
        cases.append({"x": np.random.default_rng(1).standard_normal(shape).astype(TYPES[kind]), "i": indices})
    same(BODY % kind, *cases, isa=isa)


@pytest.mark.parametrize("wrong", [-1, 16, 1 << 62])
def test_a_wrong_index(wrong: int) -> None:
    """An error, and nothing is written outside."""
    session = cpu_session(BODY % "float")
    with pytest.raises(InvalidArgument, match="element 3 of its indices is out of range"):
        session.run(None, {"x": np.ones((1, 1, 2, 2), np.float32), "i": np.array([[[[0, 1], [2, wrong]]]])})


@pytest.mark.parametrize("shape", [[1, 1, 5, 5], [1, 1, 3, 4], [1, 1, 3, 9], [2, 1, 4, 4], [1, 1, 0, 4]])
def test_a_shape_of_its_own(shape: list[int]) -> None:
    """Larger or smaller than what was pooled, in which indices count: zeros are added at the far ends, or elements cut off."""
    body = f"""graph(x: float[1, 1, 2, 2], i: int64[1, 1, 2, 2]) -> (y) {{
        s: int64[4] = {shape}
        y = MaxUnpool(x, i, s) {{kernel_shape = [2, 2], strides = [2, 2]}} }}"""
    feeds = {"x": np.array([[[[1, 2], [3, 4]]]], np.float32), "i": np.array([[[[5, 7], [13, 15]]]])}
    np.testing.assert_array_equal(cpu_session(body).run(None, feeds)[0], reference(body, feeds)[0])
