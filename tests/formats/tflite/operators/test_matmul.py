"""Products of matrices of TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

import sardonyx
from sardonyx import errors
from sardonyx.formats.flat.schema_circle import CIRCLE

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("keeps", [False, True])
def test_rows_of_weights_are_outputs(keeps: bool) -> None:
    """The input is a list of rows, in the shape of the input where the options keep it."""
    x, w, b = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 3, 4), (5, 4), (5,)))
    options = ("FullyConnectedOptions", {"keep_num_dims": keeps})
    shape = (2, 3, 5) if keeps else (6, 5)
    found = run(one("FULLY_CONNECTED", [((2, 3, 4), "FLOAT32"), w, b], (shape, "FLOAT32"), options), x)[0]
    np.testing.assert_allclose(found, (x @ w.T + b).reshape(shape), atol=1e-5)


def test_integers_are_multiplied() -> None:
    """By scales of rows."""
    x, w = RNG.integers(-128, 128, (3, 8)).astype(np.int8), RNG.integers(-127, 128, (4, 8)).astype(np.int8)
    scales = np.array([0.01, 0.02, 0.03, 0.04], np.float32)
    sketch = Sketch()
    made = sketch.tensor((3, 4), "INT8", (0.5, 2))
    sketch.operator(
        "FULLY_CONNECTED", [sketch.input((3, 8), "INT8", (0.1, 3)), sketch.constant(w, (scales, [0] * 4, 0)), -1], [made]
    )
    real = 0.1 * (x.astype(float) - 3) @ (w * scales[:, None]).astype(float).T
    found = run(sketch.model([made]), x)[0]
    assert np.abs(found - np.clip(real / 0.5 + 2, -128, 127)).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("sides", [(False, False), (True, False), (False, True), (True, True)])
def test_sides_of_a_batch_may_be_transposed(sides: tuple[bool, bool]) -> None:
    """Leading axes are broadcast."""
    x, y = RNG.normal(size=(2, 3, 4)).astype(np.float32), RNG.normal(size=(1, 4, 5)).astype(np.float32)
    left, right = x.swapaxes(1, 2) if sides[0] else x, y.swapaxes(1, 2) if sides[1] else y
    options = ("BatchMatMulOptions", {"adj_x": sides[0], "adj_y": sides[1]})
    data = one("BATCH_MATMUL", [(left.shape, "FLOAT32"), (right.shape, "FLOAT32")], ((2, 3, 5), "FLOAT32"), options)
    np.testing.assert_allclose(run(data, left, right)[0], x @ y, atol=1e-5)


def _shuffled(units: int, depth: int, point: int = 128, form: int = 1) -> bytes:
    sketch = Sketch()
    made = sketch.tensor((2, units), "INT16", (0.25, 0))
    # a weight of 129, 1 above the zero point, with its highest bit flipped
    w = np.full((units, depth), 1, np.uint8)
    options = ("FullyConnectedOptions", {"weights_format": form})
    inputs = [sketch.input((2, depth), "UINT8", (0.5, point)), sketch.constant(w, (0.5, 128)), -1]
    sketch.operator("FULLY_CONNECTED", inputs, [made], options)
    return sketch.model([made])


def test_shuffled_weights_multiply_any_number_of_rows() -> None:
    """Two, though kernels of LiteRT take one or four."""
    x = RNG.integers(0, 256, (2, 16)).astype(np.uint8)
    found = run(_shuffled(4, 16), x)[0]
    assert found.tolist() == np.repeat((x.astype(int) - 128).sum(axis=1, keepdims=True), 4, axis=1).tolist()


def test_shuffled_weights_of_no_whole_blocks_are_refused() -> None:
    """Blocks have 4 rows and 16 columns."""
    for units, depth in ((3, 16), (4, 8)):
        with pytest.raises(errors.InvalidFlatBuffer, match="no blocks of 4 rows and 16 columns"):
            sardonyx.InferenceSession(_shuffled(units, depth))


def test_rows_before_shuffled_weights_have_128_as_zero_point() -> None:
    """Kernels take it for granted."""
    with pytest.raises(errors.InvalidFlatBuffer, match="the zero point 128, as shuffled weights need"):
        sardonyx.InferenceSession(_shuffled(4, 16, point=3))


def test_shuffled_floats_lie_in_blocks_of_16_rows() -> None:
    """A block has its rows' first column, then the second."""
    x, w = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 3), (32, 3)))
    blocks = np.ascontiguousarray(w.reshape(2, 16, 3).transpose(0, 2, 1)).reshape(32, 3)
    sketch = Sketch(CIRCLE)
    made = sketch.tensor((2, 32))
    inputs = [sketch.input((2, 3)), sketch.constant(blocks), -1]
    sketch.operator("FULLY_CONNECTED", inputs, [made], ("FullyConnectedOptions", {"weights_format": "SHUFFLED16x1FLOAT32"}))
    np.testing.assert_allclose(run(sketch.model([made]), x)[0], x @ w.T, atol=1e-5)


