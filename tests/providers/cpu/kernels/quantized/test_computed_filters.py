"""The steps of filters that a run makes; what convolutions compute with them is in test_qconv.py."""

import itertools

import numpy as np
from onnx import helper
from support.cpu_run import cpu_model_session
from support.quantized import quantized_model, random_bytes

from sardonyx.codegen.target import host_target
from sardonyx.formats.models import load
from sardonyx.provider import Layout
from sardonyx.providers.cpu.kernels.quantized.computed_filters import PackFiltersKernel


def test_a_kernel_is_named_by_all_that_its_code_depends_on() -> None:
    """Width, signs, how words are cut, and instructions."""
    choices = itertools.product((16, 32), (False, True), (False, True), (0, 8))
    kernels = [PackFiltersKernel(*choice) for choice in choices]
    assert len({kernel.symbol(host_target()) for kernel in kernels}) == len(kernels)


def test_filters_are_packed_in_each_run() -> None:
    """Filters of one run leave nothing behind for the next, and several threads pack the same bytes."""
    node = helper.make_node("ConvInteger", ["x", "w"], ["y"])
    content = quantized_model([node], {"x": (np.uint8, [1, 5, 4, 4]), "w": (np.int8, [150, 5, 3, 3])}, {}, np.int32)
    x = random_bytes(np.uint8, 1, 5, 4, 4)
    sessions = [cpu_model_session(load(content), threads=threads, layout=Layout.NHWC) for threads in (1, 2)]
    for seed in (1, 2):
        w = random_bytes(np.int8, 150, 5, 3, 3, seed=seed)
        windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32), (3, 3), (2, 3))
        expected = np.einsum("nchwij,mcij->nmhw", windows, w.astype(np.int32))
        for session in sessions:
            np.testing.assert_array_equal(session.run(None, {"x": x, "w": w})[0], expected)
