"""Products of a row in float32, written in digits of 8 bits, with weights of few bits."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import U8
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.panels import BlockLayout
from sardonyx.codegen.kernels.quantized.digit_blocks import DigitParams, digit_bytes, write_digit_blocks, write_digits
from sardonyx.codegen.kernels.quantized.dot_blocks import QuantizeParams
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, emulated_target, host_target
from sardonyx.dtypes import Array

_PANELS = [BlockLayout(bits, size, zero) for bits in (2, 4, 8) for size, zero in ((16, None), (32, U8), (128, None), (256, U8))]
_RNG = np.random.default_rng(0)


def _engine(target: Target, panels: BlockLayout) -> Engine:
    engine, module = Engine(target), Module(target)
    write_digits(module, "digits", panels.block_size)
    write_digit_blocks(module, "product", panels)
    engine.add(module)
    return engine


def _digits(engine: Engine, a: Array, block_size: int) -> Array:
    M, K = a.shape
    blocks = -(-K // block_size)
    d = np.full((M, blocks, digit_bytes(block_size)), 7, np.uint8)
    call(engine, "digits", [a, d], QuantizeParams(K, blocks).words(), 0, M * blocks)
    return d


def _weights(panels: BlockLayout, N: int, K: int) -> tuple[Array, Array, Array | None]:
    blocks = -(-K // panels.block_size)
    numbers = _RNG.integers(0, 1 << panels.bits, (N, blocks, panels.block_size), dtype=np.uint8)
    scales = _RNG.standard_normal((N, blocks)).astype(np.float32)
    zeros = None if panels.zero is None else _RNG.integers(0, 1 << panels.bits, (N, blocks)).astype(np.uint8)
    return numbers, scales, zeros


def _product(engine: Engine, panels: BlockLayout, a: Array, numbers: Array, scales: Array, zeros: Array | None) -> Array:
    (M, K), N, width = a.shape, len(numbers), tiling(engine.target).panel
    c, params = np.full((M + 1, N), 7, np.float32), DigitParams(M, N, scales.shape[1], K)
    packed = panels.pack(numbers.__getitem__, scales, zeros, width)
    call(engine, "product", [_digits(engine, a, panels.block_size), packed, c], params.words(), 0, params.tasks(width))
    assert (c[M] == 7).all()
    return c[:M]


def _decoded(panels: BlockLayout, K: int, numbers: Array, scales: Array, zeros: Array | None, kind: type = np.float64) -> Array:
    points = kind(panels.half) if zeros is None else zeros[:, :, None].astype(kind)
    return ((numbers.astype(kind) - points) * scales[:, :, None].astype(kind)).reshape(len(numbers), -1)[:, :K]


@pytest.mark.parametrize("spread", [0, 3, 8, 40])
@pytest.mark.parametrize("panels", _PANELS, ids=lambda panels: panels.name)
def test_products_are_as_exact_as_in_float32(target: Target, panels: BlockLayout, spread: int) -> None:
    """Numbers of any magnitudes beside one another; where all are digits, sums within a block have no error."""
    engine, bound = _engine(target, panels), 1e-6 if spread else 1.5e-7
    for M, N, K in ((1, 3, 1), (1, 65, 129), (3, 64, 300), (1, 33, 1000), (0, 5, 40), (1, 130, 515)):
        numbers, scales, zeros = _weights(panels, N, K)
        a = (_RNG.standard_normal((M, K)) * 10.0 ** _RNG.uniform(-spread, min(spread, 30), (M, K))).astype(np.float32)
        weights = _decoded(panels, K, numbers, scales, zeros)
        exact, magnitude = a.astype(np.float64) @ weights.T, np.abs(a).astype(np.float64) @ np.abs(weights).T
        found = _product(engine, panels, a, numbers, scales, zeros)
        assert (np.abs(found - exact) <= bound * magnitude + 1e-44).all()


@pytest.mark.parametrize("panels", [BlockLayout(4, 32, None), BlockLayout(8, 16, U8)], ids=lambda panels: panels.name)
@pytest.mark.parametrize(("isa", "feature"), [("avx512", "avx512vnni"), ("avx2", "avxvnni"), ("neon", "dotprod"), ("neon", "i8mm")])
def test_instructions_of_other_processors_give_the_same_bits(isa: str, feature: str, panels: BlockLayout) -> None:
    """Emulated: dot products of unsigned by signed bytes, or of signed ones, are exact alike."""
    numbers, scales, zeros = _weights(panels, 37, 200)
    a = _RNG.standard_normal((2, 200)).astype(np.float32)
    found = [
        _product(_engine(target, panels), panels, a, numbers, scales, zeros)
        for target in (host_target(), emulated_target(isa, [feature]))
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("panels", _PANELS[:2], ids=lambda panels: panels.name)
def test_large_numbers_that_meet_zeros_take_nothing_from_small_ones(target: Target, panels: BlockLayout) -> None:
    """Where weights are zeros, the row's numbers have no part, whatever they are."""
    a = np.full((1, 64), 1.2345679e-3, np.float32)
    a[0, ::2] = 3.3e15
    numbers, scales, zeros = _weights(panels, 20, 64)
    point = panels.half if zeros is None else zeros[0, 0]
    numbers[:, :, ::2], scales[:] = point, 1
    if zeros is not None:
        zeros[:] = point
    weights = _decoded(panels, 64, numbers, scales, zeros)
    exact, magnitude = a.astype(np.float64) @ weights.T, np.abs(a.astype(np.float64)) @ np.abs(weights).T
    found = _product(_engine(target, panels), panels, a, numbers, scales, zeros)
    assert (np.abs(found - exact) <= 2.5e-7 * magnitude).all()


