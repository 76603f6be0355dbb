"""Facts about the places of sliding windows."""

from __future__ import annotations

import pytest
from support.infer_op import A

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim
from sardonyx.ir.shape import evaluate
from sardonyx.ops.shapes.windows import slide, slide_back
from sardonyx.ops.views.window import Window


def places(
    size: Dim, kernel: int, stride: int = 1, pads: tuple[int, int] = (0, 0), auto_pad: str = "NOTSET", ceil_mode: bool = False
) -> Dim:
    return slide(Window((kernel,), (stride,), (1,), pads, auto_pad, ceil_mode), (size,))[0]


def brute(size: int, kernel: int, stride: int, pads: tuple[int, int], ceil_mode: bool) -> int:
    """Count begins of windows that fit, or with `ceil_mode` begin before the end padding."""
    total = size + sum(pads)
    fits = [start for start in range(0, total, stride) if start + kernel <= total]
    if ceil_mode and fits and fits[-1] + kernel < total and fits[-1] + stride < size + pads[0]:
        fits.append(fits[-1] + stride)
    return len(fits)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_counts_agree_with_counting(kernel: int, stride: int, ceil_mode: bool) -> None:
    """The formula gives as many places as there are, for integers and for symbols."""
    for size in range(kernel, 14):
        for pads in ((0, 0), (1, 1), (0, 1)):
            if max(pads) >= kernel:
                continue
            expected = brute(size, kernel, stride, pads, ceil_mode)
            assert places(size, kernel, stride, pads, ceil_mode=ceil_mode) == expected
            assert evaluate(places(A, kernel, stride, pads, ceil_mode=ceil_mode), {"a": size}) == expected


def test_same_padding_depends_on_the_stride_alone() -> None:
    """SAME_UPPER and SAME_LOWER give the size divided by the stride, rounded up."""
    assert places(7, 3, 2, auto_pad="SAME_UPPER") == 4
    assert places(2 * A, 5, 2, auto_pad="SAME_LOWER") == A


def test_window_larger_than_the_input_is_refused() -> None:
    """A window that fits nowhere is an error with all numbers."""
    with pytest.raises(InvalidGraph, match="a window of 5 does not fit in the 3 elements of spatial axis 0"):
        places(3, 5)


def test_sliding_back_inverts_sliding() -> None:
    """The size that ConvTranspose makes is one over which the window has as many places again."""
    window = Window((3,), (2,), (1,), (1, 1))
    assert slide(window, slide_back(window, (A,), (0,))) == (A,)
    assert slide_back(window, (5,), (1,)) == (10,)


@pytest.mark.parametrize(("pads", "places"), [((1, 1), 0), ((2, 2), 2), ((3, 3), 4)])
def test_an_axis_without_elements_has_the_places_of_its_padding(pads: tuple[int, int], places: int) -> None:
    """As the standard's formula counts them."""
    assert slide(Window((3,), (1,), (1,), pads), (0,)) == (places,)


def test_a_window_that_fits_no_padding_is_an_error() -> None:
    """Also on an axis without elements."""
    with pytest.raises(InvalidGraph, match="a window of 3 does not fit in the 0 elements"):
        slide(Window((3,), (1,), (1,), (0, 0)), (0,))


@pytest.mark.parametrize(("size", "kernel", "stride", "places"), [(1, 2, 2, 1), (2, 3, 2, 1), (1, 3, 3, 1), (1, 5, 5, 1)])
def test_a_window_larger_than_the_axis_may_hang_over_its_end(size: int, kernel: int, stride: int, places: int) -> None:
    """In ceil mode, where the formula gives a place."""
    assert slide(Window((kernel,), (stride,), (1,), (0, 0), ceil_mode=True), (size,)) == (places,)
    with pytest.raises(InvalidGraph, match="does not fit"):
        slide(Window((kernel,), (1,), (1,), (0, 0), ceil_mode=True), (size,))
