"""Minimal filtering: tiles, chains, tails, and an error that is no larger than that of plain sums."""

import dataclasses

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.kernels.conv import conv_tiling
from sardonyx.codegen.kernels.winograd import WinogradParams, pack_winograd, scratch_elements, steps_of, write_winograd
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target
from sardonyx.dtypes import Array, DataType

_RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with the plain kernel."""
    module, engine = Module(target), Engine(target)
    write_winograd(module, "winograd")
    engine.add(module)
    return engine


def _random(*shape: int) -> Array:
    return _RNG.standard_normal(shape).astype(np.float32)


@dataclasses.dataclass
class _Case:
    """An input (N, H, W, C), filters (M, C, 3, 3) and padding above, left, below, right."""

    x: Array
    w: Array
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    pairs: bool = False

    @property
    def places(self) -> tuple[int, int]:
        """The output's spatial sizes."""
        return self.x.shape[1] + self.pads[0] + self.pads[2] - 2, self.x.shape[2] + self.pads[1] + self.pads[3] - 2

    def params(self, target: Target, tasks: int = 1) -> WinogradParams:
        """The kernel's parameters."""
        N, H, W, C = self.x.shape
        return WinogradParams.blocked(target, N, (H, W), C, self.places, len(self.w), self.pads[:2], tasks, pairs=self.pairs)

    def exact(self) -> Array:
        """The result in float64."""
        top, left, bottom, right = self.pads
        x = np.pad(self.x.astype(np.float64), [(0, 0), (top, bottom), (left, right), (0, 0)])
        high, wide = self.places
        parts = [x[:, i : i + high, j : j + wide] @ self.w[:, :, i, j].T.astype(np.float64) for i in range(3) for j in range(3)]
        return np.asarray(sum(parts))

    def run(self, engine: Engine, tasks: int = 1, symbol: str = "winograd", *operands: Array, cache_bytes: int = 1 << 20) -> Array:
        """The result, with guard elements after it and after the scratch memory that must stay."""
        target, C, M = dataclasses.replace(engine.target, cache_bytes=cache_bytes), self.x.shape[-1], len(self.w)
        params = self.params(target, tasks)
        shape = (len(self.x), *self.places, M)
        size, needed = int(np.prod(shape)), tasks * scratch_elements(target, steps_of(C, pairs=self.pairs), M)
        guarded, scratch = np.full(size + 64, 7, np.float32), np.full(needed + 64, 7, np.float32)
        packed = pack_winograd(self.w, conv_tiling(target).panel, pairs=self.pairs)
        assert params.tasks() <= tasks
        arrays = [self.x, packed, guarded, np.zeros(C, np.float32), scratch, *operands]
        call(engine, symbol, arrays, params.words(), 0, params.tasks())
        assert (guarded[size:] == 7).all()
        assert (scratch[needed:] == 7).all()
        return guarded[:size].reshape(shape)


def _error(found: Array, exact: Array) -> float:
    return float(np.sqrt(np.mean(np.square(found - exact)) / np.mean(np.square(exact))))


@pytest.mark.parametrize("M", [1, 3, 8, 16, 17, 33, 48, 49, 64, 65, 130])
def test_tails_of_output_channels(engine: Engine, M: int) -> None:
    """Every number of vectors, whole or not."""
    case = _Case(_random(1, 5, 6, 20), _random(M, 20, 3, 3))
    assert _error(case.run(engine), case.exact()) < 4e-7


@pytest.mark.parametrize("C", [1, 15, 16, 17, 48, 49, 64, 97, 300])
def test_chains_of_input_channels(engine: Engine, C: int) -> None:
    """Channels are summed in chains of almost equal length."""
    case = _Case(_random(1, 5, 6, C), _random(20, C, 3, 3))
    assert _error(case.run(engine), case.exact()) < 4e-7


