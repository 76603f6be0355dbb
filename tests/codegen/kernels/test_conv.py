"""The implicit product: every tap, tail, block and group, the same bits wherever a place lies."""

import dataclasses
from collections.abc import Sequence
from math import prod

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.emit.window import WindowAxis
from sardonyx.codegen.kernels.conv import ConvParams, conv_tiling, pack_filters, widths_for, write_conv
from sardonyx.codegen.kernels.conv_rows import BLOCK_ROWS
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with the kernels for one and two axes."""
    engine = Engine(target)
    for rank in (1, 2):
        for padded in (False, True):
            module = Module(target)
            write_conv(module, _symbol(rank, padded), rank, padded=padded)
            engine.add(module)
    return engine


def _symbol(rank: int, padded: bool) -> str:
    return f"conv{rank}_{padded}"


def _random(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


@dataclasses.dataclass
class _Case:
    """An input (N, spatial…, C), filters (M, C / groups, kernel…) and where the window lies."""

    x: Array
    w: Array
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[int]
    groups: int = 1
    merged: bool = False

    def axes(self) -> list[WindowAxis]:
        """Every axis, with one tap for the last where its taps are one run."""
        rank, found = self.w.ndim - 2, []
        sizes, places = self.x.shape[1:-1], self.places()
        for i in range(rank):
            in_step, out_step = prod(self.x.shape[i + 2 :]), prod(places[i + 1 :]) * self.w.shape[0]
            taps = 1 if self.merged and i == rank - 1 else self.w.shape[2 + i]
            found.append(WindowAxis(sizes[i], places[i], self.strides[i], self.dilations[i], self.pads[i], taps, in_step, out_step))
        return found

    def places(self) -> list[int]:
        """The output's spatial sizes."""
        rank = self.w.ndim - 2
        return [
            (self.x.shape[1 + i] + self.pads[i] + self.pads[rank + i] - (self.w.shape[2 + i] - 1) * self.dilations[i] - 1)
            // self.strides[i]
            + 1
            for i in range(rank)
        ]

    def params(self, target: Target, threads: int = 1) -> ConvParams:
        """The kernel's parameters."""
        depth = self.w.shape[1] * (self.w.shape[-1] if self.merged else 1)
        return ConvParams.blocked(
            target,
            len(self.x),
            self.w.shape[0] // self.groups,
            depth,
            self.axes(),
            groups=self.groups,
            threads=threads,
            group_step=self.w.shape[1],
            image=prod(self.x.shape[1:]),
            out_image=prod(self.places()) * self.w.shape[0],
        )

    def exact(self) -> tuple[Array, Array]:
        """The result in float64, and the sum of magnitudes that bounds its error."""
        rank, M = self.w.ndim - 2, self.w.shape[0]
        edges = [(0, 0), *zip(self.pads[:rank], self.pads[rank:], strict=True), (0, 0)]
        x, w = np.pad(self.x, edges).astype(np.float64), self.w.astype(np.float64)
        result, bound = np.zeros((len(x), *self.places(), M)), np.zeros((len(x), *self.places(), M))
        for tap in np.ndindex(*w.shape[2:]):
            spans = [
                slice(t * d, t * d + (p - 1) * s + 1, s)
                for t, d, p, s in zip(tap, self.dilations, self.places(), self.strides, strict=True)
            ]
            part = x[(slice(None), *spans)]
            for g in range(self.groups):
                rows, columns = slice(g * w.shape[1], (g + 1) * w.shape[1]), slice(g * M // self.groups, (g + 1) * M // self.groups)
                filters = w[(columns, slice(None), *tap)].T
                result[..., columns] += part[..., rows] @ filters
                bound[..., columns] += np.abs(part[..., rows]) @ np.abs(filters)
        return result, bound


def _run(engine: Engine, case: _Case, params: ConvParams | None = None) -> Array:
    """The result, with guard elements around it that must stay."""
    params = params or case.params(engine.target)
    shape = (len(case.x), *case.places(), case.w.shape[0])
    guarded = np.full(prod(shape) + 64, 7, np.float32)
    padded = any(case.pads)
    filters = pack_filters(case.w, case.groups, conv_tiling(engine.target).panel)
    arrays = [case.x, filters, guarded, np.zeros(max(params.depth, 1), np.float32)]
    call(engine, _symbol(case.w.ndim - 2, padded), arrays, params.words(), 0, params.tasks())
    assert (guarded[prod(shape) :] == 7).all()
    return guarded[: prod(shape)].reshape(shape)


def _close(result: Array, case: _Case) -> bool:
    exact, bound = case.exact()
    return bool((np.abs(result - exact) <= 1e-6 * bound + 1e-30).all())


@pytest.mark.parametrize("M", [1, 3, 4, 5, 8, 15, 16, 17, 31, 33, 48, 49, 63, 64, 65, 127])
def test_tails_of_output_channels(engine: Engine, M: int) -> None:
    """Every number of vectors, whole or not, is exact to the order of fp32 sums, and nothing else is written."""
    case = _Case(_random(1, 5, 4, 3), _random(M, 3, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    assert _close(_run(engine, case), case)


@pytest.mark.parametrize("M", [3, 16, 20, 64, 65, 100])
def test_a_kernel_may_have_the_tiles_of_some_columns_only(target: Target, M: int) -> None:
    """Those of whole panels, where there is one, and of the columns that are left."""
    module, engine = Module(target), Engine(target)
    write_conv(module, _symbol(2, True), 2, padded=True, widths=widths_for(target, M))
    engine.add(module)
    case = _Case(_random(1, 5, 4, 3), _random(M, 3, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    assert _close(_run(engine, case), case)


@pytest.mark.parametrize("W", [1, 2, 3, 4, 5, 6, 7, 8, 9, 13])
def test_tails_of_places(engine: Engine, W: int) -> None:
    """Places around the height of each tile, over rows and images."""
    case = _Case(_random(2, 2, W, 5), _random(20, 5, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    assert _close(_run(engine, case), case)


@pytest.mark.parametrize(
    ("strides", "dilations", "pads"),
    [
        ((1, 2), (1, 1), (0, 0, 0, 0)),
        ((2, 1), (2, 1), (0, 0, 0, 0)),
        ((1, 1), (1, 3), (2, 0, 1, 3)),
        ((3, 2), (2, 2), (1, 4, 0, 2)),
    ],
)
def test_windows(engine: Engine, strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int]) -> None:
    """Strides, dilations and unequal padding on each axis."""
    case = _Case(_random(2, 9, 11, 6), _random(18, 6, 3, 2), strides, dilations, pads)
    assert _close(_run(engine, case), case)


@pytest.mark.parametrize("C", [1, 3, 5])
def test_taps_along_the_last_axis_may_be_one_run(engine: Engine, C: int) -> None:
    """Without padding and dilation the taps of a row lie in order: the same bits as tap by tap."""
    case = _Case(_random(1, 9, 10, C), _random(33, C, 3, 5), (2, 2), (1, 1), (0, 0, 0, 0))
    merged = dataclasses.replace(case, merged=True)
    assert _close(_run(engine, merged), merged)
    assert _run(engine, merged).tobytes() == _run(engine, case).tobytes()


@pytest.mark.parametrize("groups", [2, 3, 12])
def test_groups(engine: Engine, groups: int) -> None:
    """Each group reads its own channels and writes its own."""
    case = _Case(_random(2, 4, 5, 12), _random(groups * 17, 12 // groups, 2, 2), (1, 1), (1, 1), (1, 0, 0, 1), groups)
    assert _close(_run(engine, case), case)


def test_one_axis(engine: Engine) -> None:
    """A sequence is convolved as an image is."""
    case = _Case(_random(3, 40, 7), _random(30, 7, 5), (2,), (2,), (3, 1))
    assert _close(_run(engine, case), case)


@pytest.mark.parametrize("C", [767, 769, 1600])
def test_more_channels_than_a_block(engine: Engine, C: int) -> None:
    """A tap of more channels than the cache's share of a panel is gone through in pieces."""
    case = _Case(_random(1, 2, 3, C), _random(7, C, 1, 2), (1, 1), (1, 1), (0, 1, 0, 0))
    assert _close(_run(engine, case), case)


def test_more_places_than_a_task(engine: Engine) -> None:
    """The table of one task is not overrun."""
    case = _Case(_random(1, 31, 47, 2), _random(5, 2, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    assert case.params(engine.target).tasks() == -(-31 * 47 // BLOCK_ROWS)
    assert _close(_run(engine, case), case)


def test_blocks_and_threads_do_not_change_bits(engine: Engine) -> None:
    """The chains of a sum follow one another in the order of taps and channels, however places, columns and runs are cut."""
    case = _Case(_random(2, 9, 9, 20), _random(90, 20, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    params = case.params(engine.target)
    panel = conv_tiling(engine.target).panel
    short = dataclasses.replace(params, chain_runs=1, chain_depth=7)
    cuts = [
        (params, dataclasses.replace(params, pieces_rows=7, pieces_columns=-(-90 // panel))),
        (params, case.params(engine.target, threads=2)),
        (params, case.params(engine.target, threads=7)),
        (short, dataclasses.replace(short, block_runs=1, block_depth=7)),
        (short, dataclasses.replace(short, block_runs=2, pieces_rows=7)),
    ]
    assert all(_run(engine, case, one).tobytes() == _run(engine, case, other).tobytes() for one, other in cuts)


@pytest.mark.parametrize(("runs", "depth", "chains"), [(9, 14, 5), (9, 7, 4), (3, 33, 5), (9, 300, 2), (1, 20, 3), (9, 4, 1)])
def test_a_sum_has_as_many_chains_as_are_asked_for(target: Target, runs: int, depth: int, chains: int) -> None:
    """About so many, of whole runs or of parts of one."""
    axis = WindowAxis(runs, 1, 1, 1, 0, runs, 1, 1)
    params = ConvParams.blocked(target, 1, 64, depth, [axis], image=0, out_image=0, chains=chains)
    found = -(-runs // params.chain_runs) * -(-depth // params.chain_depth)
    assert found >= chains or params.chain_runs == -(-runs // chains)
    assert params.chain_runs == 1 or params.chain_depth == depth


def test_threads_share_filters_that_do_not_stay_in_the_cache(engine: Engine) -> None:
    """Each reads some of the columns for all places; where all filters stay, places are shared too."""
    case = _Case(_random(1, 16, 16, 20), _random(512, 20, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    targets = (dataclasses.replace(engine.target, cache_bytes=size) for size in (1 << 18, 1 << 21))
    small, large = (case.params(target, threads=2) for target in targets)
    assert small.pieces_rows == 1 < large.pieces_rows
    assert min(small.tasks(), large.tasks()) >= 2
    assert _run(engine, case, small).tobytes() == _run(engine, case, large).tobytes()


@pytest.mark.parametrize("C", [64, 100, 512, 700])
def test_errors_do_not_grow_with_channels(engine: Engine, C: int) -> None:
    """Long sums are made of short chains: the error stays that of some hundred additions."""
    case = _Case(_random(1, 6, 6, C), _random(16, C, 3, 3), (1, 1), (1, 1), (0, 0, 0, 0))
    exact = case.exact()[0]
    error = np.sqrt(np.mean(np.square(_run(engine, case) - exact)) / np.mean(np.square(exact)))
    assert error < 4e-7


def test_an_image_has_the_same_bits_in_a_batch_as_alone(engine: Engine) -> None:
    """Where an image stands decides which tile computes it, not what it is."""
    case = _Case(_random(3, 5, 5, 8), _random(40, 8, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    together = _run(engine, case)
    for image in range(3):
        alone = _run(engine, dataclasses.replace(case, x=case.x[image : image + 1].copy()))
        assert alone.tobytes() == together[image : image + 1].tobytes()


def test_nothing_to_do(engine: Engine) -> None:
    """No image makes no task."""
    case = _Case(_random(0, 5, 5, 8), _random(4, 8, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    assert case.params(engine.target).tasks() == 0


def test_nan_stays_where_windows_see_it(engine: Engine) -> None:
    """A NaN reaches the places whose window holds it, and no other."""
    case = _Case(_random(1, 7, 7, 4), _random(9, 4, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1))
    case.x[0, 3, 3, 2] = np.nan
    missing = np.all(np.isnan(_run(engine, case)[0]), axis=-1)
    expected = np.zeros((7, 7), np.bool_)
    expected[2:5, 2:5] = True
    assert (missing == expected).all()


@pytest.mark.parametrize("rounds", [1, 30])
def test_an_epilogue_sees_each_element_once(target: Target, rounds: int) -> None:
    """Bias and residual are applied where the last block is stored, by short and by long epilogues."""

    def finish(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
        total = sums + b.buffer(4, F32).load(column, span)
        for _ in range(rounds):
            total = total + b.buffer(5, F32).load(place, span)
        return total

    module = Module(target)
    write_conv(module, "finished", 2, padded=True, epilogue=finish)
    engine = Engine(target)
    engine.add(module)
    case = _Case(_random(2, 5, 5, 30), _random(2 * 35, 15, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 2)
    bias, residual = _random(70), _random(2, 5, 5, 70)
    result = np.zeros((2, 5, 5, 70), np.float32)
    params = dataclasses.replace(case.params(target), block_runs=4)
    arrays = [case.x, pack_filters(case.w, 2, conv_tiling(target).panel), result, np.zeros(15, np.float32), bias, residual]
    call(engine, "finished", arrays, params.words(), 0, params.tasks())
    np.testing.assert_allclose(result, case.exact()[0] + bias + rounds * residual, atol=2e-4)


def test_an_epilogue_waits_for_all_parts_of_a_run(target: Target) -> None:
    """Also where a run is longer than a chain and than a block."""

    def finish(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
        return sums + b.buffer(4, F32).load(column, span)

    module = Module(target)
    write_conv(module, "finished", 2, padded=False, epilogue=finish)
    engine = Engine(target)
    engine.add(module)
    case = _Case(_random(1, 3, 3, 1000), _random(33, 1000, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0))
    bias, result = _random(33) + 100, np.zeros((1, 3, 3, 33), np.float32)
    params = case.params(target)
    arrays = [case.x, pack_filters(case.w, 1, conv_tiling(target).panel), result, np.zeros(1000, np.float32), bias]
    call(engine, "finished", arrays, params.words(), 0, params.tasks())
    np.testing.assert_allclose(result, case.exact()[0] + bias, rtol=1e-5, atol=1e-3)
