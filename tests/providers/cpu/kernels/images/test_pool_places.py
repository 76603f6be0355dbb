"""MaxPool with indices against the reference provider."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, reference

from sardonyx.errors import InvalidArgument

CASES = [
    ((2, 3, 9, 40), "kernel_shape = [3, 3]"),
    ((1, 2, 9, 9), "kernel_shape = [2, 3], strides = [2, 2], pads = [0, 1, 1, 1]"),
    ((1, 2, 9, 9), "kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], storage_order = 1"),
    ((2, 1, 10, 37), "kernel_shape = [3, 2], strides = [1, 3], dilations = [2, 3], ceil_mode = 1"),
    ((2, 2, 33), 'kernel_shape = [4], auto_pad = "SAME_UPPER"'),
    ((1, 2, 4, 5, 18), "kernel_shape = [2, 2, 3], strides = [1, 1, 2], storage_order = 1"),
    ((0, 2, 4, 4), "kernel_shape = [2, 2]"),
]


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize(("shape", "attributes"), CASES)
def test_every_way(shape: tuple[int, ...], attributes: str, kind: str, isa: str) -> None:
    """Numbers and places are the reference's: of equal elements the first, NaN before all, infinities."""
    body = f"graph(x: {kind}[{', '.join('ABCDE'[: len(shape)])}]) -> (y, z) {{ y, z = MaxPool(x) {{{attributes}}} }}"
    session = cpu_session(body, opset=12, isa=isa)
    for seed in range(3):
        x = np.random.default_rng(seed).integers(-3, 3, shape).astype(kind.replace("float", "float32"))
        x.reshape(-1)[:: 7 + seed], x.reshape(-1)[3::11] = np.nan if seed else 5, -np.inf
        for found, wanted in zip(session.run(None, {"x": x}), reference(body, {"x": x}, opset=12), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_indices_alone() -> None:
    """The first output need not be read."""
    body = "graph(x: float[1, 1, 4, 4]) -> (z) { y, z = MaxPool(x) {kernel_shape = [2, 2], strides = [2, 2]} }"
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    assert cpu_session(body).run(None, {"x": x})[0].ravel().tolist() == [5, 7, 13, 15]


def test_a_window_that_does_not_fit() -> None:
    """The sizes are named when a shape is bound."""
    body = "graph(x: float[1, 1, A, 4]) -> (y, z) { y, z = MaxPool(x) {kernel_shape = [3, 3]} }"
    with pytest.raises(InvalidArgument, match="window of"):
        cpu_session(body).run(None, {"x": np.zeros((1, 1, 2, 4), np.float32)})
