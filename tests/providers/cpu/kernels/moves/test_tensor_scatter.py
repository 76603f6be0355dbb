"""TensorScatter against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference

from sardonyx.errors import InvalidArgument

BODY = 'graph(c: %s[N, A, S, D], u: %s[N, A, T, D], i: int64[N]) -> (y) { y = TensorScatter(c, u, i) {mode = "%s"} }'


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("kind", ["float", "float16", "int8", "double"])
def test_every_start(kind: str, mode: str, isa: str) -> None:
    """Steps at the beginning, in the middle, at the end, and around it."""
    session = cpu_session(BODY % (kind, kind, mode), opset=24, isa=isa)
    dtype = {"float": "float32"}.get(kind, kind)
    for steps, length, inner in ((9, 3, 5), (9, 9, 1), (7, 1, 40), (5, 0, 3), (1, 1, 1)):
        last = steps - length
        starts = [0, last // 2, last, last] if mode == "linear" else [0, steps - 1, 3 * steps + 1, last]
        feeds = {
            "c": np.arange(4 * 2 * steps * inner).reshape(4, 2, steps, inner).astype(dtype),
            "u": -np.arange(4 * 2 * length * inner).reshape(4, 2, length, inner).astype(dtype),
            "i": np.array(starts),
        }
        body = BODY % (kind, kind, mode)
        np.testing.assert_array_equal(session.run(None, feeds)[0], reference(body, feeds, opset=24)[0])


def test_other_axes_and_no_starts() -> None:
    """Along the last axis, at its beginning."""
    body = "graph(c: float[2, 3, 5], u: float[2, 3, 2]) -> (y) { y = TensorScatter(c, u) {axis = 2} }"
    feeds = {"c": np.ones((2, 3, 5), np.float32), "u": np.zeros((2, 3, 2), np.float32)}
    np.testing.assert_array_equal(cpu_session(body, opset=24).run(None, feeds)[0], reference(body, feeds, opset=24)[0])


@pytest.mark.parametrize(
    ("mode", "start"), [("linear", 7), ("linear", -1), ("linear", 2**62), ("circular", -1), ("circular", -(2**63))]
)
def test_starts_that_do_not_fit(mode: str, start: int) -> None:
    """The message has the place of the start."""
    feeds = {"c": np.ones((2, 1, 9, 4), np.float32), "u": np.zeros((2, 1, 3, 4), np.float32), "i": np.array([0, start])}
    with pytest.raises(InvalidArgument, match=r"write_indices\[1\]"):
        cpu_session(BODY % ("float", "float", mode), opset=24).run(None, feeds)


def test_an_update_that_is_too_long() -> None:
    """It has more steps than the cache."""
    feeds = {"c": np.ones((1, 1, 2, 4), np.float32), "u": np.zeros((1, 1, 3, 4), np.float32), "i": np.array([0])}
    with pytest.raises(InvalidArgument, match="update of 3 steps"):
        cpu_session(BODY % ("float", "float", "circular"), opset=24).run(None, feeds)


def test_what_is_left_to_others() -> None:
    """An axis of the batch."""
    body = "graph(c: float[2, 3], u: float[1, 3]) -> (y: float[2, 3]) { y = TensorScatter(c, u) }"
    assert "differ in axis 0" in declined(body, opset=24)[0]