def test_a_block_is_the_sum_of_its_digits_and_of_what_is_listed(target: Target) -> None:
    """Exactly; what has no bit below the 30th of the largest number is not listed."""
    engine = _engine(target, _PANELS[0])
    a = np.array([[1.5, -(2.0**-7) * 1.1, 2.0**-8 * 1.1, 2.0**-20, 0, -0.0, np.nan, np.inf, 1e-45]], np.float32)
    block = _digits(engine, a, 16)[0, 0]
    unit, count = block[:4].view(np.float32)[0], block[4:8].view(np.int32)[0]
    digits = block[32 : 32 + 64].view(np.int8).reshape(4, 16).astype(np.float64)
    listed = block[32 + 64 + 64 :].view(np.int32)[:count].tolist()
    whole = digits.T @ 256.0 ** np.arange(4) * unit
    assert listed == [2, 6, 7, 8]
    assert block[8:24].view(np.int32).tolist() == digits.sum(axis=1).tolist()
    expected = np.where(np.isin(np.arange(16), listed), 0, np.pad(a[0].astype(np.float64), (0, 7)))
    np.testing.assert_array_equal(whole, expected)


@pytest.mark.parametrize("largest", [1.9999999, 1.0, 1.984375, 2.0**60, 2.0**61, 3e38, 2.0**-60, 2.0**-61, 1e-38, 1e-45])
def test_the_largest_number_of_a_block_may_be_any(target: Target, largest: float) -> None:
    """Its digits do not overflow, and neither its unit nor its products leave the numbers of normal size."""
    panels = BlockLayout(4, 16, None)
    engine = _engine(target, panels)
    a = np.array([[largest, -largest, largest / 3, 0]], np.float32)
    numbers, scales = np.full((3, 1, 16), 8, np.uint8), np.full((3, 1), 0.5, np.float32)
    numbers[0, 0, 0], numbers[1, 0, 1], numbers[2, 0, 2] = 9, 9, 9
    found = _product(engine, panels, a, numbers, scales, None)
    np.testing.assert_array_equal(found[0], a[0, :3] * np.float32(0.5))


@pytest.mark.parametrize("panels", [_PANELS[0], _PANELS[1]], ids=lambda panels: panels.name)
def test_what_is_not_finite_gives_what_it_gives_in_float32(target: Target, panels: BlockLayout) -> None:
    """Numbers of the row and scales: an infinity by a weight of zero is NaN, two of different signs are, others are infinite."""
    engine, (numbers, scales, zeros) = _engine(target, panels), _weights(panels, 70, 100)
    for place, odd in ((3, np.inf), (50, -np.inf), (99, np.nan), (7, 3e38)):
        a = _RNG.standard_normal((1, 100)).astype(np.float32)
        a[0, place] = odd
        for factor in (1.0, np.inf, np.nan, 0.0, 1e-42):
            mine = scales.copy()
            mine[5:40, 1] *= factor
            with np.errstate(all="ignore"):
                weights = _decoded(panels, 100, numbers, mine, zeros, np.float32)
                steps = np.zeros(70, np.float32)
                for k in range(100):
                    steps += a[0, k] * weights[:, k]
            found = _product(engine, panels, a, numbers, mine, zeros)[0]
            odd_places = ~np.isfinite(steps)
            np.testing.assert_array_equal(found[odd_places], steps[odd_places])
            assert np.isfinite(found[~odd_places]).all()