@pytest.mark.parametrize(("H", "W"), [(1, 1), (1, 2), (2, 3), (3, 5), (8, 8), (7, 27), (31, 30)])
def test_sizes(engine: Engine, H: int, W: int) -> None:
    """Odd and even sizes, one tile to several blocks of them, over images."""
    case = _Case(_random(2, H, W, 17), _random(18, 17, 3, 3))
    assert _error(case.run(engine), case.exact()) < 4e-7


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 0, 0, 1), (0, 2, 3, 0), (4, 4, 4, 4)])
def test_padding(engine: Engine, pads: tuple[int, int, int, int]) -> None:
    """Any padding on each side."""
    case = _Case(_random(1, 6, 7, 18), _random(18, 18, 3, 3), pads)
    assert _error(case.run(engine), case.exact()) < 4e-7


def test_tasks_do_not_change_bits(engine: Engine) -> None:
    """A place is the same in whichever block its tile is."""
    case = _Case(_random(2, 20, 21, 40), _random(40, 40, 3, 3))
    assert case.run(engine).tobytes() == case.run(engine, 4).tobytes() == case.run(engine, 7).tobytes()


def test_tasks_share_filters_that_do_not_stay_in_the_cache(engine: Engine) -> None:
    """Each reads some panels of them, and has more tiles than where each would read all; the bits stay."""
    case = _Case(_random(1, 9, 10, 70), _random(200, 70, 3, 3))
    target = dataclasses.replace(engine.target, cache_bytes=1 << 18)
    assert case.params(target).task_columns >= 200
    shared = [case.params(target, tasks) for tasks in (4, 64)]
    assert all(params.task_columns < 200 and params.tasks() > 1 for params in shared)
    whole = case.run(engine)
    assert all(whole.tobytes() == case.run(engine, tasks, cache_bytes=1 << 18).tobytes() for tasks in (4, 64))


def test_the_cache_does_not_change_bits(engine: Engine) -> None:
    """In a larger one, blocks of many channels have more tiles."""
    case = _Case(_random(1, 19, 20, 300), _random(96, 300, 3, 3))
    targets = [dataclasses.replace(engine.target, cache_bytes=size) for size in (1 << 20, 1 << 21)]
    small, large = (case.params(target).block_tiles for target in targets)
    assert small < large
    assert case.run(engine, cache_bytes=1 << 20).tobytes() == case.run(engine, cache_bytes=1 << 21).tobytes()


def test_an_image_has_the_same_bits_in_a_batch_as_alone(engine: Engine) -> None:
    """Where an image stands decides which block computes it, not what it is."""
    case = _Case(_random(3, 9, 9, 24), _random(70, 24, 3, 3))
    together = case.run(engine)
    for image in range(3):
        alone = dataclasses.replace(case, x=case.x[image : image + 1].copy())
        assert alone.run(engine).tobytes() == together[image : image + 1].tobytes()


def test_nothing_to_do(engine: Engine) -> None:
    """No image makes no task."""
    assert _Case(_random(0, 9, 9, 24), _random(8, 24, 3, 3)).params(engine.target).tasks() == 0


@pytest.mark.parametrize("C", [16, 64, 256])
def test_errors_are_those_of_short_sums(engine: Engine, C: int) -> None:
    """No larger than those of direct summation in float32, in chains of 150 products."""
    x, w = np.maximum(_random(1, 12, 12, C), 0), _random(32, C, 3, 3)
    assert _error(_Case(x, w).run(engine), _Case(x, w).exact()) < 2.5e-7


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 4), (4, 3), (7, 8)])
def test_what_is_not_finite_stays_where_windows_see_it(engine: Engine, value: float, row: int, column: int) -> None:
    """It reaches the places whose window holds it, and no others of their tiles."""
    case = _Case(_random(1, 8, 9, 18), _random(20, 18, 3, 3))
    case.x[0, row, column, 5] = value
    expected = np.zeros((8, 9, 20), np.bool_)
    expected[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2] = True
    assert (~np.isfinite(case.run(engine)[0]) == expected).all()


