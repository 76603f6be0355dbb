"""Pools on the CPU provider whose channels come first."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close, assert_same_bits, cpu_session, declined, reference, run_cpu, steps_of

from sardonyx.dtypes import Array
from sardonyx.provider import Layout

_OPERATORS = ["MaxPool", "AveragePool", "LpPool"]


def _x(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


def _compare(body: str, shapes: list[tuple[int, ...]], isa: str | None = None) -> None:
    session = cpu_session(body, isa=isa)
    for shape in shapes:
        feeds = {"x": _x(*shape)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("op_type", _OPERATORS)
@pytest.mark.parametrize(
    "attributes",
    [
        "kernel_shape = [2, 2], strides = [2, 2]",
        "kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]",
        "kernel_shape = [3, 2], strides = [2, 3], pads = [1, 0, 1, 1], dilations = [2, 1], ceil_mode = 1",
        'kernel_shape = [3, 7], strides = [1, 1], auto_pad = "SAME_UPPER"',
    ],
)
def test_two_axes(op_type: str, attributes: str, isa: str) -> None:
    """One session serves every batch, image size and number of channels."""
    body = f"graph(x: float[n, c, h, w]) -> (y) {{ y = {op_type}(x) {{{attributes}}} }}"
    _compare(body, [(2, 3, 9, 7), (1, 2, 12, 50), (0, 4, 9, 9), (3, 1, 6, 5)], isa)


@pytest.mark.parametrize("op_type", _OPERATORS)
def test_one_and_three_axes(op_type: str) -> None:
    """Sequences and volumes."""
    _compare(f"graph(x: float[n, 3, t]) -> (y) {{ y = {op_type}(x) {{kernel_shape = [4], strides = [4]}} }}", [(2, 3, 99)])
    attributes = 'kernel_shape = [2, 3, 2], strides = [1, 2, 2], auto_pad = "SAME_LOWER"'
    _compare(f"graph(x: float[n, 3, d, h, w]) -> (y) {{ y = {op_type}(x) {{{attributes}}} }}", [(2, 3, 5, 6, 9)])


@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_padding_may_count(ceil_mode: int) -> None:
    """With count_include_pad the declared padding is part of the mean, what hangs over it is not."""
    attributes = f"kernel_shape = [4, 4], strides = [3, 3], pads = [1, 1, 2, 2], ceil_mode = {ceil_mode}, count_include_pad = 1"
    _compare(f"graph(x: float[n, 2, h, w]) -> (y) {{ y = AveragePool(x) {{{attributes}}} }}", [(2, 2, 8, 11), (1, 2, 6, 6)])


@pytest.mark.parametrize("op_type", _OPERATORS)
def test_axes_without_elements_have_the_places_of_their_padding(op_type: str) -> None:
    """With what a window of no elements gives."""
    body = f"graph(x: float[n, 2, h, w]) -> (y) {{ y = {op_type}(x) {{kernel_shape = [3, 3], pads = [2, 2, 2, 2]}} }}"
    session = cpu_session(body)
    for size in ((0, 7), (7, 0), (0, 0)):
        feeds = {"x": _x(2, 2, *size)}
        np.testing.assert_array_equal(session.run(None, feeds)[0], reference(body, feeds)[0])


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("op_type", _OPERATORS)
def test_float64(op_type: str, isa: str) -> None:
    """Stays what it is."""
    body = f"graph(x: double[2, 3, 9, 40]) -> (y) {{ y = {op_type}(x) {{kernel_shape = [3, 3], strides = [2, 2]}} }}"
    feeds = {"x": _x(2, 3, 9, 40, dtype="float64")}
    np.testing.assert_allclose(run_cpu(body, feeds, isa=isa)[0], reference(body, feeds)[0], rtol=1e-14)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("width", [1, 40, 200])
def test_the_greatest_of_integers(kind: str, width: int, isa: str) -> None:
    """Of 8 bits, with padding, which is no element; the least numbers included."""
    body = (
        f"graph(x: {kind}[n, 3, 9, w]) -> (y) {{ y = MaxPool(x) {{kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]}} }}"
    )
    x = np.random.default_rng(5).integers(0, 256, (2, 3, 9, width), np.uint8).view(kind)
    for given in (x, np.full_like(x, np.iinfo(kind).min)):
        assert_same_bits(run_cpu(body, {"x": given}, isa=isa)[0], reference(body, {"x": given})[0])


def test_threads_and_batches_do_not_change_bits() -> None:
    """A plane is pooled alike wherever it stands."""
    body = "graph(x: float[n, 4, 30, 30]) -> (y) { y = AveragePool(x) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]} }"
    x = _x(3, 4, 30, 30)
    whole = run_cpu(body, {"x": x})[0]
    assert_same_bits(run_cpu(body, {"x": x}, threads=2)[0], whole)
    assert_same_bits(run_cpu(body, {"x": x[1:2]})[0], whole[1:2])


def test_what_follows_is_computed_in_the_store() -> None:
    """Such as a Relu."""
    body = "graph(x: float[1, 4, 30, 30]) -> (y) { m = AveragePool(x) {kernel_shape = [3, 3]} y = Relu(m) }"
    assert steps_of(body) == ["AveragePool+Relu"]
    assert_close(run_cpu(body, {"x": _x(1, 4, 30, 30)})[0], reference(body, {"x": _x(1, 4, 30, 30)}, double=True)[0], 2e-6)


def test_layouts_are_changed_only_for_who_needs_it() -> None:
    """A pool alone stays in NCHW, one beside a convolution, which reads the planes of the image, does not."""
    pool = "y = MaxPool(m) {kernel_shape = [2, 2]} }"
    alone = "graph(x: float[1, 4, 30, 30]) -> (y) { m = BatchNormalization(x, s, s, s, s) " + pool
    assert "Transpose" not in steps_of(alone.replace("{ m", "{ s: float[4] = [1, 2, 3, 4] m"), layout=Layout.NHWC)
    beside = "graph(x: float[1, 4, 30, 30]) -> (y) { w: float[8, 4, 9, 9] = ... 1 m = Conv(x, w) " + pool
    assert steps_of(beside, layout=Layout.NHWC).count("Transpose") == 1


def test_windows_longer_than_the_scratch_row_are_folded_with_channels_last() -> None:
    """Those of more than 4096 elements on the last axis."""
    body = "graph(x: float[1, 1, 2, 9000]) -> (y) { y = MaxPool(x) {kernel_shape = [1, 5000]} }"
    assert "compiled in NHWC only" in declined(body)[0]
    feeds = {"x": _x(1, 1, 2, 9000)}
    assert_same_bits(run_cpu(body, feeds, layout=Layout.NHWC)[0], reference(body, feeds)[0])
