"""Views of convolutions."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ir import symbol
from sardonyx.ops.views.conv import Conv, ConvTranspose


def test_a_convolution_has_one_group_by_default() -> None:
    """The window is that of the filters."""
    view = Conv.of(node("Conv", 11))
    assert view.group == 1
    assert view.window((3, 3)).kernel == (3, 3)


def test_the_kernel_shape_counts_where_filters_are_symbolic() -> None:
    """The attribute says what the filters' shape does not."""
    assert Conv.of(node("Conv", 11, kernel_shape=[3])).window((symbol("k"),)).kernel == (3,)


@pytest.mark.parametrize("kernel", [(5,), (3, 3)])
def test_a_kernel_shape_that_differs_from_the_filters_is_refused(kernel: tuple[int, ...]) -> None:
    """The message shows both."""
    with pytest.raises(InvalidGraph, match=r"kernel_shape=\[3\] for filters of spatial shape \["):
        Conv.of(node("Conv", 11, kernel_shape=[3])).window(kernel)


@pytest.mark.parametrize("view", [Conv, ConvTranspose])
def test_groups_are_counted(view: type[Conv | ConvTranspose]) -> None:
    """There is at least one."""
    with pytest.raises(InvalidGraph, match="group=0, expected at least 1"):
        view.of(node("Conv", 11, group=0))


def test_a_transposed_convolution_adds_nothing_by_default() -> None:
    """The padding of the output is 0 along each axis, and its shape follows from the pads."""
    view = ConvTranspose.of(node("ConvTranspose", 11))
    assert (view.padding(2), view.output_shape) == ((0, 0), ())


def test_the_output_padding_has_a_number_for_each_axis() -> None:
    """Another number of them is refused."""
    with pytest.raises(InvalidGraph, match=r"output_padding=\[1\] has 1 elements, expected 2"):
        ConvTranspose.of(node("ConvTranspose", 11, output_padding=[1])).padding(2)
