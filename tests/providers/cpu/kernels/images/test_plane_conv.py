"""Convolutions of few channels on the CPU provider whose channels come first."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close, assert_same_bits, cpu_session, reference, run_cpu, steps_of, symbols_of

from sardonyx.dtypes import Array
from sardonyx.provider import Layout


def _x(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def _body(filters: tuple[int, ...], attributes: str, inputs: str = "x: float[n, c, h, w]") -> str:
    numbers = ", ".join(f"{number:.4f}" for number in np.random.default_rng(1).standard_normal(int(np.prod(filters))))
    bias = ", ".join(f"{number}.5" for number in range(filters[0]))
    shape = ", ".join(map(str, filters))
    constants = f"w: float[{shape}] = [{numbers}] b: float[{filters[0]}] = [{bias}]"
    return f"graph({inputs}) -> (y) {{ {constants} y = Conv(x, w, b) {{{attributes}}} }}"


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(
    ("filters", "attributes"),
    [
        ((6, 1, 3, 3), "group = 6, pads = [1, 1, 1, 1]"),
        ((12, 1, 3, 3), "group = 6, strides = [2, 2], pads = [1, 1, 1, 1]"),
        ((6, 2, 3, 5), "group = 3, strides = [1, 3], pads = [0, 2, 1, 0], dilations = [2, 1]"),
        ((4, 6, 3, 3), 'auto_pad = "SAME_UPPER"'),
        ((7, 6, 2, 2), 'auto_pad = "SAME_LOWER", strides = [2, 1]'),
    ],
)
def test_two_axes(filters: tuple[int, ...], attributes: str, isa: str) -> None:
    """One session serves every batch and image size, and nothing is transposed."""
    body = _body(filters, attributes, "x: float[n, 6, h, w]")
    session = cpu_session(body, isa=isa, layout=Layout.NHWC)
    for shape in ((2, 6, 9, 7), (1, 6, 12, 50), (0, 6, 9, 9), (1, 6, 70, 300)):
        feeds = {"x": _x(*shape)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


def test_one_axis() -> None:
    """Sequences."""
    body = _body((4, 1, 31), "group = 4, pads = [15, 15]", "x: float[n, 4, t]")
    for length in (5, 400, 3000):
        feeds = {"x": _x(2, 4, length)}
        assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


def test_three_axes() -> None:
    """Volumes."""
    body = _body((6, 1, 3, 2, 3), "group = 3, strides = [2, 1, 1], pads = [1, 1, 1, 1, 0, 1]", "x: float[n, 3, d, h, w]")
    session = cpu_session(body, layout=Layout.NHWC)
    for shape in ((2, 3, 5, 6, 40), (1, 3, 1, 1, 1)):
        feeds = {"x": _x(*shape)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


def test_filters_may_be_computed() -> None:
    """Of one channel each."""
    body = "graph(x: float[1, 3, 8, 9], w: float[3, 1, 3, 3]) -> (y) { y = Conv(x, w) {group = 3} }"
    feeds = {"x": _x(1, 3, 8, 9), "w": _x(3, 1, 3, 3)}
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)
    assert symbols_of(body)[0].startswith("plane_conv")


def test_what_follows_is_computed_in_the_store() -> None:
    """Element by element, with numbers."""
    body = (
        _body((3, 1, 3, 3), "group = 3", "x: float[1, 3, 9, 9]").replace("y = Conv", "z = Conv")[:-1] + "r = Relu(z) y = Exp(r) }"
    )
    assert steps_of(body, layout=Layout.NHWC) == ["Conv+Relu+Exp"]
    feeds = {"x": _x(1, 3, 9, 9)}
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


def test_threads_and_batches_do_not_change_bits() -> None:
    """A plane is convolved alike wherever it stands."""
    body = _body((4, 1, 3, 3), "group = 4, pads = [1, 1, 1, 1]", "x: float[n, 4, 90, 90]")
    x = _x(3, 4, 90, 90)
    whole = run_cpu(body, {"x": x})[0]
    assert_same_bits(run_cpu(body, {"x": x}, threads=2)[0], whole)
    assert_same_bits(run_cpu(body, {"x": x[1:2].copy()})[0], whole[1:2].copy())


def test_other_convolutions_take_it_along() -> None:
    """Beside one of many channels all are computed with the channels last."""
    body = (
        "graph(x: float[1, 16, 9, 9], w: float[16, 1, 3, 3], v: float[16, 16, 3, 3]) -> (y) "
        "{ z = Conv(x, w) {group = 16} y = Conv(z, v) }"
    )
    assert steps_of(body, layout=Layout.NHWC)[0] == "Transpose"


@pytest.mark.parametrize(
    ("filters", "attributes"),
    [((2, 9, 3, 3), ""), ((2, 1, 3, 3), "group = 2, strides = [5, 1]"), ((2, 1, 2, 2), "group = 2, dilations = [99, 99]")],
)
def test_what_is_computed_with_the_channels_last(filters: tuple[int, ...], attributes: str) -> None:
    """Many channels, long strides, windows that a tile does not see."""
    channels = filters[1] * (2 if "group" in attributes else 1)
    body = _body(filters, attributes, f"x: float[1, {channels}, 200, 200]")
    assert steps_of(body, layout=Layout.NHWC)[0] == "Transpose"
    feeds = {"x": _x(1, channels, 200, 200)}
    assert_close(run_cpu(body, feeds, layout=Layout.NHWC)[0], reference(body, feeds, double=True)[0], 3e-6)


@pytest.mark.parametrize("isa", LEVELS)
def test_results_of_another_type_lie_close_together(isa: str) -> None:
    """What follows in the group decides how wide an element is, of every channel and row."""
    body = _body((6, 2, 3, 3), "group = 2, pads = [1, 1, 1, 1]", "x: float[n, 4, h, w]").replace("y = Conv", "c = Conv")
    body = body.replace("1]} }", "1]}\n z: float[1] = [40]\n s = Mul(c, z)\n y = Cast(s) {to = 2} }")
    feeds = {"x": _x(2, 4, 9, 21)}
    found, expected = cpu_session(body, isa=isa, layout=Layout.NHWC).run(None, feeds)[0], reference(body, feeds)[0]
    assert np.abs(found.astype(np.int64) - expected.astype(np.int64)).max() <= 1
    assert np.unique(expected).size > 50
