"""Types and the constants of each."""

import numpy as np
import pytest

from sardonyx.codegen.emit.types import BF16, BOOL, F16, F32, F64, I16, I32, U8, Type, literal, of_dtype


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        (F32, 1.0, "0x3FF0000000000000"),
        (F32, 0.1, "0x3FB99999A0000000"),
        (F32, 1e39, "0x7FF0000000000000"),
        (F64, -0.0, "0x8000000000000000"),
        (F16, 1.0, str(0x3C00)),
        (BF16, 1.00390625, str(0x3F80)),
        (BF16, float("nan"), str(0x7FC0)),
        (I32, -3, "-3"),
        (BOOL, 1, "true"),
        (F32.vector(4), 2, "splat (float 0x4000000000000000)"),
    ],
)
def test_constants_are_written_by_their_bits(kind: Type, number: float, text: str) -> None:
    """A constant is rounded once to its type, ties to even, and spread over the lanes."""
    assert literal(kind, number) == text


def test_a_vector_of_one_lane_is_the_scalar() -> None:
    """Kernels are written once for scalars and vectors."""
    assert F32.vector(1) == F32
    assert F32.vector(8).scalar == F32
    assert str(F32.vector(8)) == "<8 x float>"


def test_signs_are_part_of_the_type() -> None:
    """uint8 and int8 are both i8 to LLVM and differ to us."""
    assert of_dtype(np.dtype(np.uint8)) == U8
    assert of_dtype(np.dtype(np.int8)) != U8


def test_a_bool_takes_a_byte_in_memory() -> None:
    """Sizes in memory are whole bytes."""
    assert BOOL.size_bytes == 1
    assert F64.size_bytes == 8


def test_floats_of_16_bits_are_bits_and_differ_from_integers() -> None:
    """LLVM sees i16 in all of them, and no type of ours equals another."""
    assert {str(kind) for kind in (F16, BF16, I16)} == {"i16"}
    assert len({F16, BF16, I16}) == 3
    assert [kind.name for kind in (F16, BF16, F32, I16)] == ["float16", "bfloat16", "float", "i16"]
    assert [kind.is_narrow for kind in (F16, BF16, F32, I16)] == [True, True, False, False]
