"""Every element-wise operator for every type that kernels compute with, against the reference provider."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference
from support.models import graph
from support.moving import same

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.types import F32, I32, I64
from sardonyx.dtypes import Array, DataType
from sardonyx.ops.schema_table import table
from sardonyx.providers.cpu.expressions import expression

FLOATS = ["float", "double", "float16", "bfloat16"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = [*FLOATS, *INTEGERS]
WORST_ULP = 3
"""Functions are within 1.5 units of their own, the compositions of two within 3."""

_FINITE = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 0.3, -0.7, 10.0, -10.0, 50.0, -80.0, 1e-3, -1e-5, 1e4, -3e4, 7.25]
_SPECIAL = [1e-40, np.inf, -np.inf, np.nan]


def _type(kind: str) -> np.dtype[Any]:
    return DataType[kind.upper()].numpy


def _samples(kind: str) -> Array:
    """Edge values of a type."""
    if kind == "bool":
        return np.array([False, True])
    dtype = _type(kind)
    if kind in FLOATS:
        with np.errstate(over="ignore"):
            return np.array(_FINITE + _SPECIAL).astype(dtype)
    limits = np.iinfo(dtype)
    numbers = [0, 1, 2, 3, 7, 100, 46341, limits.max, limits.max - 1, limits.min, limits.min + 1, -1, -2, -7]
    return np.array([number for number in numbers if limits.min <= number <= limits.max], dtype)


def _pairs(kind: str) -> dict[str, Array]:
    left, right = np.meshgrid(_samples(kind), _samples(kind))
    return {"x": left.copy(), "z": right.copy()}


def _assert_same(found: list[Any], expected: list[Any], names: list[str], worst_ulp: float = WORST_ULP) -> None:
    for name, left, right in zip(names, found, expected, strict=True):
        assert (left.dtype, left.shape) == (right.dtype, right.shape), name
        if right.dtype.kind in "iub":
            np.testing.assert_array_equal(left, right, err_msg=name)
            continue
        limits, got, want = ml_dtypes.finfo(right.dtype), left.astype(np.float64), right.astype(np.float64)
        special = ~np.isfinite(want)
        np.testing.assert_array_equal(got[special], want[special], err_msg=name)
        unit = float(limits.eps) * np.maximum(np.abs(want[~special]), float(limits.smallest_normal))
        worst = np.max(np.abs(got[~special] - want[~special]) / unit, initial=0)
        assert worst <= worst_ulp, f"{name}: {worst} units"


def _takes(node: str, kind: str) -> bool:
    """Whether some version of the operator of a node such as "Max(x, z)" takes the type."""
    name = node.partition("(")[0]
    schemas = [table().find("", name, version) for version in table().versions("", name)]
    accepted = [schema.type_constraints[schema.inputs[0].type].types for schema in schemas if schema is not None]
    return any(str(f"tensor({DataType[kind.upper()]})") in types for types in accepted)


def _compare(
    inputs: str, nodes: list[str], feeds: dict[str, Any], *, opset: int = 24, isa: str | None = None, worst_ulp: float = WORST_ULP
) -> None:
    """Run each of the nodes, whose output is left out, on both providers."""
    names = [f"y{index}" for index in range(len(nodes))]
    lines = "\n".join(f"{name} = {node}" for name, node in zip(names, nodes, strict=True))
    body = f"graph({inputs}) -> ({', '.join(names)}) {{ {lines} }}"
    _assert_same(cpu_session(body, opset=opset, isa=isa).run(None, feeds), reference(body, feeds, opset=opset), nodes, worst_ulp)


_FLOAT_UNARY = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Floor",
    "Log",
    "Neg",
    "Reciprocal",
    "Relu",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
    "Mish",
    "Celu",
    "Elu",
    "HardSigmoid",
    "HardSwish",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Selu",
    "Shrink",
    "Swish",
    "ThresholdedRelu",
    "Clip",
]
_WITH_ATTRIBUTES = [
    "Celu(x) {alpha=0.3}",
    "Elu(x) {alpha=2.0}",
    "HardSigmoid(x) {alpha=0.3, beta=0.2}",
    "LeakyRelu(x) {alpha=0.3}",
    "Selu(x) {alpha=1.2, gamma=0.7}",
    "Shrink(x) {lambd=1.5, bias=0.25}",
    "Swish(x) {alpha=1.7}",
    "ThresholdedRelu(x) {alpha=-0.5}",
    "IsInf(x) {detect_negative=0}",
    "IsInf(x) {detect_positive=0}",
    "IsInf(x) {detect_positive=0, detect_negative=0}",
]
_BINARY = ["Add", "Div", "Mul", "Sub", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Sum"]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("isa", LEVELS)
def test_functions_of_one_float(kind: str, isa: str) -> None:
    """Finite values, both zeros, infinities, NaN and a denormal; types of 16 bits are computed in float32 and rounded once."""
    nodes = [node for node in (*(f"{name}(x)" for name in _FLOAT_UNARY), *_WITH_ATTRIBUTES) if _takes(node, kind)]
    _compare(f"x: {kind}[N]", nodes, {"x": _samples(kind)}, isa=isa)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "float16", "bfloat16"])
def test_gelu_in_both_forms(kind: str, isa: str) -> None:
    """Within four units; below -1, where it vanishes, within half a unit of x; rounded once where the type has 16 bits."""
    x = np.linspace(-9, 9, 145).astype(_type(kind))
    wide = x.astype(np.float64)
    erf = np.array([math.erf(value / math.sqrt(2)) for value in wide])
    tanh = np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3))
    body = f'graph(x: {kind}[N]) -> (y, z) {{ y = Gelu(x) z = Gelu(x) {{approximate="tanh"}} }}'
    for found, probability in zip(cpu_session(body, isa=isa).run(None, {"x": x}), (erf, tanh), strict=True):
        exact = 0.5 * wide * (1 + probability)
        unit = float(ml_dtypes.finfo(x.dtype).eps)
        assert np.all(np.abs(found.astype(np.float64) - exact) <= 4 * unit * np.abs(exact) + 2.0**-24 * np.abs(wide))


@pytest.mark.parametrize("kind", FLOATS)
def test_operators_of_two_floats(kind: str) -> None:
    """Every pair of edge values: NaN wins, and -0 is 0."""
    nodes = [f"{name}(x, z)" for name in (*_BINARY, "Mean", "Pow")] + ["Mod(x, z) {fmod=1}", "Mod(x, z)"]
    _compare(f"x: {kind}[M, N], z: {kind}[M, N]", nodes, _pairs(kind), opset=28)


@pytest.mark.parametrize("kind", FLOATS)
def test_prelu_takes_the_slope_below_zero_only(kind: str) -> None:
    """An infinite slope does not reach what lies above."""
    x, slope = np.array([-2, -0.5, 0, 3, np.nan]).astype(_type(kind)), np.array([0.5, 4, np.inf, np.inf, 1]).astype(_type(kind))
    (found,) = cpu_session(f"graph(x: {kind}[N], s: {kind}[N]) -> (y) {{ y = PRelu(x, s) }}").run(None, {"x": x, "s": slope})
    np.testing.assert_array_equal(found.astype(np.float64), [-1, -2, 0, 3, np.nan])


@pytest.mark.parametrize("kind", INTEGERS)
def test_operators_of_integers(kind: str) -> None:
    """Arithmetic wraps around; a quotient truncates, and is 0 for a divisor of 0, as is a remainder; nothing traps."""
    nodes = [f"{name}(x, z)" for name in (*_BINARY, "Mod", "PRelu")] + ["Mod(x, z) {fmod=1}"]
    nodes += [f"{name}(x)" for name in ("Abs", "Neg", "Relu", "Sign", "Clip")]
    nodes = [node for node in nodes if _takes(node, kind)]
    _compare(f"x: {kind}[M, N], z: {kind}[M, N]", nodes, _pairs(kind))


def test_operators_of_bools() -> None:
    """All combinations."""
    nodes = ["And(x, z)", "Or(x, z)", "Xor(x, z)", "Equal(x, z)", "Not(x)", "Where(x, x, z)"]
    _compare("x: bool[M, N], z: bool[M, N]", nodes, _pairs("bool"))


@pytest.mark.parametrize("kind", [*NUMBERS, "bool"])
def test_a_condition_takes_either(kind: str) -> None:
    """Every type; NaN and -0 are moved as they are."""
    feeds = _pairs(kind) | {"c": np.resize([True, False, False], _pairs(kind)["x"].shape)}
    _compare(f"c: bool[M, N], x: {kind}[M, N], z: {kind}[M, N]", ["Where(c, x, z)"], feeds, worst_ulp=0)


@pytest.mark.parametrize("kind", [*NUMBERS, "bool"])
def test_casts_from_every_type_to_every_other(kind: str) -> None:
    """Floats become integers where they fit; integers keep their low bits; what is not 0 is true."""
    others = [other for other in (*NUMBERS, "bool") if (kind, other) != ("double", "float16")]
    wide = [other for other in others if other in FLOATS or other == "bool" or kind not in FLOATS]
    _compare(f"x: {kind}[N]", [_cast_to(other) for other in wide], {"x": _samples(kind)}, worst_ulp=0)
    if kind in FLOATS:
        small = [_cast_to(other) for other in others if other not in wide]
        _compare(f"x: {kind}[N]", small, {"x": np.linspace(0, 100, 37).astype(_type(kind))}, worst_ulp=0)


def _cast_to(kind: str) -> str:
    return f"Cast(x) {{to={int(DataType[kind.upper()])}}}"


def test_a_cast_from_float64_to_float16_rounds_once() -> None:
    """Between two float16, just above or below the middle of them; beyond the largest; denormal; no number."""
    middle = np.arange(1, 200) / 1024 + 1 + 1 / 2048
    x = np.concatenate([middle, middle + 1e-12, middle - 1e-12, [65519.999999, 65520.0, 1e300, np.inf, np.nan, 2e-8, 3e-8, 1e-300]])
    body, feeds = "graph(x: double[N]) -> (y) { y = Cast(x) {to=10} }", {"x": np.concatenate([x, -x, [0.0, -0.0]])}
    _assert_same(cpu_session(body).run(None, feeds), reference(body, feeds), [body])


@pytest.mark.parametrize("kind", FLOATS)
def test_powers_that_are_constant(kind: str) -> None:
    """Small whole ones, roots, negative ones; the constant may be of another type than the base."""
    for number in ("0", "1", "2", "3", "4", "-1", "-2", "7", "2.5", "0.1"):
        for other in {kind, "float", "double"} | ({"int64"} if "." not in number else set()):
            body = f"graph(x: {kind}[N]) -> (y) {{ c: {other}[] = {number} y = Pow(x, c) }}"
            feeds = {"x": _samples(kind)}
            _assert_same(cpu_session(body).run(None, feeds), reference(body, feeds), [body])


@pytest.mark.parametrize("kind", [kind for kind in INTEGERS if _takes("Pow", kind)])
def test_small_powers_of_integers_wrap_around(kind: str) -> None:
    """As multiplication does."""
    for number in (1, 2, 3, 4):
        body = f"graph(x: {kind}[N]) -> (y) {{ c: {kind}[] = {number} y = Pow(x, c) }}"
        _assert_same(cpu_session(body).run(None, {"x": _samples(kind)}), reference(body, {"x": _samples(kind)}), [body])


@pytest.mark.parametrize("other", ["int32", "int64", "uint8", "uint64", "int16"])
@pytest.mark.parametrize("kind", [kind for kind in INTEGERS if _takes("Pow", kind)])
def test_computed_powers_of_integers(kind: str, other: str) -> None:
    """Whole ones wrap around, negative ones are truncated reciprocals."""
    least = 0 if other.startswith("u") else -3
    x, z = np.meshgrid(np.array([-7, -2, -1, 0, 1, 2, 3, 46341], _type(kind)), np.arange(least, 70).astype(_type(other)))
    _compare(f"x: {kind}[M, N], z: {other}[M, N]", ["Pow(x, z)"], {"x": x.copy(), "z": z.copy()})


@pytest.mark.parametrize("kind", [kind for kind in INTEGERS if _takes("Pow", kind)])
def test_fractional_powers_of_integers_are_truncated(kind: str) -> None:
    """Computed in float64."""
    feeds = {"x": np.array([10, 4, 27, 2, 0, 1], _type(kind)), "z": np.array([0.5, 0.5, 1 / 3, 10, 2, -1], np.float32)}
    _compare(f"x: {kind}[N], z: float[N]", ["Pow(x, z)"], feeds)


@pytest.mark.parametrize("other", ["double", "int64", "int32", "float16"])
def test_a_power_of_another_type(other: str) -> None:
    """Is not rounded to the type of the base: the parity of a large power decides on the sign."""
    whole = np.array([0, 1, 2, 3, -3, 2047 if other == "float16" else 16777217]).astype(_type(other))
    x, z = np.meshgrid(np.array([-1, 1, 0.5, -2, 3], np.float32), whole)
    _compare(f"x: float[M, N], z: {other}[M, N]", ["Pow(x, z)"], {"x": x.copy(), "z": z.copy()})


def test_limits_that_are_left_out_are_the_greatest_finite_numbers() -> None:
    """Of the type since opset 11, of float32 since 6, and none before; the upper one wins where they cross."""
    feeds = {"x": _samples("float")}
    for opset in (1, 6):
        _compare(
            "x: float[N]",
            ["Clip(x)", *(f"Clip(x) {{{text}}}" for text in ("min=-1.0", "max=2.0", "min=0.5, max=0.25"))],
            feeds,
            opset=opset,
        )
    limits = {"low": np.float32(0.5), "high": np.float32(0.25)}
    nodes = ["Clip(x, low)", "Clip(x, low, high)", "Clip(x, _, high)", "Clip(x)"]
    _compare("x: float[N], low: float[], high: float[]", nodes, feeds | {name: np.array(value) for name, value in limits.items()})


@pytest.mark.parametrize("text", ["Max(x, c)", "Max(c, x)", "Min(x, c)", "Min(c, x)", "Clip(x, c)", "Clip(x, _, c)", "Add(x, c)"])
@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "-0.0"])
def test_constants_that_are_no_plain_numbers(text: str, number: str) -> None:
    """NaN wins as a constant too."""
    body = f"graph(x: float[N]) -> (y) {{ c: float[] = {number} y = {text} }}"
    feeds = {"x": _samples("float")}
    _assert_same(cpu_session(body).run(None, feeds), reference(body, feeds), [body])


@pytest.mark.parametrize("kind", NUMBERS)
def test_one_and_three_operands(kind: str) -> None:
    """Variadic operators."""
    names = [name for name in ("Max", "Min", "Sum", "Mean") if _takes(name, kind)]
    with_nothing_to_cancel = np.array([1, 2, 3, 5, 100]).astype(_type(kind))
    feeds = {"x": with_nothing_to_cancel, "z": with_nothing_to_cancel[::-1].copy()}
    _compare(f"x: {kind}[N], z: {kind}[N]", [f"{name}(x, z, x)" for name in names] + [f"{name}(x)" for name in names], feeds)


@pytest.mark.parametrize("opset", [1, 6, 7, 9, 12, 13, 14, 20])
def test_older_versions(opset: int) -> None:
    """What their defaults were."""
    nodes = [f"{name}(x)" for name in ("Elu", "Selu", "HardSigmoid", "LeakyRelu", "Relu", "Abs", "Clip", "Exp", "Softplus")]
    nodes += ["Celu(x)"] if opset >= 12 else []
    _compare("x: float[N]", nodes, {"x": _samples("float")}, opset=opset)


def test_types_that_an_operator_is_not_defined_for_are_declined() -> None:
    """The reason names the type; operands of two types are declined as well."""
    assert declined("graph(x: string[N], z: string[N]) -> (y) { y = Equal(x, z) }") == ["input 0 has elements of type string"]
    (node,) = graph("graph(x: int32[N]) -> (y) { y = Exp(x) }")
    with pytest.raises(TypeError, match="Exp of signed elements of 32 bits"):
        expression(node, [argument(0, I32)])
    (node,) = graph("graph(x: float[N], z: int64[N]) -> (y) { y = Add(x, z) }")
    with pytest.raises(TypeError, match="different types"):
        expression(node, [argument(0, F32), argument(1, I64)])
    (node,) = graph("graph(c: float[N], x: float[N]) -> (y) { y = Where(c, x, x) }")
    with pytest.raises(TypeError, match="condition"):
        expression(node, [argument(0, F32), argument(1, F32), argument(1, F32)])


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("kind", ["uint8", "uint64", "int8", "int32", "int64"])
def test_shifts_by_any_number_of_places(kind: str, direction: str) -> None:
    """Negative ones and too many leave copies of what moves in."""
    x = np.arange(-60, 60).reshape(3, 40).astype(kind)
    y = np.random.default_rng(0).integers(0 if kind[0] == "u" else -2, 70, (3, 40)).astype(kind)
    body = f'graph(x: {kind}[A, B], y: {kind}[A, B]) -> (z) {{ z = BitShift(x, y) {{direction = "{direction}"}} }}'
    same(body, {"x": x, "y": y}, opset=28)