_PAIR_TARGETS = [
    *map(host_target, available_levels()),
    emulated_target("avx512", ["avx512bf16"]),
    emulated_target("neon", ["bf16"]),
]


@pytest.fixture(scope="module", params=_PAIR_TARGETS, ids=lambda target: target.isa)
def pairs(request: pytest.FixtureRequest) -> Engine:
    """An engine with the kernel of pairs."""
    module, engine = Module(request.param), Engine(request.param)
    write_winograd(module, "winograd", pairs=True)
    engine.add(module)
    return engine


def _rounded(array: Array) -> Array:
    return array.astype(DataType.BFLOAT16.numpy).astype(np.float64)


def _direct(case: _Case) -> float:
    """The error of a direct sum whose operands are rounded to bfloat16, and nothing else."""
    return _error(dataclasses.replace(case, x=_rounded(case.x), w=_rounded(case.w)).exact(), case.exact())


@pytest.mark.parametrize(("C", "M"), [(2, 1), (16, 8), (34, 65), (98, 33), (194, 20), (300, 64)])
def test_errors_of_pairs_are_twice_those_of_rounded_operands(pairs: Engine, C: int, M: int) -> None:
    """Chains of pairs, tails of output channels."""
    case = _Case(_random(2, 7, 10, C), _random(M, C, 3, 3), pairs=True)
    assert _error(case.run(pairs), case.exact()) < 2.2 * _direct(case)


@pytest.mark.parametrize("offset", [1.0, 100.0])
def test_pairs_of_elements_that_are_not_about_zero(pairs: Engine, offset: float) -> None:
    """Differences of neighbours are taken before they are rounded."""
    case = _Case(_random(1, 12, 12, 64) + np.float32(offset), _random(32, 64, 3, 3), pairs=True)
    assert _error(case.run(pairs), case.exact()) < 2.2 * _direct(case)


def test_numbers_of_few_bits_are_exact_in_pairs(pairs: Engine) -> None:
    """What bfloat16 holds is not rounded."""
    case = _Case(
        _RNG.integers(-8, 9, (1, 9, 8, 50)).astype(np.float32), _RNG.integers(-4, 5, (40, 50, 3, 3)).astype(np.float32) * 4
    )
    case.pairs = True
    np.testing.assert_array_equal(case.run(pairs), case.exact())


def test_tasks_do_not_change_bits_of_pairs(pairs: Engine) -> None:
    """A place is the same in whichever block its tile is."""
    case = _Case(_random(2, 20, 21, 40), _random(40, 40, 3, 3), pairs=True)
    assert case.run(pairs).tobytes() == case.run(pairs, 4).tobytes() == case.run(pairs, 7).tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_where_windows_of_pairs_see_it(pairs: Engine, value: float) -> None:
    """It reaches the places whose window holds it, and no others of their tiles."""
    case = _Case(_random(1, 8, 9, 18), _random(20, 18, 3, 3), pairs=True)
    case.x[0, 3, 4, 5] = value
    expected = np.zeros((8, 9, 20), np.bool_)
    expected[2:5, 3:6] = True
    assert (~np.isfinite(case.run(pairs)[0]) == expected).all()


@pytest.mark.parametrize("rounds", [1, 30])
def test_an_epilogue_sees_each_element_once(target: Target, rounds: int) -> None:
    """Bias and residual are applied where the last chain is stored."""

    def finish(b: Kernel, sums: Register, place: Register, column: Register, span: Span) -> Register:
        total = sums + b.buffer(5, F32).load(column, span)
        for _ in range(rounds):
            total = total + b.buffer(6, F32).load(place, span)
        return total

    module, engine = Module(target), Engine(target)
    write_winograd(module, "finished", finish)
    engine.add(module)
    case = _Case(_random(2, 7, 8, 60), _random(70, 60, 3, 3))
    bias, residual = _random(70), _random(2, 7, 8, 70)
    found = case.run(engine, 1, "finished", bias, residual)
    np.testing.assert_allclose(found, case.exact() + bias + rounds * residual, atol=2e-4)
