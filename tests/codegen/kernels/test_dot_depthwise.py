"""Depthwise convolution of 8-bit integers: every tap, tail, sign and zero point gives the exact integers."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.depthwise import DepthwiseParams
from sardonyx.codegen.kernels.dot_depthwise import DotDepthwiseCode, pack_dot_depthwise, write_dot_depthwise
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


def _random(dtype: type, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return _RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@dataclasses.dataclass
class _Case:
    """An input (N, H, W, C), filters (C, 1, h, w), where the window lies, and what the zero points are."""

    x: Array
    w: Array
    strides: Sequence[int] = (1, 1)
    dilations: Sequence[int] = (1, 1)
    pads: Sequence[int] = (1, 1, 1, 1)
    x_zero: int = 3
    w_zero: int | Sequence[int] = 0

    def axes(self) -> tuple[WindowAxis, WindowAxis]:
        """Both axes."""
        _, H, W, C = self.x.shape
        places = [
            (size + self.pads[i] + self.pads[2 + i] - (self.w.shape[2 + i] - 1) * self.dilations[i] - 1) // self.strides[i] + 1
            for i, size in enumerate((H, W))
        ]
        steps = ((W * C, places[1] * C), (C, C))
        outer, inner = (
            WindowAxis(size, places[i], self.strides[i], self.dilations[i], self.pads[i], self.w.shape[2 + i], *steps[i])
            for i, size in enumerate((H, W))
        )
        return outer, inner

    def exact(self) -> Array:
        """The integers of the definition."""
        outer, inner = self.axes()
        edges = ((0, 0), (self.pads[0], self.pads[2]), (self.pads[1], self.pads[3]), (0, 0))
        x = np.pad(self.x.astype(np.int64) - self.x_zero, edges)
        w = self.w.astype(np.int64) - np.reshape(self.w_zero, (-1, 1, 1, 1))
        result = np.zeros((len(x), outer.places, inner.places, x.shape[-1]), np.int64)
        for i in range(w.shape[2]):
            for j in range(w.shape[3]):
                rows = slice(i * outer.dilation, i * outer.dilation + (outer.places - 1) * outer.stride + 1, outer.stride)
                columns = slice(j * inner.dilation, j * inner.dilation + (inner.places - 1) * inner.stride + 1, inner.stride)
                result += x[:, rows, columns] * w[:, 0, i, j]
        return result.astype(np.int32)


def _run(target: Target, case: _Case, *, threads: int = 1) -> Array:
    """The result, with guard elements around it that must stay."""
    lanes, (outer, inner) = target.lanes(32), case.axes()
    signed, C = bool(case.x.dtype == np.int8), len(case.w)
    shift = 0 if case.w.dtype == np.int8 else -128
    zeros = np.broadcast_to(np.asarray(case.w_zero, np.int64) + shift, (C,))
    code = DotDepthwiseCode(inner.taps, inner.stride, inner.dilation, signed, bool(zeros.any()), C % lanes == 0)
    engine, module = Engine(target), Module(target)
    write_dot_depthwise(module, "depthwise", code, I32)
    engine.add(module)
    stored, x_zero = case.w.astype(np.int64).reshape(C, -1) + shift, case.x_zero + 128 * signed
    offsets, factors = np.zeros(-(-C // lanes) * lanes, np.int32), np.zeros(-(-C // lanes) * lanes, np.int32)
    offsets[:C], factors[:C] = x_zero * (stored.shape[1] * zeros - stored.sum(axis=1)), -zeros
    params = DepthwiseParams.blocked(target, len(case.x), C, (outer, inner), threads=threads)
    shape = (len(case.x), outer.places, inner.places, C)
    guarded = np.full(np.prod(shape) + 64, 7, np.int32)
    border = np.full(lanes, case.x_zero, case.x.dtype)
    arrays = [case.x, pack_dot_depthwise(case.w, lanes), guarded, border, offsets, factors]
    call(engine, "depthwise", arrays, params.words(), 0, params.tasks())
    assert (guarded[np.prod(shape) :] == 7).all()
    return guarded[: np.prod(shape)].reshape(shape)


@pytest.mark.parametrize("w", [np.int8, np.uint8])
@pytest.mark.parametrize("x", [np.int8, np.uint8])
@pytest.mark.parametrize("w_zero", [0, 127, -128])
def test_signs_and_zero_points(target: Target, x: type, w: type, w_zero: int) -> None:
    """Each side may be signed or not; the padding stands for the input's zero point."""
    case = _Case(_random(x, 2, 5, 11, 21), _random(w, 21, 1, 3, 3), x_zero=100, w_zero=w_zero % 256 if w is np.uint8 else w_zero)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("C", [1, 3, 4, 5, 8, 15, 16, 17, 33])
def test_tails_of_channels(target: Target, C: int) -> None:
    """Every number of channels, and nothing else is written; filters may have a zero point each."""
    case = _Case(_random(np.uint8, 1, 4, 13, C), _random(np.uint8, C, 1, 3, 3), w_zero=_random(np.uint8, C).tolist())
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("W", [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 25])
@pytest.mark.parametrize("stride", [1, 2])
def test_tails_of_places(target: Target, W: int, stride: int) -> None:
    """Places around those that go together."""
    case = _Case(_random(np.int8, 2, 3, W, 5), _random(np.int8, 5, 1, 3, 3), strides=(stride, stride))
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("taps", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13])
def test_taps(target: Target, taps: int) -> None:
    """Windows of any length: short ones by quads, long ones tap by tap."""
    case = _Case(_random(np.uint8, 1, 4, 27, 19), _random(np.int8, 19, 1, 2, taps), pads=(1, taps // 2, 0, taps // 3))
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize(
    ("strides", "dilations", "pads"),
    [
        ((1, 3), (2, 1), (2, 0, 1, 3)),
        ((2, 1), (1, 2), (0, 4, 0, 4)),
        ((1, 2), (1, 3), (1, 3, 1, 3)),
        ((1, 30), (1, 1), (0, 0, 0, 0)),
    ],
)
@pytest.mark.parametrize("taps", [3, 5])
def test_windows(target: Target, strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int], taps: int) -> None:
    """Strides, dilations and unequal padding on each axis."""
    case = _Case(_random(np.uint8, 2, 9, 61, 18), _random(np.int8, 18, 1, 3, taps), strides, dilations, pads, w_zero=5)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize(("x", "w"), [(255, -128), (255, 127), (0, -128)])
def test_extreme_sums(target: Target, x: int, w: int) -> None:
    """Sums of the greatest products are exact: no part of them is saturated."""
    case = _Case(np.full((1, 9, 9, 17), x, np.uint8), np.full((17, 1, 9, 9), w, np.int8), x_zero=255 - x)
    assert (_run(target, case) == case.exact()).all()


def test_threads_share_places(target: Target) -> None:
    """Tasks of few rows, or of parts of a row, give the same."""
    case = _Case(_random(np.uint8, 1, 3, 50, 20), _random(np.int8, 20, 1, 3, 3))
    assert (_run(target, case, threads=8) == case.exact()).all()


def test_no_place(target: Target) -> None:
    """An empty batch is nothing to do."""
    case = _Case(_random(np.uint8, 0, 4, 4, 5), _random(np.int8, 5, 1, 3, 3))
    assert _run(target, case).shape == (0, 4, 4, 5)
