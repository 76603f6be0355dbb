"""Facts about the places of sliding windows."""

from __future__ import annotations

import pytest
from support.infer_op import A

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim
from sardonyx.ir.shape import evaluate
from sardonyx.ops.shapes.windows import Window, slide, slide_back


def places(size: Dim, kernel: int, stride: int = 1, pads: tuple[int, int] = (0, 0), **options: object) -> Dim:
    window = Window.of((kernel,), (stride,), None, pads, **options)  # type: ignore[arg-type]  # options by name
    return slide(window, (size,))[0]


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


def test_lists_of_wrong_length_are_refused() -> None:
    """Each list needs an element for each spatial axis, pads two."""
    with pytest.raises(InvalidGraph, match="strides=.* expected 1 for 1 spatial axes"):
        Window.of((3,), (1, 1), None, None)
    with pytest.raises(InvalidGraph, match="below 1"):
        Window.of((3,), (0,), None, None)


def test_sliding_back_inverts_sliding() -> None:
    """The size that ConvTranspose makes is one over which the window has as many places again."""
    window = Window.of((3,), (2,), None, (1, 1))
    assert slide(window, slide_back(window, (A,), (0,))) == (A,)
    assert slide_back(window, (5,), (1,)) == (10,)