def test_shuffled_floats_of_no_whole_blocks_are_refused() -> None:
    """Blocks have 16 rows, of floats."""
    with pytest.raises(errors.InvalidFlatBuffer, match="no blocks of 16 rows of floats"):
        sardonyx.InferenceSession(_shuffled(16, 16, form=127))


def test_weights_in_an_unknown_order_are_refused() -> None:
    """The schema has names for two orders and the plain one."""
    with pytest.raises(errors.InvalidFlatBuffer, match="in the order 3"):
        sardonyx.InferenceSession(_shuffled(4, 16, form=3))


def _blocks(code: str = "FULLY_CONNECTED", *, depth: int = 4, scales: int = 4, points: int = 0) -> bytes:
    """Return a model of weights (2, depth) in blocks of 2; all of them are 3."""
    sketch = Sketch()
    x = sketch.input((1, depth))
    details = {
        "scales": sketch.constant(np.arange(1, scales + 1, dtype=np.float32)),
        "zero_points": sketch.constant(np.full(scales, points, np.int32)),
        "block_size": 2,
    }
    weights = sketch.constant(np.full((2, depth), 3, np.int8), quantization={"details": ("BlockwiseQuantization", details)})
    made = sketch.tensor((1, 2))
    sketch.operator(code, [x, weights, -1], [made], (f"{'FullyConnected' if code[0] == 'F' else 'BatchMatMul'}Options", {}))
    return sketch.model([made])


def test_each_block_of_weights_has_its_scale() -> None:
    """A row of 1, which 8 bits have exactly, sums 3 x (1 + 2) x 2 and 3 x (3 + 4) x 2."""
    np.testing.assert_allclose(run(_blocks(), np.ones((1, 4), np.float32))[0], [[18, 42]], rtol=1e-5)


@pytest.mark.parametrize(
    ("fields", "message"), [({"depth": 5}, "has no blocks of 2 integers"), ({"scales": 3}, "has no floats for its 4 scales")]
)
def test_blocks_and_scales_fit(fields: dict[str, int], message: str) -> None:
    """Rows are whole blocks, and each has a scale."""
    with pytest.raises(errors.InvalidFlatBuffer, match=message):
        sardonyx.InferenceSession(_blocks(**fields))


def test_blocks_with_zero_points_are_not_implemented() -> None:
    """LiteRT's kernels pass over them."""
    with pytest.raises(errors.NotImplemented, match="zero points that are not 0"):
        sardonyx.InferenceSession(_blocks(points=1))


def test_other_operators_do_not_take_blocks() -> None:
    """Their integers would pass for numbers."""
    with pytest.raises(errors.NotImplemented, match="quantized in blocks; FULLY_CONNECTED and EMBEDDING_LOOKUP"):
        sardonyx.InferenceSession(_blocks("BATCH_MATMUL"))
