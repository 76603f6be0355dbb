"""Random numbers by streams."""

import math

import ml_dtypes
import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import of_dtype
from sardonyx.codegen.kernels.signal.random import DRAW_BLOCK, stream_of, write_normal, write_take_stream, write_uniform
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

GAMMA = 0x9E3779B97F4A7C15
TYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16]


def _mixed(z: Array) -> Array:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _bits(stream: int, places: Array) -> Array:
    """SplitMix64 in NumPy."""
    with np.errstate(over="ignore"):
        return _mixed(np.uint64(stream) + (places.astype(np.uint64) + np.uint64(1)) * np.uint64(GAMMA))


def _drawn(
    target: Target, write: object, kind: object, count: int, stream: int = 5, factor: float = 1.0, addend: float = 0.0
) -> Array:
    module, engine, result = Module(target), Engine(target), np.full(count + 64, 9, kind)
    write(module, "draw", of_dtype(np.dtype(kind)))
    engine.add(module)
    words = [count, factor, addend]
    call(engine, "draw", [np.array([stream], np.uint64), result], words, 0, -(-count // DRAW_BLOCK))
    assert (result[count:].astype(np.float32) == 9).all()
    return result[:count]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, DRAW_BLOCK + 3])
def test_even_numbers_are_the_bits_of_the_stream(target: Target, count: int) -> None:
    """Exactly, in float32 and float64, and none behind the last."""
    bits = _bits(5, np.arange(count))
    with np.errstate(all="ignore"):
        short, long = (bits & np.uint64(0xFFFFFF)).astype(np.float32) * np.float32(2**-24), (bits >> np.uint64(11)) * 2.0**-53
    np.testing.assert_array_equal(_drawn(target, write_uniform, "float32", count, factor=3.0, addend=-1.0), short * 3 - 1)
    np.testing.assert_array_equal(_drawn(target, write_uniform, "float64", count), long)


def test_normal_numbers_follow_from_the_stream(target: Target) -> None:
    """By Box and Muller."""
    bits = _bits(5, np.arange(5000))
    first, second = ((bits >> np.uint64(33)) + 0.5) * 2.0**-31, (bits & np.uint64(0xFFFFFF)) * 2.0**-24
    exact = np.sqrt(-2 * np.log(first)) * np.cos(2 * math.pi * second)
    np.testing.assert_allclose(_drawn(target, write_normal, "float32", 5000), exact, rtol=0, atol=4e-6)
    first, second = ((_bits(5, np.arange(half, 10_000, 2)) >> np.uint64(11)) * 2.0**-53 for half in range(2))
    exact = np.sqrt(-2 * np.log(first + 2.0**-54)) * np.cos(2 * math.pi * second)
    np.testing.assert_allclose(_drawn(target, write_normal, "float64", 5000), exact, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", TYPES)
def test_moments(target: Target, kind: object) -> None:
    """200,000 numbers have the moments of their distribution, and neighbours do not depend on each other."""
    even = _drawn(target, write_uniform, kind, 200_000).astype(np.float64)
    normal = _drawn(target, write_normal, kind, 200_000, factor=2.0, addend=1.0).astype(np.float64)
    assert 0 <= even.min() < 1e-3
    assert abs(even.mean() - 0.5) < 3e-3
    assert abs(even.var() - 1 / 12) < 1e-3
    z = (normal - 1) / 2
    assert abs(z.mean()) < 0.01
    assert abs(z.var() - 1) < 0.02
    assert abs((z**4).mean() - 3) < 0.1
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(even[:-1], even[1:])[0, 1]) < 0.01


def test_streams_are_taken_one_after_another(target: Target) -> None:
    """Each differs, and they are the same again from the same seed."""
    module, engine = Module(target), Engine(target)
    write_take_stream(module, "take")
    engine.add(module)
    rounds = []
    for _ in range(2):
        source, stream, taken = np.array([7, 0], np.uint64), np.zeros(1, np.uint64), []
        for _ in range(3):
            call(engine, "take", [source, stream])
            taken.append(int(stream[0]))
        assert source.tolist() == [7, 3]
        rounds.append(taken)
    assert rounds[0] == rounds[1]
    assert len({*rounds[0]}) == 3
    assert rounds[0][0] == stream_of(7)


def test_seeds_of_nodes_make_streams_that_differ() -> None:
    """All of 64 bits count."""
    assert len({stream_of(seed) for seed in (0, 1, 2, 1 << 63, (1 << 64) - 1)}) == 5
