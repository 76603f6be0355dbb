"""Convolutions of planes: borders on all sides, tails of places and channels, chains, the same bits wherever a place lies."""

import dataclasses

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.conv import conv_tiling, widths_for
from sardonyx.codegen.kernels.images.planes import MOST_RUNS, MOST_TAPS, PlanesParams, pack_planes, write_planes_conv
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


def _random(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


def _add_bias(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
    return sums + b.buffer(3, F32).load(column, span) + b.buffer(4, F32).load(place, span)


@dataclasses.dataclass
class _Case:
    """An input (N, C, H, W), filters (M, C, KH, KW), strides, and padding above, left, below, right."""

    x: Array
    w: Array
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def places(self) -> tuple[int, int]:
        """The output's spatial sizes."""
        (H, W), (KH, KW) = self.x.shape[2:], self.w.shape[2:]
        top, left, bottom, right = self.pads
        return (H + top + bottom - KH) // self.strides[0] + 1, (W + left + right - KW) // self.strides[1] + 1

    def params(self, threads: int = 1) -> PlanesParams:
        """The kernel's parameters."""
        (N, C, H, W), (M, _, KH, KW), (high, wide) = self.x.shape, self.w.shape, self.places
        axes = (
            WindowAxis(H, high, self.strides[0], 1, self.pads[0], KH, W, wide * M),
            WindowAxis(W, wide, self.strides[1], 1, self.pads[1], KW, 1, M),
        )
        return PlanesParams.blocked(N, M, C, axes, image=C * H * W, plane=H * W, threads=threads)

    def engine(self, target: Target, *, epilogue: bool = False) -> Engine:
        """An engine with its kernel."""
        module, engine = Module(target), Engine(target)
        write_planes_conv(
            module,
            "planes",
            taps=self.w.shape[3],
            stride=self.strides[1],
            epilogue=_add_bias if epilogue else None,
            widths=widths_for(target, len(self.w)),
        )
        engine.add(module)
        return engine

    def run(self, engine: Engine, *operands: Array, threads: int = 1) -> Array:
        """The result, with guard elements after it that must stay."""
        params, shape = self.params(threads), (len(self.x), *self.places, len(self.w))
        size = int(np.prod(shape))
        guarded = np.full(size + 64, 7, np.float32)
        packed = pack_planes(self.w, conv_tiling(engine.target).panel)
        call(engine, "planes", [self.x, packed, guarded, *operands], params.words(), 0, params.tasks())
        assert (guarded[size:] == 7).all()
        return guarded[:size].reshape(shape)

    def exact(self) -> Array:
        """The result in float64."""
        top, left, bottom, right = self.pads
        x = np.pad(self.x.astype(np.float64), [(0, 0), (0, 0), (top, bottom), (left, right)])
        (high, wide), (down, across) = self.places, self.strides
        result = np.zeros((len(x), high, wide, len(self.w)))
        for i in range(self.w.shape[2]):
            for j in range(self.w.shape[3]):
                seen = x[:, :, i : i + (high - 1) * down + 1 : down, j : j + (wide - 1) * across + 1 : across]
                result += np.einsum("nchw,mc->nhwm", seen, self.w[:, :, i, j].astype(np.float64))
        return result


def _check(target: Target, case: _Case) -> None:
    found, exact = case.run(case.engine(target)), case.exact()
    assert np.sqrt(np.mean(np.square(found - exact)) / max(np.mean(np.square(exact)), 1e-30)) < 3e-7


@pytest.mark.parametrize("M", [1, 8, 15, 16, 17, 32, 48, 50, 64, 65, 96, 130])
def test_tails_of_output_channels(target: Target, M: int) -> None:
    """Every number of vectors, whole or not, and several panels."""
    _check(target, _Case(_random(2, 3, 9, 37), _random(M, 3, 3, 3), (2, 2), (1, 1, 1, 1)))


@pytest.mark.parametrize("W", [3, 4, 7, 15, 16, 17, 18, 31, 34, 71])
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_tails_of_rows(target: Target, W: int, stride: int) -> None:
    """Rows shorter than a tile, and of any length beyond."""
    _check(target, _Case(_random(1, 2, 5, W), _random(16, 2, 3, 3), (1, stride), (1, 1, 1, 1)))


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (3, 0, 0, 0), (0, 5, 0, 0), (0, 0, 4, 0), (0, 0, 0, 20), (9, 9, 9, 9)])
def test_padding(target: Target, pads: tuple[int, int, int, int]) -> None:
    """On each side, also more than a window, and none."""
    _check(target, _Case(_random(1, 3, 8, 21), _random(20, 3, 3, 5), (1, 2), pads))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_pieces_of_rows_give_the_same_bits(target: Target, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is shared by threads where rows are few, and cut where it is long, at whole tiles."""
    case = _Case(_random(1, 2, 1, 700), _random(40, 2, 1, 5), (1, 2), (0, 2, 0, 2))
    engine = case.engine(target)
    whole = case.run(engine)
    assert case.params().tasks() == 1
    monkeypatch.setattr("sardonyx.codegen.kernels.images.planes.TASK_PRODUCTS", 1 << 14)
    assert case.params(threads).tasks() == 8
    assert case.run(engine, threads=threads).tobytes() == whole.tobytes()
    monkeypatch.undo()
    assert (case.params(threads).tasks() > 1) is (threads > 1)
    assert case.run(engine, threads=threads).tobytes() == whole.tobytes()


def test_padding_that_skips_elements(target: Target) -> None:
    """Negative padding drops rows and columns."""
    case = _Case(_random(1, 2, 9, 20), _random(16, 2, 3, 3))
    axes = (WindowAxis(9, 5, 1, 1, -2, 3, 20, 15 * 16), WindowAxis(20, 15, 1, 1, -3, 3, 1, 16))
    params = PlanesParams.blocked(1, 16, 2, axes, image=360, plane=180)
    found = np.zeros((1, 5, 15, 16), np.float32)
    packed = pack_planes(case.w, conv_tiling(target).panel)
    call(case.engine(target), "planes", [case.x, packed, found], params.words(), 0, params.tasks())
    np.testing.assert_allclose(found, case.exact()[:, 2:, 3:], rtol=0, atol=1e-5)


@pytest.mark.parametrize(("C", "KH", "KW"), [(1, 1, 1), (1, 1, 10), (3, 7, 7), (4, 11, MOST_TAPS), (MOST_RUNS, 1, 3)])
def test_kernels(target: Target, C: int, KH: int, KW: int) -> None:
    """One chain and several, as long as is allowed."""
    _check(target, _Case(_random(1, C, 13, 30), _random(24, C, KH, KW), (2, 2), (KH // 2, KW // 2, KH // 2, KW // 2)))


def test_the_epilogue_sees_each_element_once(target: Target) -> None:
    """A bias for each channel, and a residual, over sums of several chains."""
    case = _Case(_random(2, 3, 12, 25), _random(40, 3, 7, 7), (2, 2), (3, 3, 3, 3))
    bias, residual = _random(40), _random(2, *case.places, 40)
    found = case.run(case.engine(target, epilogue=True), bias, residual)
    np.testing.assert_allclose(found, case.exact() + bias + residual, rtol=0, atol=5e-5)


def test_threads_images_and_places_do_not_change_bits(target: Target) -> None:
    """The same windows give the same numbers, in any task, image and tile, from the input and from a copy."""
    x = _random(1, 3, 6, 40)
    case = _Case(np.concatenate([x, x]), _random(33, 3, 3, 3), (1, 1), (1, 1, 1, 1))
    engine = case.engine(target)
    both = case.run(engine)
    assert both[0].tobytes() == both[1].tobytes()
    assert both.tobytes() == case.run(engine, threads=3).tobytes()
    shifted = dataclasses.replace(case, x=x[:, :, :, 5:].copy(), pads=(1, 0, 1, 1)).run(engine)
    assert shifted[0].tobytes() == both[0, :, 6:].tobytes()


def test_nothing_is_read_outside_of_the_planes(target: Target) -> None:
    """NaN around the image reaches no place."""
    around = np.full((1, 2, 7, 30), np.nan, np.float32)
    guarded = np.full(around.size + 256, np.nan, np.float32)
    case = _Case(_random(1, 2, 7, 30), _random(16, 2, 3, 3), (1, 1), (1, 1, 1, 1))
    guarded[128 : 128 + around.size] = case.x.reshape(-1)
    inside = dataclasses.replace(case, x=guarded[128 : 128 + around.size].reshape(around.shape))
    assert np.isfinite(inside.run(case.engine(target))).all()


def test_no_image_makes_no_task(target: Target) -> None:
    """There is nothing to compute."""
    assert _Case(_random(0, 3, 9, 9), _random(8, 3, 3, 3)).params().tasks() == 0
