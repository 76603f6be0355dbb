"""The copy with a border, in front of convolutions of few channels."""

import pytest
from onnx import helper
from support.channels_last import model_of, program_steps, random

from sardonyx.codegen.emit.types import F32, I8, U8
from sardonyx.codegen.target import host_target
from sardonyx.providers.cpu.kernels.conv_border import FEW_CHANNELS, BorderKernel


@pytest.mark.parametrize(("C", "count"), [(FEW_CHANNELS, 1), (FEW_CHANNELS + 1, 0)])
def test_few_channels_are_copied(C: int, count: int) -> None:
    """An input of few channels is copied for a kernel too long to be read from planes; another is not."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 6, 1, 6])
    steps = program_steps(model_of([node], {"x": ["n", C, "h", "w"]}, {"w": random(24, C, 3, 12)}))
    assert sum("border" in step for step in steps) == count


def test_kernels_of_other_elements_have_other_names() -> None:
    """Rank, element and whether the border is read are part of the name."""
    kernels = [
        BorderKernel(1),
        BorderKernel(2),
        BorderKernel(2, U8),
        BorderKernel(2, I8),
        BorderKernel(2, U8, True),
        BorderKernel(2, F32, True),
    ]
    assert len({kernel.symbol(host_target()) for kernel in kernels}) == len(kernels)
