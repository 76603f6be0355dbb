"""Windows on axes: padding, places, and what does not fit."""

import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.providers.cpu.kernels.windows import Place, Window, claim_window


def _window(kernel: tuple[int, ...], **attributes: object) -> Window:
    window = claim_window(Node("Conv", [], 1, attributes, version=22), kernel)
    assert isinstance(window, Window)
    return window


def test_defaults() -> None:
    """Strides and dilations are 1, padding is 0."""
    window = _window((3, 2))
    assert (window.strides, window.dilations, window.pads, window.is_padded) == ((1, 1), (1, 1), (0, 0, 0, 0), False)


def test_places_of_padded_axes() -> None:
    """Each axis has its own padding at both ends."""
    window = _window((3, 2), strides=(2, 1), dilations=(1, 3), pads=(1, 0, 2, 3))
    assert window.place((7, 5), (4, 5)) == [Place(1, 2, 4), Place(0, 3, 5)]


@pytest.mark.parametrize(("auto_pad", "begin", "end"), [("SAME_UPPER", 0, 1), ("SAME_LOWER", 1, 0)])
def test_same_padding(auto_pad: str, begin: int, end: int) -> None:
    """An odd zero goes to the end, or to the beginning."""
    assert _window((3,), strides=(2,), auto_pad=auto_pad).place((8,), (4,)) == [Place(begin, end, 4)]


def test_ceil_mode() -> None:
    """A last window may hang over the end, but does not begin behind it."""
    assert _window((3,), strides=(2,), ceil_mode=1).place((6,), (3,))[0].places == 3
    assert _window((1,), strides=(3,), ceil_mode=1).place((5,), (2,))[0].places == 2


def test_an_unexpected_number_of_places_is_refused() -> None:
    """The numbers are named."""
    with pytest.raises(InvalidArgument, match=r"axes of \[4\] elements has \[2\] places, expected at least 1 and \[3\]"):
        _window((3,)).place((4,), (3,))


def test_a_window_that_does_not_fit_is_refused() -> None:
    """Even where as many places as there are were expected: none."""
    with pytest.raises(InvalidArgument, match="has \\[0\\] places"):
        _window((5,)).place((4,), (0,))


@pytest.mark.parametrize(("kernel", "expected"), [((1, 1), True), ((1, 2), False)])
def test_a_point(kernel: tuple[int, ...], expected: bool) -> None:
    """A kernel of one element makes a product of matrices."""
    assert _window(kernel).is_point is expected
    assert not _window(kernel, strides=(1, 2)).is_point


@pytest.mark.parametrize(
    "attributes", [{"strides": (1,)}, {"strides": (0, 1)}, {"pads": (0, 0, -1, 0)}, {"auto_pad": "MIDDLE"}, {"dilations": (1, 0)}]
)
def test_bad_attributes_are_named(attributes: dict[str, object]) -> None:
    """Wrong lengths and numbers out of range are no window."""
    reason = claim_window(Node("Conv", [], 1, attributes, version=22), (3, 3))
    assert isinstance(reason, str)
    assert next(iter(attributes)) in reason
