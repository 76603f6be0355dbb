"""Filters that a run computes are packed as constants are."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.quantized.dot_filters import merge_groups, offset_places, pack_dot_filters
from sardonyx.codegen.kernels.quantized.pack_filters import PackFiltersParams, write_pack_filters
from sardonyx.codegen.kernels.quantized.pairs import cut_lanes
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target

_WIDTH = 16


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """The kernels for bytes that are turned and those that are not."""
    module, engine = Module(target), Engine(target)
    for flips in (False, True):
        for signed in (False, True):
            write_pack_filters(module, f"pack_{flips}_{signed}", _WIDTH, flips=flips, signed=signed, cut=cut_lanes(target))
    engine.add(module)
    return engine


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (17, 5, 3), (32, 4, 9), (33, 7, 4)])
@pytest.mark.parametrize("run", [False, True])
def test_bytes_are_those_of_constants(
    engine: Engine, kind: type[np.integer], signed: bool, shape: tuple[int, int, int], run: bool
) -> None:
    """With the taps in one run or one by one; nothing is written behind them."""
    filters = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8).view(kind)
    (M, C, taps), depth = shape, shape[1] * (shape[2] if run else 1)
    wanted = pack_dot_filters(filters, 1, _WIDTH, depth, signed=signed, spare=5, cut=cut_lanes(engine.target))
    packed, sums = np.full(wanted.size + 16, 7, np.uint8), np.full(-(-M // _WIDTH) * _WIDTH + 16, 7, np.int32)
    flips = signed != (kind is np.int8)
    params = PackFiltersParams(M, M, C, C, taps, taps if run else 1, _WIDTH, 5)
    buffers = [filters, np.zeros(M, np.uint8), sums, packed]
    call(engine, f"pack_{flips}_{signed}", buffers, params.words(), 0, params.tasks())
    np.testing.assert_array_equal(packed, [*wanted, *[7] * 16])
    stored = filters.astype(np.int32) + (128 if kind is np.int8 and not signed else -128 if kind is np.uint8 and signed else 0)
    np.testing.assert_array_equal(sums[:-16], offset_places(stored.sum((1, 2)), 1, _WIDTH)[0])
    assert (sums[-16:] == 7).all()


@pytest.mark.parametrize(("groups", "together", "each", "C"), [(6, 3, 2, 1), (4, 4, 5, 3), (4, 2, 9, 2)])
def test_groups_that_are_one_are_filled_up(engine: Engine, groups: int, together: int, each: int, C: int) -> None:
    """By what stands for 0 in each filter; sums are of its own channels."""
    M, taps = groups * each, 3
    filters = np.random.default_rng(1).integers(-128, 128, (M, C, taps)).astype(np.int8)
    fills = np.random.default_rng(2).integers(-128, 128, M).astype(np.int8)
    merged = merge_groups(filters, groups, together, tuple(fills.tolist()))
    wanted = pack_dot_filters(merged, groups // together, _WIDTH, C * together, signed=True, cut=cut_lanes(engine.target))
    panels = -(-each * together // _WIDTH)
    packed, sums = np.empty(wanted.size, np.uint8), np.empty((groups // together, panels * _WIDTH), np.int32)
    params = PackFiltersParams(each * together, each, C, C * together, taps, 1, _WIDTH, groups=groups // together)
    call(engine, "pack_False_True", [filters, fills.view(np.uint8), sums, packed], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(packed, wanted)
    np.testing.assert_array_equal(sums, offset_places(filters.astype(np.int32).sum((1, 2)), groups // together, _WIDTH))
