"""Every operator against NumPy, for every type that it takes."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument, constant, round_saturated
from sardonyx.codegen.emit.expr_llvm import write_expressions, write_invariants
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I8, I16, I32, U8, Type, of_dtype
from sardonyx.codegen.kernels.elementwise import Access, MapParams, write_map
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

_FLOATS: list[type] = [np.float32, np.float64]
_SIGNED: list[type] = [np.int8, np.int32, np.int64]
_INTEGERS: list[type] = [*_SIGNED, np.uint8]
_NUMBERS: list[type] = [*_FLOATS, *_INTEGERS]
_TYPES: list[type] = [*_NUMBERS, np.bool_]


def _apply(target: Target, build: Callable[..., ElementExpr], arrays: Sequence[Array]) -> Array:
    """Evaluate an expression of equally long arrays."""
    result_type = build(*(argument(i, of_dtype(array.dtype)) for i, array in enumerate(arrays)))
    module = Module(target)
    accesses = [Access.ORDERED] * (len(arrays) + 1)
    write_map(module, "map", [of_dtype(array.dtype) for array in arrays], [result_type], accesses)
    engine = Engine(target)
    engine.add(module)
    dtype = {"float": "f4", "double": "f8", "i1": "?"}.get(result_type.type.element)
    sign = "u" if result_type.type.kind.value == "unsigned" else "i"
    out = np.zeros(arrays[0].size, dtype or f"{sign}{result_type.type.size_bytes}")
    params = MapParams.over(out.shape, [(1,)] * len(accesses), accesses)
    call(engine, "map", [*arrays, out], params.words(), 0, params.tasks())
    return out


def _samples(dtype: type, count: int = 77) -> tuple[Array, Array]:
    """Two arrays with every edge of the type in every pairing."""
    rng = np.random.default_rng(0)
    edges: Array
    extra: Array
    if dtype is np.bool_:
        return rng.integers(0, 2, count).astype(dtype), rng.integers(0, 2, count).astype(dtype)
    if dtype in _FLOATS:
        edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 2.5, -2.5], dtype)
        extra = (rng.standard_normal(count) * 4).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        edges = np.array([0, 1, limits.min, limits.max, limits.max - 1, 3, 7], dtype)
        extra = rng.integers(limits.min, limits.max, count, dtype=dtype)
    left, right = (grid.ravel() for grid in np.meshgrid(edges, edges))
    return np.concatenate([left, extra]).astype(dtype), np.concatenate([right, extra[::-1]]).astype(dtype)


def _quotient(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.divide(x, y)
    nonzero = np.where(y == 0, 1, y).astype(x.dtype)
    exact = [int(math.copysign(1, int(a) * int(b))) * (abs(int(a)) // abs(int(b))) for a, b in zip(x, nonzero, strict=True)]
    return np.where(y == 0, 0, np.array(exact, object).astype(np.uint64 if x.dtype.kind == "u" else object)).astype(object)


def _wrap(values: Array, dtype: np.dtype[Any]) -> Array:
    bits = dtype.itemsize * 8
    return np.array([((int(v) & (2**bits - 1)) ^ (2 ** (bits - 1))) - 2 ** (bits - 1) for v in values]).astype(dtype)


_BINARY: list[tuple[str, Callable[..., Any], list[type]]] = [
    ("add", np.add, _NUMBERS),
    ("sub", np.subtract, _NUMBERS),
    ("mul", np.multiply, _NUMBERS),
    ("div", np.divide, _FLOATS),
    ("max", np.maximum, _NUMBERS),
    ("min", np.minimum, _NUMBERS),
    ("modulo", np.mod, _INTEGERS),
    ("remainder", np.fmod, _NUMBERS),
    ("and", np.bitwise_and, [*_INTEGERS, np.bool_]),
    ("or", np.bitwise_or, [*_INTEGERS, np.bool_]),
    ("xor", np.bitwise_xor, [*_INTEGERS, np.bool_]),
    ("lt", np.less, _TYPES),
    ("le", np.less_equal, _TYPES),
    ("gt", np.greater, _TYPES),
    ("ge", np.greater_equal, _TYPES),
    ("eq", np.equal, _TYPES),
    ("ne", np.not_equal, _TYPES),
    ("power", np.power, _FLOATS),
    ("prelu", lambda x, y: np.where(x < 0, x * y, x), _FLOATS),
]


@pytest.mark.parametrize(("name", "reference", "dtypes"), _BINARY)
def test_operators_of_two_arguments(target: Target, name: str, reference: Callable[..., Any], dtypes: list[type]) -> None:
    """Each agrees with NumPy on every pair of edge values, without a trap."""
    for dtype in dtypes:
        x, y = _samples(dtype)
        with np.errstate(all="ignore"):
            expected = reference(x, y)
        result = _apply(target, OPERATORS[name], [x, y])
        if name == "power":
            np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=str(dtype))
        else:
            np.testing.assert_array_equal(result, expected, err_msg=str(dtype))


def test_a_product_and_a_sum_are_rounded_once_where_the_processor_can(target: Target) -> None:
    """A part of 2^-24 is left of the product then, else nothing."""
    x = np.full(37, 1 + 2**-12, np.float32)
    result = _apply(target, lambda x: OPERATORS["multiply_add"](x, x, -(1.0 + 2**-11)), [x])
    assert set(result.tolist()) == {2**-24 if target.has_fma else 0.0}


@pytest.mark.parametrize("dtype", _INTEGERS)
def test_integer_division_truncates_and_never_traps(target: Target, dtype: type) -> None:
    """A divisor of 0 gives 0; the least integer by -1 wraps to itself."""
    x, y = _samples(dtype)
    expected = _wrap(_quotient(x, y), np.dtype(dtype)) if dtype in _SIGNED else _quotient(x, y).astype(dtype)
    np.testing.assert_array_equal(_apply(target, OPERATORS["div"], [x, y]), expected)


@pytest.mark.parametrize(("name", "toward"), [("shift_left", "left"), ("shift_right", "right")])
def test_shifts_by_the_width_or_more_give_nothing(target: Target, name: str, toward: str) -> None:
    """Bits that leave the number are gone."""
    x, y = np.array([255, 255, 255, 129], np.uint8), np.array([0, 1, 8, 200], np.uint8)
    expected = [255, 254, 0, 0] if toward == "left" else [255, 127, 0, 0]
    assert _apply(target, OPERATORS[name], [x, y]).tolist() == expected


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))))


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0, x.astype(np.float64)))


_UNARY: list[tuple[str, Callable[..., Any], list[type]]] = [
    ("neg", np.negative, [*_FLOATS, *_SIGNED]),
    ("abs", np.abs, _NUMBERS),
    ("sign", np.sign, _NUMBERS),
    ("not", np.invert, [*_INTEGERS, np.bool_]),
    ("floor", np.floor, _FLOATS),
    ("ceil", np.ceil, _FLOATS),
    ("trunc", np.trunc, _FLOATS),
    ("round", np.rint, _FLOATS),
    ("sqrt", np.sqrt, _FLOATS),
    ("is_nan", np.isnan, _FLOATS),
    ("is_infinite", np.isinf, _FLOATS),
    ("relu", lambda x: np.maximum(x, 0), _NUMBERS),
    ("reciprocal", lambda x: 1 / x, _FLOATS),
    ("exp", np.exp, _FLOATS),
    ("softplus", _softplus, _FLOATS),
    ("leaky_relu", lambda x: np.where(x < 0, x * np.float32(0.01), x), [np.float32]),
    ("elu", lambda x: np.where(x < 0, np.expm1(x), x), _FLOATS),
    ("selu", lambda x: np.where(x < 0, 1.67326319217681884765625 * np.expm1(x), x) * 1.05070102214813232421875, _FLOATS),
    ("celu", lambda x: np.where(x < 0, np.expm1(x), x), _FLOATS),
    ("hard_sigmoid", lambda x: np.clip(x * 0.2 + 0.5, 0, 1), _FLOATS),
    ("hard_swish", lambda x: x * np.clip(x * x.dtype.type(1 / 6) + x.dtype.type(0.5), 0, 1), _FLOATS),
    ("swish", lambda x: x * _sigmoid(x), _FLOATS),
    ("mish", lambda x: x * np.tanh(_softplus(x)), _FLOATS),
    ("softsign", lambda x: x / (1 + np.abs(x)), _FLOATS),
    ("thresholded_relu", lambda x: np.where(x > 1, x, 0), _FLOATS),
    ("shrink", lambda x: np.where(np.abs(x) > 0.5, x, 0), _FLOATS),
    ("reverse_sqrt", lambda x: 1 / np.sqrt(x), _FLOATS),
]


@pytest.mark.parametrize(("name", "reference", "dtypes"), _UNARY)
def test_operators_of_one_argument(target: Target, name: str, reference: Callable[..., Any], dtypes: list[type]) -> None:
    """Each agrees with NumPy on infinities, NaN, zeros and integer limits too."""
    for dtype in dtypes:
        x, _ = _samples(dtype)
        if name == "shrink":
            x = x[~np.isnan(x)]
        with np.errstate(all="ignore"):
            expected = reference(x)
        np.testing.assert_allclose(_apply(target, OPERATORS[name], [x]), expected, rtol=1e-6, err_msg=str(dtype))


@pytest.mark.parametrize("source", _TYPES)
def test_casts_between_all_types(target: Target, source: type) -> None:
    """Values in range of the target convert as in NumPy."""
    x = np.array([0, 1, 2, 100, 7], source) if source is not np.bool_ else np.array([0, 1, 1, 0, 1], source)
    for dtype in _TYPES:
        kind = of_dtype(dtype)
        np.testing.assert_array_equal(_apply(target, lambda e, kind=kind: e.to(kind), [x]), x.astype(dtype), err_msg=str(dtype))


def test_narrow_floats_are_converted_on_the_way(target: Target) -> None:
    """float16 arrays are computed with after a cast, and rounded to even on the way back."""
    x = np.linspace(-70000, 70000, 99, dtype=np.float32)
    half = _apply(target, lambda e: e.to(of_dtype(np.float16)).to(of_dtype(np.float32)), [x])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(half, x.astype(np.float16).astype(np.float32))


def test_clip_takes_bounds_or_not(target: Target) -> None:
    """Either bound may be missing; NaN stays; bounds may be arrays."""
    x = np.array([-3, 0.5, 9, np.nan], np.float32)
    low, high = np.full(4, -1, np.float32), np.full(4, 2, np.float32)
    clip = OPERATORS["clip"]
    np.testing.assert_array_equal(_apply(target, lambda e: clip(e, 0, 6), [x]), [0, 0.5, 6, np.nan])
    np.testing.assert_array_equal(_apply(target, lambda e: clip(e, low=0), [x]), [0, 0.5, 9, np.nan])
    np.testing.assert_array_equal(_apply(target, lambda e: clip(e, high=6), [x]), [-3, 0.5, 6, np.nan])
    np.testing.assert_array_equal(_apply(target, clip, [x, low, high]), [-1, 0.5, 2, np.nan])


@pytest.mark.parametrize("kind", [U8, I8])
@pytest.mark.parametrize("to", [F32, I32, I16])
def test_what_is_rounded_is_a_number_as_it_is_stored(target: Target, kind: Type, to: Type) -> None:
    """Rounded and saturated numbers that are computed with again are those of the narrow type."""
    x = np.float32([0.5, 1.5, -0.5, 300, -300, np.inf, -np.inf, np.nan, *np.linspace(-200, 300, 50)])
    stored = _apply(target, lambda x: round_saturated(x, constant(3, I32), kind), [x])
    again = _apply(target, lambda x: round_saturated(x, constant(3, I32), kind).to(to), [x])
    assert again.tolist() == stored.tolist()
    low, high = (0, 255) if kind is U8 else (-128, 127)
    assert stored.tolist() == np.where(np.isnan(x), low, np.clip(np.rint(x) + 3, low, high)).tolist()


def test_a_zero_point_may_be_an_element(target: Target) -> None:
    """The limits follow from it, element by element."""
    x, zero = np.float32([1.5, 1e9, -1e9]), np.int32([0, 7, 9])
    assert _apply(target, lambda x, zero: round_saturated(x, zero, U8), [x, zero]).tolist() == [2, 255, 0]


def test_what_does_not_change_is_computed_before_a_loop(target: Target) -> None:
    """Steps of the given arguments only; the others are written in the loop, and read them."""
    x, scale, offset = (argument(index, of_dtype(np.dtype(np.float32))) for index in range(3))
    expr, module = x * (scale * scale + offset) + scale, Module(target)
    with module.kernel("map") as b:
        values, lanes = [b.buffer(index, F32) for index in range(4)], target.lanes(32)
        fixed = [values[1].load(0), values[2].load(0, lanes)]
        known = write_invariants(b, [expr], [None, *fixed], lanes)
        assert [value is None for value in known].count(True) == 3
        with b.loop(0, 4 * lanes, lanes) as i:
            operands = [values[0].load(i, lanes), *(value.splat(lanes) for value in fixed)]
            values[3].store(write_expressions(b, [expr], operands, known)[0], i, lanes)
    engine, lanes = Engine(target), target.lanes(32)
    engine.add(module)
    numbers = np.arange(4 * lanes, dtype=np.float32)
    factor, terms, result = np.full(1, 3, np.float32), np.arange(lanes, dtype=np.float32), np.zeros_like(numbers)
    call(engine, "map", [numbers, factor, terms, result])
    np.testing.assert_array_equal(result, numbers * (9 + np.tile(terms, 4)) + 3)
