"""Floats to small integers, as the standard's QuantizeLinear rounds them."""

from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.saturate import can_pack, limits_of_kind, pack_saturated, round_clipped
from sardonyx.codegen.emit.types import F32, I8, I16, I32, U8, U16, Type
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_DTYPES = {"i8s": np.int8, "i8u": np.uint8, "i16s": np.int16, "i16u": np.uint16}
_NUMBERS = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128.5, 254.5, 255.5, -128.5, -129.5, 300, -300, 32767.5, -32768.5, 65535.5]
_NUMBERS += [1e9, -1e9, 2147483648.0, -2147483648.0, 3e38, -3e38, np.inf, -np.inf, np.nan, 1e-40, 0.49999997, 40000, -40000, 70000]


def _dtype(kind: Type) -> type:
    return _DTYPES[f"i{kind.bits}{kind.kind.value[0]}"]


def _expected(x: Array, zero: int, kind: Type) -> Array:
    low, high = limits_of_kind(kind)
    with np.errstate(all="ignore"):
        shifted = np.clip(np.rint(x.astype(np.float64)) + zero, low, high)
    return np.where(np.isnan(x), low, shifted).astype(_dtype(kind))


@pytest.mark.parametrize(("kind", "zeros"), [(U8, (0, 3, 255)), (I8, (0, -128, 127)), (U16, (0, 65535)), (I16, (0, -32768, 32767))])
def test_one_vector(target: Target, run: Callable[..., None], kind: Type, zeros: tuple[int, ...]) -> None:
    """Ties go to even before the zero point is added; infinities saturate, and NaN is the least number."""
    x, lanes = np.resize(np.array(_NUMBERS, np.float32), 64), target.lanes(32)
    for count in (4 * lanes, lanes, 2, 1):
        module = Module(target)
        with module.kernel("round") as b:
            for i in range(0, 64, count):
                zero = b.buffer(1, I32).load().splat(count)
                least, greatest = ((limit - zero).to(F32) for limit in limits_of_kind(kind))
                value = round_clipped(b, b.buffer(0, F32).load(i, count), zero, least, greatest)
                b.buffer(2, kind).store(value.to(kind), i, count)
        for zero in zeros:
            found = np.zeros(64, _dtype(kind))
            run(module, "round", [x, np.array([zero], np.int32), found], [])
            assert found.tolist() == _expected(x, zero, kind).tolist()


@pytest.mark.parametrize("vectors", [2, 3, 4])
@pytest.mark.parametrize(("kind", "zeros"), [(U8, (0, 3, 255)), (I8, (0, -128, 127))])
def test_several_vectors(target: Target, run: Callable[..., None], kind: Type, zeros: tuple[int, ...], vectors: int) -> None:
    """Vectors that are narrowed together keep their order, and give what each gives alone."""
    lanes = target.lanes(32)
    assert can_pack(target, vectors, lanes)
    x = np.resize(np.array(_NUMBERS, np.float32), vectors * lanes)
    module = Module(target)
    with module.kernel("pack") as b:
        parts = [b.buffer(0, F32).load(i * lanes, lanes) for i in range(vectors)]
        packed = pack_saturated(b, parts, b.buffer(1, I32).load(), kind)
        b.buffer(2, kind).store(packed, 0, packed.type.lanes)
    for zero in zeros:
        found = np.zeros(4 * lanes, _dtype(kind))
        run(module, "pack", [x, np.array([zero], np.int32), found], [])
        assert found[: len(x)].tolist() == _expected(x, zero, kind).tolist()


def test_other_numbers_of_lanes_are_not_packed(target: Target) -> None:
    """Only vectors of the target's width."""
    assert not can_pack(target, 4, 1)
    assert not can_pack(target, 1, target.lanes(32))
