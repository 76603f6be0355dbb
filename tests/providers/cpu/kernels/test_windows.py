"""Windows on axes: padding, places, and what does not fit."""

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.ops.views.window import Sliding, Window
from sardonyx.providers.cpu.kernels.windows import AxisWindow, is_padded, is_point, place_window, problem_of


def _window(kernel: tuple[int, ...], **attributes: object) -> Window[int]:
    return Sliding.of(Node("Conv", [], 1, attributes, version=22)).over(kernel)


def test_defaults() -> None:
    """Strides and dilations are 1, padding is 0."""
    window = _window((3, 2))
    assert (window.strides, window.dilations, window.pads, is_padded(window)) == ((1, 1), (1, 1), (0, 0, 0, 0), False)


def test_places_of_padded_axes() -> None:
    """Each axis has its own padding at both ends."""
    window = _window((3, 2), strides=(2, 1), dilations=(1, 3), pads=(1, 0, 2, 3))
    assert place_window(window, (7, 5), (4, 5)) == [AxisWindow(1, 2, 4), AxisWindow(0, 3, 5)]


@pytest.mark.parametrize(("auto_pad", "begin", "end"), [("SAME_UPPER", 0, 1), ("SAME_LOWER", 1, 0)])
def test_same_padding(auto_pad: str, begin: int, end: int) -> None:
    """An odd zero goes to the end, or to the beginning."""
    assert place_window(_window((3,), strides=(2,), auto_pad=auto_pad), (8,), (4,)) == [AxisWindow(begin, end, 4)]


def test_ceil_mode() -> None:
    """A last window may hang over the end, but does not begin behind it."""
    assert place_window(_window((3,), strides=(2,), ceil_mode=1), (6,), (3,))[0].places == 3
    assert place_window(_window((1,), strides=(3,), ceil_mode=1), (5,), (2,))[0].places == 2


def test_an_unexpected_number_of_places_is_refused() -> None:
    """The numbers are named."""
    with pytest.raises(InvalidArgument, match=r"axes of \[4\] elements has \[2\] places, expected at least 1 and \[3\]"):
        place_window(_window((3,)), (4,), (3,))


def test_a_window_that_does_not_fit_is_refused() -> None:
    """Even where as many places as there are were expected: none."""
    with pytest.raises(InvalidArgument, match="has \\[0\\] places"):
        place_window(_window((5,)), (4,), (0,))


@pytest.mark.parametrize(("kernel", "expected"), [((1, 1), True), ((1, 2), False)])
def test_a_point(kernel: tuple[int, ...], expected: bool) -> None:
    """A kernel of one element makes a product of matrices."""
    assert is_point(_window(kernel)) is expected
    assert not is_point(_window(kernel, strides=(1, 2)))


@pytest.mark.parametrize("name", ["strides", "dilations"])
def test_numbers_beyond_32_bits_are_named(name: str) -> None:
    """Kernels do not count that far; such a number is a mistake or an attack."""
    assert problem_of(_window((3, 3), **{name: (1, 1 << 31)})) == f"{name} [1, {1 << 31}] beyond 2^31"
    assert problem_of(_window((3, 3), **{name: (1, (1 << 31) - 1)})) is None


def test_a_kernel_without_taps_is_named() -> None:
    """As of filters that have no element."""
    assert problem_of(_window((3, 0))) == "a kernel of [3, 0]"
