"""The implicit product of 8-bit integers: every tap, tail, group, sign and zero point gives the exact integers."""

import dataclasses
from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import I8, I32
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.conv import ConvParams
from sardonyx.codegen.kernels.conv_rows import BLOCK_ROWS
from sardonyx.codegen.kernels.dot_conv import (
    DotConvCode,
    dot_tiling,
    dot_widths,
    fold_lanes,
    write_dot_conv,
)
from sardonyx.codegen.kernels.quantized.dot_filters import offset_places, pack_dot_filters, spare_bytes
from sardonyx.codegen.kernels.quantized.pairs import cut_lanes
from sardonyx.codegen.kernels.quantized.wide_rows import widens_rows
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)
_TARGETS = [
    *map(host_target, available_levels()),
    emulated_target("amx", ["amx-tile", "amx-int8", "avx512vnni"]),
    emulated_target("avx2", ["avxvnni"]),
    emulated_target("avx512", ["avx512bw"]),
]


@pytest.fixture(scope="module", params=_TARGETS, ids=lambda target: target.isa)
def target(request: pytest.FixtureRequest) -> Target:
    """Each level of this machine, and matrix tiles."""
    found: Target = request.param
    return found


def _random(dtype: type, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return _RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@dataclasses.dataclass
class _Case:
    """An input (N, spatial…, C), filters (M, C / groups, kernel…), where the window lies, and what the zero points are."""

    x: Array
    w: Array
    strides: Sequence[int] = (1, 1)
    dilations: Sequence[int] = (1, 1)
    pads: Sequence[int] = (0, 0, 0, 0)
    groups: int = 1
    merged: bool = False
    x_zero: int = 3
    w_zero: int | Sequence[int] = 0

    @property
    def depth(self) -> int:
        """Elements of one run."""
        return int(self.w.shape[1]) * (self.w.shape[-1] if self.merged else 1)

    def widens(self, target: Target) -> bool:
        """Whether rows are widened first, on a target that multiplies pairs."""
        return widens_rows(target, self.depth, prod(self.w.shape[1:]) // max(self.depth, 1))

    def places(self) -> list[int]:
        """The output's spatial sizes."""
        rank = self.w.ndim - 2
        return [
            (self.x.shape[1 + i] + self.pads[i] + self.pads[rank + i] - (self.w.shape[2 + i] - 1) * self.dilations[i] - 1)
            // self.strides[i]
            + 1
            for i in range(rank)
        ]

    def axes(self) -> list[WindowAxis]:
        """Every axis, with one tap for the last where its taps are one run."""
        rank, found = self.w.ndim - 2, []
        sizes, places = self.x.shape[1:-1], self.places()
        for i in range(rank):
            in_step, out_step = prod(self.x.shape[i + 2 :]), prod(places[i + 1 :]) * self.w.shape[0]
            taps = 1 if self.merged and i == rank - 1 else self.w.shape[2 + i]
            found.append(WindowAxis(sizes[i], places[i], self.strides[i], self.dilations[i], self.pads[i], taps, in_step, out_step))
        return found

    def params(self, target: Target, threads: int = 1) -> ConvParams:
        """The kernel's parameters."""
        return ConvParams.blocked(
            target,
            len(self.x),
            self.w.shape[0] // self.groups,
            self.depth,
            self.axes(),
            groups=self.groups,
            threads=threads,
            group_step=self.w.shape[1],
            image=prod(self.x.shape[1:]),
            out_image=prod(self.places()) * self.w.shape[0],
        )

    def exact(self) -> Array:
        """The integers of the definition, wrapped to int32."""
        rank, M = self.w.ndim - 2, self.w.shape[0]
        edges = [(0, 0), *zip(self.pads[:rank], self.pads[rank:], strict=True), (0, 0)]
        x = np.pad(self.x.astype(np.int64) - self.x_zero, edges)
        w = self.w.astype(np.int64) - np.reshape(self.w_zero, (-1, *(1,) * (self.w.ndim - 1)))
        result = np.zeros((len(x), *self.places(), M), np.int64)
        for tap in np.ndindex(*w.shape[2:]):
            spans = [
                slice(t * d, t * d + (p - 1) * s + 1, s)
                for t, d, p, s in zip(tap, self.dilations, self.places(), self.strides, strict=True)
            ]
            part = x[(slice(None), *spans)]
            for g in range(self.groups):
                rows, columns = slice(g * w.shape[1], (g + 1) * w.shape[1]), slice(g * M // self.groups, (g + 1) * M // self.groups)
                result[..., columns] += part[..., rows] @ w[(columns, slice(None), *tap)].T
        return result.astype(np.int32)


def _run(target: Target, case: _Case, *, threads: int = 1, stored: type = np.int32) -> Array:
    """The result, with guard elements around it that must stay."""
    signed, M = case.x.dtype == np.int8, len(case.w)
    shift = (0 if case.w.dtype == np.int8 else -128) if not signed else (128 if case.w.dtype == np.int8 else 0)
    zeros = np.broadcast_to(np.asarray(case.w_zero, np.int64) + shift, (M,))
    factors = 0 if not zeros.any() else 1 if np.ndim(case.w_zero) == 0 else 2
    columns, width = M // case.groups, dot_tiling(target).panel
    padded, widens = any(case.pads), case.widens(target)
    code = DotConvCode(case.w.ndim - 2, dot_widths(target, columns), padded, bool(signed), case.depth % 4, factors, widens)
    engine, module = Engine(target), Module(target)
    if stored is np.int32:
        write_dot_conv(module, "conv", code, I32)
    else:
        write_dot_conv(module, "conv", code, I8, _low_byte)
    engine.add(module)
    stays = case.w.astype(np.int64) + shift
    K = stays[0].size
    offsets = case.x_zero * (K * zeros - stays.reshape(M, -1).sum(axis=1))
    params = case.params(target, threads)
    shape = (len(case.x), *case.places(), M)
    guarded = np.full(prod(shape) + 64, 7, stored)
    arrays = [
        case.x,
        pack_dot_filters(
            case.w, case.groups, width, case.depth, signed=not signed, spare=spare_bytes(target), cut=cut_lanes(target)
        ),
        guarded,
        np.full(max(case.depth, 1), case.x_zero, case.x.dtype),
        offset_places(offsets, case.groups, width),
        np.array(-zeros[:1], np.int32) if factors == 1 else offset_places(-zeros, case.groups, width),
    ]
    call(engine, "conv", arrays, params.words(), 0, params.tasks())
    assert (guarded[prod(shape) :] == 7).all()
    return guarded[: prod(shape)].reshape(shape)


def _low_byte(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
    return sums.to(I8)


_PADDED = (1, 1, 1, 1)


@pytest.mark.parametrize("w", [np.int8, np.uint8])
@pytest.mark.parametrize("x", [np.int8, np.uint8])
@pytest.mark.parametrize("w_zero", [0, 5, 127])
def test_signs_and_zero_points(target: Target, x: type, w: type, w_zero: int) -> None:
    """Each side may be signed or not; the padding stands for the input's zero point."""
    case = _Case(_random(x, 2, 5, 6, 7), _random(w, 18, 7, 3, 3), pads=_PADDED, x_zero=100, w_zero=w_zero)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("x", [np.int8, np.uint8])
def test_zero_points_of_each_channel(target: Target, x: type) -> None:
    """Weights may have a zero point for each output channel, in groups too."""
    case = _Case(_random(x, 1, 5, 4, 6), _random(np.uint8, 38, 3, 3, 2), groups=2, w_zero=_random(np.uint8, 38).tolist(), x_zero=9)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("M", [1, 3, 4, 5, 8, 15, 16, 17, 31, 33, 48, 49, 63, 64, 65, 127])
def test_tails_of_output_channels(target: Target, M: int) -> None:
    """Every number of vectors, whole or not, is exact, and nothing else is written."""
    case = _Case(_random(np.uint8, 1, 5, 4, 3), _random(np.int8, M, 3, 3, 3), pads=_PADDED)
    assert (_run(target, case) == case.exact()).all()
    assert (_run(target, case, stored=np.int8) == case.exact().astype(np.int8)).all()


@pytest.mark.parametrize("x", [np.int8, np.uint8])
@pytest.mark.parametrize("C", [1900, 2102])
def test_rows_of_any_length(target: Target, x: type, C: int) -> None:
    """Also longer ones than are widened at once."""
    case = _Case(_random(x, 1, 3, 5, C), _random(np.int8, 20, C, 2, 2), w_zero=3)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("W", [1, 2, 3, 4, 5, 6, 7, 8, 9, 13])
def test_tails_of_places(target: Target, W: int) -> None:
    """Places around the height of each tile, over rows and images; with sums of rows."""
    case = _Case(_random(np.uint8, 2, 2, W, 5), _random(np.int8, 20, 5, 3, 3), pads=_PADDED, w_zero=-3)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("C", [1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 130])
def test_channels_that_are_no_multiple_of_four(target: Target, C: int) -> None:
    """What follows the last channel is not read, and does not count."""
    case = _Case(_random(np.int8, 1, 3, 4, C), _random(np.int8, 17, C, 2, 2), w_zero=2)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize(
    ("strides", "dilations", "pads"),
    [
        ((1, 2), (1, 1), (0, 0, 0, 0)),
        ((2, 1), (2, 1), (0, 0, 0, 0)),
        ((1, 1), (1, 3), (2, 0, 1, 3)),
        ((3, 2), (2, 2), (1, 4, 0, 2)),
    ],
)
def test_windows(target: Target, strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int]) -> None:
    """Strides, dilations and unequal padding on each axis."""
    case = _Case(_random(np.uint8, 2, 9, 11, 6), _random(np.uint8, 18, 6, 3, 2), strides, dilations, pads, w_zero=120)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("C", [1, 3, 5])
def test_taps_along_the_last_axis_may_be_one_run(target: Target, C: int) -> None:
    """Without padding and dilation the taps of a row lie in order."""
    case = _Case(_random(np.uint8, 1, 9, 10, C), _random(np.int8, 33, C, 3, 5), (2, 2), merged=True)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("groups", [2, 3, 12])
def test_groups(target: Target, groups: int) -> None:
    """Each group reads its own channels and writes its own."""
    x, w = _random(np.uint8, 2, 4, 5, 12), _random(np.int8, groups * 17, 12 // groups, 2, 2)
    case = _Case(x, w, pads=(1, 0, 0, 1), groups=groups, w_zero=1)
    assert (_run(target, case) == case.exact()).all()


def test_one_axis(target: Target) -> None:
    """A sequence is convolved as an image is."""
    case = _Case(_random(np.uint8, 3, 40, 7), _random(np.int8, 30, 7, 5), (2,), (2,), (3, 1))
    assert (_run(target, case) == case.exact()).all()


def test_three_axes(target: Target) -> None:
    """So are volumes."""
    x, w = _random(np.int8, 2, 4, 3, 5, 6), _random(np.int8, 9, 6, 2, 3, 2)
    case = _Case(x, w, (1, 2, 1), (1, 1, 2), (1, 0, 1, 0, 1, 1))
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize(("x", "w"), [(255, -128), (255, 127), (0, -128)])
def test_extreme_sums(target: Target, x: int, w: int) -> None:
    """Sums of the greatest products over many channels are exact: no part of them is saturated."""
    case = _Case(np.full((1, 2, 3, 4099), x, np.uint8), np.full((17, 4099, 1, 2), w, np.int8), x_zero=255 - x)
    assert (_run(target, case) == case.exact()).all()


def test_sums_wrap_around(target: Target) -> None:
    """As the standard's accumulators do."""
    case = _Case(np.full((1, 1, 1, 70_000), 255, np.uint8), np.full((2, 70_000, 1, 1), -128, np.int8), x_zero=0)
    assert (_run(target, case) == case.exact()).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_more_places_than_a_task(target: Target, threads: int) -> None:
    """The table of one task is not overrun, whatever the blocks are."""
    case = _Case(_random(np.uint8, 1, 31, 47, 2), _random(np.int8, 5, 2, 3, 3), pads=_PADDED, w_zero=1)
    assert BLOCK_ROWS < 31 * 47
    assert (_run(target, case, threads=threads) == case.exact()).all()


@pytest.mark.parametrize("count", [1, 2, 8, 32])
def test_lanes_of_vectors_are_folded(target: Target, run: Callable[..., None], count: int) -> None:
    """Each vector to one sum, in their order."""
    lanes, module = target.lanes(32), Module(target)
    x, found = _RNG.integers(-99, 99, (count, lanes), np.int32), np.zeros(count, np.int32)
    with module.kernel("fold") as b:
        place = 0
        for total in fold_lanes(b, [b.buffer(0, I32).load(i * lanes, lanes) for i in range(count)]):
            b.buffer(1, I32).store(total, place, total.type.lanes)
            place += total.type.lanes
    run(module, "fold", [x, found], [])
    assert found.tolist() == x.sum(axis=1).tolist()


def test_no_place(target: Target) -> None:
    """An empty batch is nothing to do."""
    case = _Case(_random(np.uint8, 0, 4, 4, 5), _random(np.int8, 3, 5, 2, 2))
    assert _run(target, case).shape == (0, 3, 3, 3)


def test_a_long_epilogue_goes_in_a_loop(target: Target) -> None:
    """Its instructions are written once, and its result is the same."""

    def slowly(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
        for _ in range(50):
            sums = (sums ^ 1) + 1
        return sums

    case = _Case(_random(np.uint8, 1, 5, 4, 8), _random(np.int8, 35, 8, 1, 1), x_zero=0)
    code = DotConvCode(2, dot_widths(target, 35), False, False, 0, 0, case.widens(target))
    engine, module, result = Engine(target), Module(target), np.empty((20, 35), np.int32)
    write_dot_conv(module, "conv", code, I32, slowly)
    engine.add(module)
    width, params = dot_tiling(target).panel, case.params(target)
    packed = pack_dot_filters(case.w, 1, width, 8, signed=True, spare=spare_bytes(target), cut=cut_lanes(target))
    call(engine, "conv", [case.x, packed, result, case.x, offset_places(np.zeros(35), 1, width), result], params.words())
    expected = case.exact().reshape(20, 35)
    for _ in range(50):
        expected = (expected ^ 1) + 1
    assert (result == expected).all()
