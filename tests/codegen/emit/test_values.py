"""Operators on values, memory access, and what is refused."""

from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, Type
from sardonyx.codegen.emit.values import Register, Span
from sardonyx.codegen.target import Target

Run = Callable[..., None]
Binary = Callable[[Register, Register], Register]


@pytest.mark.parametrize(
    ("operate", "kind", "left", "right", "expected"),
    [
        (lambda a, b: a + b, F32, 1.5, 2.0, 3.5),
        (lambda a, b: 1 - a * b, F32, 1.5, 2.0, -2.0),
        (lambda a, b: 3 / a - b, F64, 1.5, 2.0, 0.0),
        (lambda a, b: -a, F32, 0.0, 0.0, -0.0),
        (lambda a, b: a // b, I32, -7, 2, -3),
        (lambda a, b: a % b, I32, -7, 2, -1),
        (lambda a, b: a // b, U8, 250, 3, 83),
        (lambda a, b: a >> b, I8, -8, 1, -4),
        (lambda a, b: a >> b, U8, 248, 1, 124),
        (lambda a, b: (a << b) | 1, I64, 3, 2, 13),
        (lambda a, b: ~a & b, I32, 5, 7, 2),
        (lambda a, b: a ^ b, I32, 5, 7, 2),
    ],
)
def test_operators_compute_what_their_type_says(
    target: Target, run: Run, operate: Binary, kind: Type, left: float, right: float, expected: float
) -> None:
    """Each operator becomes the instruction of its type, sign included."""
    dtype = {F32: np.float32, F64: np.float64, I8: np.int8, I32: np.int32, I64: np.int64, U8: np.uint8}[kind]
    x, out = np.array([left, right], dtype), np.zeros(1, dtype)
    module = Module(target)
    with module.kernel("k") as b:
        source = b.buffer(0, kind)
        b.buffer(1, kind).store(operate(source.load(0), source.load(1)))
    run(module, "k", [x, out])
    assert out.tobytes() == np.array([expected], dtype).tobytes()


def test_a_scalar_meeting_a_vector_is_spread(target: Target, run: Run) -> None:
    """Scalars and numbers take the lanes of the other side."""
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    module = Module(target)
    with module.kernel("k") as b:
        source = b.buffer(0, F32)
        b.buffer(1, F32).store(source.load(3) * source.load(0, 4) + 1)
    run(module, "k", [x, out])
    assert out.tolist() == [1, 4, 7, 10]


def test_operands_of_different_types_are_refused(target: Target) -> None:
    """The message names both types."""
    module = Module(target)
    with module.kernel("k") as b, pytest.raises(TypeError, match=r"i64 \(signed\) and float \(float\)"):
        b.begin + b.const(F32, 1)


@pytest.mark.parametrize("relation", ["__lt__", "__le__", "__gt__", "__ge__", "eq", "ne"])
def test_comparisons_with_nan_are_false_but_for_ne(target: Target, run: Run, relation: str) -> None:
    """NaN is unordered and equal to nothing."""
    x, out = np.array([np.nan, 1.0], np.float32), np.zeros(1, np.bool)
    module = Module(target)
    with module.kernel("k") as b:
        source = b.buffer(0, F32)
        b.buffer(1, BOOL).store(getattr(source.load(0), relation)(source.load(1)))
    run(module, "k", [x, out])
    assert out[0] == (relation == "ne")


def test_conversions_keep_values(target: Target, run: Run) -> None:
    """Float to integer truncates; signed and unsigned bytes widen each in their way; bits_as keeps bits."""
    x, out = np.array([-2.75], np.float32), np.zeros(5, np.int64)
    module = Module(target)
    with module.kernel("k") as b:
        source, result = b.buffer(0, F32), b.buffer(1, I64)
        byte = source.load().to(I8)
        result.store(source.load().to(I64), 0)
        result.store(byte.to(I64), 1)
        result.store(byte.to(U8).to(I64), 2)
        result.store(source.load().bits_as(I32).to(I64), 3)
        result.store(source.load().to(BOOL).to(I64), 4)
    run(module, "k", [x, out])
    assert out.tolist() == [-2, -2, 254, int(x.view(np.int32)[0]), 1]


def test_masked_access_leaves_memory_alone(target: Target, run: Run) -> None:
    """Lanes under a false mask load 0 and store nothing."""
    x, out = np.arange(1, 9, dtype=np.float32), np.full(8, -1, np.float32)
    module = Module(target)
    with module.kernel("k") as b:
        span = Span(8, b.vector_of(BOOL, [1, 0, 1, 1, 0, 0, 0, 1]))
        loaded = b.buffer(0, F32).load(0, span)
        b.buffer(1, F32).store(loaded + b.sum_lanes(loaded), 0, span)
    run(module, "k", [x, out])
    assert out.tolist() == [17, -1, 19, 20, -1, -1, -1, 24]


def test_bools_are_bytes_in_memory(target: Target, run: Run) -> None:
    """Any byte but 0 is True; True is stored as 1."""
    x, out = np.array([0, 1, 2, 255], np.uint8), np.full(4, 7, np.uint8)
    module = Module(target)
    with module.kernel("k") as b:
        b.buffer(1, BOOL).store(b.buffer(0, BOOL).load(0, 4), 0, 4)
    run(module, "k", [x, out])
    assert out.tolist() == [0, 1, 1, 1]


def test_gather_and_scatter_follow_indices(target: Target, run: Run) -> None:
    """Element i of the result is taken from, or put at, index i."""
    x, index, out = np.arange(10, 50, 10, dtype=np.float32), np.array([3, 0, 2, 1], np.int32), np.zeros((2, 4), np.float32)
    module = Module(target)
    with module.kernel("k") as b:
        source, places, result = b.buffer(0, F32), b.buffer(1, I32).load(0, 4), b.buffer(2, F32)
        result.store(source.gather(places))
        result.at(4).scatter(source.load(0, 4), places)
    run(module, "k", [x, index, out])
    assert out.tolist() == [[40, 10, 30, 20], [20, 40, 30, 10]]


def test_lanes_are_taken_put_and_shuffled(target: Target, run: Run) -> None:
    """Lane numbers count through both vectors of a shuffle."""
    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    module = Module(target)
    with module.kernel("k") as b:
        vector = b.buffer(0, I32).load(0, 4)
        other = vector.with_lane(0, vector.lane(3) * 10)
        b.buffer(1, I32).store(vector.shuffle([0, 4, 3, 7], other))
    run(module, "k", [x, out])
    assert out.tolist() == [0, 30, 3, 3]


@pytest.mark.parametrize("kind", [F16, BF16])
def test_floats_of_16_bits_are_not_computed_with(target: Target, kind: Type) -> None:
    """Arithmetic, comparisons and conversions of their bits would be wrong; the message says what to use."""
    with Module(target).kernel("k") as b:
        x = b.buffer(0, kind).load()
        for operate in (
            lambda: x + x,
            lambda: -x,
            lambda: x < x,
            lambda: b.abs(x),
            lambda: x.to(F32),
            lambda: b.const(F32, 1).to(kind),
        ):
            with pytest.raises(TypeError, match="convert it by from_narrow and to_narrow"):
                operate()
