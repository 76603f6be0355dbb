"""Constants along the channels of a convolution."""

import numpy as np
import pytest

from sardonyx.ir import Node, Tensor
from sardonyx.optimize.helpers.channels import channels_of, per_channel


@pytest.mark.parametrize("shape", [(), (1,), (4, 1, 1), (1, 4, 1, 1), (1, 1, 1, 1)])
def test_constant_along_the_channels_is_accepted(shape):
    """A scalar, or one number per channel, gives a number for each channel."""
    found = per_channel(Tensor.from_array(np.ones(shape, np.float32)), 4, 4)
    assert found is not None
    assert found.shape == (4,)


@pytest.mark.parametrize("shape", [(4,), (4, 1), (2, 4, 1, 1), (1, 3, 1, 1), (1, 1, 4, 1, 1)])
def test_constant_along_other_axes_is_not(shape):
    """A constant that varies along another axis, or has more axes, is refused."""
    assert per_channel(Tensor.from_array(np.ones(shape, np.float32)), 4, 4) is None


def test_channels_of_both_convolutions():
    """Conv has its output channels in front, ConvTranspose behind, per group."""
    weights = Tensor.from_array(np.zeros((4, 3, 1), np.float32))
    assert channels_of(Node("Conv", [], 1, version=11), weights) == 4
    assert channels_of(Node("ConvTranspose", [], 1, {"group": 2}, version=11), weights) == 6
