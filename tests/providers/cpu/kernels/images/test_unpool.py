"""MaxUnpool against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined
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


def test_what_is_left_to_others() -> None:
    """A shape of its own, which may be larger or smaller."""
    body = """graph(x: float[1, 1, 2, 2], i: int64[1, 1, 2, 2]) -> (y) {
        s: int64[4] = [1, 1, 5, 5]
        y = MaxUnpool(x, i, s) {kernel_shape = [2, 2], strides = [2, 2]} }"""
    assert "shape which was pooled" in declined(body)[0]
