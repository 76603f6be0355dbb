"""Convolutions into few channels: every number of them, tails of runs, padding."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.conv import ConvParams
from sardonyx.codegen.kernels.conv_narrow import MOST_COLUMNS, pack_narrow, write_narrow_conv
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


def _random(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


def _add_bias(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
    return sums + b.buffer(4, F32).load(column, span) + b.buffer(5, F32).load(place, span)


@pytest.mark.parametrize("M", range(1, MOST_COLUMNS + 1))
@pytest.mark.parametrize("C", [1, 4, 7, 8, 15, 16, 17, 32, 37])
def test_channels(target: Target, M: int, C: int) -> None:
    """3 x 2 taps over an odd number of places with a border, a bias for each channel and a residual."""
    module, engine = Module(target), Engine(target)
    write_narrow_conv(module, "narrow", 2, M, padded=True, epilogue=_add_bias)
    engine.add(module)
    x, w, bias, residual = _random(2, 5, 7, C), _random(M, C, 3, 2), _random(M), _random(2, 5, 8, M)
    axes = [WindowAxis(5, 5, 1, 1, 1, 3, 7 * C, 8 * M), WindowAxis(7, 8, 1, 1, 1, 2, C, M)]
    params = ConvParams.blocked(target, 2, M, C, axes, image=35 * C, out_image=40 * M)
    guarded = np.full(residual.size + 64, 7, np.float32)
    arrays = [x, pack_narrow(w), guarded, np.zeros(C, np.float32), bias, residual]
    call(engine, "narrow", arrays, params.words(), 0, params.tasks())
    padded = np.pad(x.astype(np.float64), [(0, 0), (1, 1), (1, 1), (0, 0)])
    parts = [padded[:, i : i + 5, j : j + 8] @ w[:, :, i, j].T.astype(np.float64) for i in range(3) for j in range(2)]
    expected = sum(parts) + bias + residual
    np.testing.assert_allclose(guarded[: residual.size].reshape(residual.shape), expected, rtol=0, atol=2e-5)
    assert (guarded[residual.size :] == 7).all()


def test_filters_are_packed_channels_last() -> None:
    """One output channel after the other, each as the input lies."""
    filters = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    assert pack_narrow(filters).tolist() == [[[0, 2, 4], [1, 3, 5]], [[6, 8, 10], [7, 9, 11]]]
