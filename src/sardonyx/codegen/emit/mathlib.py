"""Elementary functions of float32 vectors, as text in the kernel that uses them.

Every function takes the body being written and a value of any number of lanes. Its docstring states the method, the interval
on which the polynomial was fitted, the largest error met on dense sweeps over all levels (in units of the last place, where
results are normal numbers), and the special values. Polynomials have the least maximum error on their interval (Lawson's
iteration, weighted by the function); `coefficients` holds them in the order of rising powers.

float64 values take the same route where a polynomial is written here (exp, log and what is made of them), and otherwise call
the C library lane by lane: right, but not fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from sardonyx.codegen.emit import coefficients
from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.exponential import (
    LN2_HIGH,
    LN2_LOW,
    SIGMOID_UNIT,
    clamp,
    exp_of_sigmoid,
    exp_scaled,
    exp_within,
    half_expm1_of_double,
    polynomial,
    power_of_two,
    reduce_exp,
)
from sardonyx.codegen.emit.types import F32, F64, I32, I64
from sardonyx.codegen.emit.values import Register

__all__ = [
    "FUNCTIONS",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "gelu",
    "gelu_tanh",
    "log",
    "log1p",
    "power",
    "sigmoid",
    "sin",
    "sinh",
    "softplus",
    "tan",
    "tanh",
]

_SINH = tuple(1 / math.factorial(2 * k + 1) for k in range(1, 6))
_EXP_DOUBLE = tuple(1 / math.factorial(k) for k in range(2, 14))
_LOG_DOUBLE = tuple(2 / (2 * k + 1) for k in range(1, 11))

_HALF_PI, _HALF_PI_LOW = 1.5707963705062866, -4.371139000186241e-08  # the nearest float32 and what it leaves
_QUARTER_TURN, _QUARTER_TURN_LOW = 1.57079632673412561, 6.0771005065061922e-11  # 33 bits of pi / 2, and the rest
_FAR_TURNS = 1.0e6
_INF, _NAN = math.inf, math.nan
_SIGN = -(2**31)  # the bit that says whether a float32 is negative


def exp(b: Function, x: Register) -> Register:
    """Return the exponential: e to the power of x.

    Method: x = n ln 2 + r, |r| <= ln 2 / 2; polynomial of degree 6 in r; scaling by 2^n in two exact steps.
    Error: 1.1 ulp; denormal results are rounded once more. exp(-inf) = 0, above 88.72 inf, NaN stays.
    """
    return _exp_double(b, x) if x.type.scalar == F64 else exp_scaled(b, x, 0)


def expm1(b: Function, x: Register) -> Register:
    """Return the exponential less 1, accurate near 0.

    Method: as exp, with 2^n (e^r - 1) + (2^n - 1). Error: 1.7 ulp. expm1(-0) = -0, -inf gives -1, above 88.72 inf, NaN stays.
    """
    if x.type.scalar == F64:
        return _expm1_double(b, x)
    n, r = reduce_exp(b, clamp(b, x, -20.0, 89.0))
    near = b.fma(r * r, polynomial(b, r, coefficients.EXP), r)
    half = power_of_two(b, n.to(I32) - 1)
    return b.select(x.eq(0), x, b.fma(half, near, half - 0.5) * 2)


def log(b: Function, x: Register) -> Register:
    """Return the natural logarithm.

    Method: x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) as a polynomial of degree 11.
    Error: 1 ulp, denormals included. log(0) = -inf, below 0 NaN, log(inf) = inf, NaN stays.
    """
    if x.type.scalar == F64:
        return _log_double(b, x)
    return _log_edges(b, x, _log_of(b, x, None))


def log1p(b: Function, x: Register) -> Register:
    """Return the natural logarithm of 1 + x, accurate near 0.

    Method: as log on u = 1 + x, with what the rounding of u lost added back. Error: 1.5 ulp.
    log1p(-0) = -0, log1p(-1) = -inf, below NaN, log1p(inf) = inf, NaN stays.
    """
    if x.type.scalar == F64:
        return _libm(b, "log1p", x)
    u = x + 1
    lost = b.select(b.abs(x) < 1, x - (u - 1), 1 - (u - x))
    result = _log_edges(b, u, _log_of(b, u, lost / u))
    return b.select(b.abs(x) < 2.0**-24, x, result)


def sigmoid(b: Function, x: Register) -> Register:
    """Return 1 / (1 + e^-x).

    Method: in float64, with e = exp(-|x|), the numerator is 1 or e by the sign of x; in float32 numerator and denominator are
    multiplied by 2^-24, so that e^-x stays finite: the left tail keeps its relative accuracy, down to the least denormal.
    Error: 2.1 ulp. 0 at -inf, 1 at inf, NaN stays.
    """
    if x.type.scalar == F64:
        e = exp(b, -b.abs(x))
        return b.select(x < 0, e, x.like(1)) / (e + 1)
    return x.like(SIGMOID_UNIT) / (exp_of_sigmoid(b, -x) + SIGMOID_UNIT)


def tanh(b: Function, x: Register) -> Register:
    """Return the hyperbolic tangent.

    Method: with t = expm1(2|x|) / 2, t / (t + 1), signed as x; in float64 with t = expm1(-2|x|), -t / (t + 2).
    Error: 2.5 ulp. Odd, -0 stays, -1 and 1 at infinity, NaN stays.
    """
    if x.type.scalar == F64:
        t = _expm1_double(b, b.abs(x) * -2)
        return _signed(b, -t / (t + 2), x)
    t = half_expm1_of_double(b, b.abs(x))
    return ((t / (t + 1)).bits_as(I32) | x.bits_as(I32) & _SIGN).bits_as(F32)


def softplus(b: Function, x: Register) -> Register:
    """Return log(1 + e^x).

    Method: max(x, 0) + log1p(exp(-|x|)). Error: 2 ulp. 0 at -inf, inf at inf, NaN stays.
    """
    return b.max(x.like(0), x) + log1p(b, exp(b, -b.abs(x)))


def erf(b: Function, x: Register) -> Register:
    """Return the error function.

    Method: below 1, x times a polynomial of degree 6 in x^2; from 1, 1 - exp(-q), q a polynomial of degree 6 on [1, 3.95];
    beyond, 1 to the last bit. Error: 1.5 ulp. Odd, -0 stays, -1 and 1 at infinity, NaN stays.
    """
    if x.type.scalar == F64:
        return _libm(b, "erf", x)
    t = b.min(x.like(3.95), b.abs(x))
    near = b.fma(t, polynomial(b, t * t, coefficients.ERF_NEAR), t)
    far = 1 - exp_within(b, -polynomial(b, t, coefficients.ERF_FAR))
    return _signed(b, b.select(t < 1, near, far), x)


def gelu(b: Function, x: Register) -> Register:
    """Multiply x by the normal distribution's probability of less than x: x / 2 (1 + erf(x / sqrt(2))).

    Error: 2 ulp for x > -1; below, where the result vanishes, at most 2^-24 |x|. inf at inf, NaN at -inf, NaN stays.
    """
    half = x * 0.5
    return b.fma(half, erf(b, x * math.sqrt(0.5)), half)


def gelu_tanh(b: Function, x: Register) -> Register:
    """Return the approximation of gelu by tanh: x / 2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3).

    Method: x sigmoid(2u), which is the same. Error: 4 ulp for x > -1; below at most 2^-24 |x|. NaN at -inf, NaN stays.
    """
    scale = 2 * math.sqrt(2 / math.pi)
    return x * sigmoid(b, x * b.fma(x * x, 0.044715 * scale, scale))


def sin(b: Function, x: Register) -> Register:
    """Return the sine of x in radians.

    Method: x = n pi / 2 + r in float64, |r| <= pi / 4; polynomials of degree 7 (sine) and 8 (cosine) chosen by n; beyond a
    million turns the C library. Error: 1.5 ulp. Odd, -0 stays, NaN at infinity, NaN stays.
    """
    return _trigonometric(b, x, "sin", _sin_of_turns)


def cos(b: Function, x: Register) -> Register:
    """Return the cosine of x in radians; method and error as sin. NaN at infinity, NaN stays."""
    return _trigonometric(b, x, "cos", lambda b, n, sine, cosine, _: _sin_of_turns(b, n + 1, sine, cosine, None))


def tan(b: Function, x: Register) -> Register:
    """Return the tangent of x in radians: sine by cosine of the reduced angle.

    Error: 3.4 ulp. Odd, -0 stays, NaN at infinity, NaN stays.
    """
    return _trigonometric(b, x, "tan", _tan_of_turns)


def asin(b: Function, x: Register) -> Register:
    """Return the inverse sine.

    Method: up to 1/2 an odd polynomial of degree 13; beyond, pi / 2 - 2 asin(sqrt((1 - x) / 2)). Error: 2.3 ulp.
    Odd, -0 stays, NaN outside [-1, 1], NaN stays.
    """
    if x.type.scalar == F64:
        return _libm(b, "asin", x)
    far, near = _asin_halves(b, x)
    return _signed(b, b.select(b.abs(x) > 0.5, (_HALF_PI_LOW - near * 2) + _HALF_PI, far), x)


def acos(b: Function, x: Register) -> Register:
    """Return the inverse cosine; method as asin. Error: 1.1 ulp. 0 at 1, NaN outside [-1, 1], NaN stays."""
    if x.type.scalar == F64:
        return _libm(b, "acos", x)
    far, near = _asin_halves(b, x)
    middle = (_HALF_PI_LOW - _signed(b, far, x)) + _HALF_PI
    ends = b.select(x < 0, (2 * _HALF_PI_LOW - near * 2) + 2 * _HALF_PI, near * 2)
    return b.select(b.abs(x) > 0.5, ends, middle)


def atan(b: Function, x: Register) -> Register:
    """Return the inverse tangent.

    Method: beyond 1, pi / 2 - atan(1 / x); an odd polynomial of degree 19 on [0, 1]. Error: 2 ulp.
    Odd, -0 stays, pi / 2 at infinity, NaN stays.
    """
    if x.type.scalar == F64:
        return _libm(b, "atan", x)
    t = b.abs(x)
    z = b.select(t > 1, -1 / t, t)
    inner = b.fma(z * z * z, polynomial(b, z * z, coefficients.ATAN), z)
    return _signed(b, b.select(t > 1, (inner + _HALF_PI_LOW) + _HALF_PI, inner), x)


def sinh(b: Function, x: Register) -> Register:
    """Return the hyperbolic sine.

    Method: up to 1 the series to x^11; beyond, e / 2 - 1 / 2e. Error: 2 ulp. Odd, -0 stays, infinite beyond 89.4, NaN stays.
    """
    if x.type.scalar == F64:
        return _libm(b, "sinh", x)
    t = b.abs(x)
    half = exp_scaled(b, t, -1)
    near = b.fma(t * t * t, polynomial(b, t * t, _SINH), t)
    return _signed(b, b.select(t < 1, near, half - 0.25 / half), x)


def cosh(b: Function, x: Register) -> Register:
    """Return the hyperbolic cosine: e / 2 + 1 / 2e. Error: 2 ulp. inf beyond 89.4 on both sides, NaN stays."""
    if x.type.scalar == F64:
        return _libm(b, "cosh", x)
    half = exp_scaled(b, b.abs(x), -1)
    return half + 0.25 / half


def asinh(b: Function, x: Register) -> Register:
    """Return the inverse hyperbolic sine.

    Method: log1p(x + x^2 / (1 + sqrt(x^2 + 1))); beyond 10,000 log(x) + log(2). Error: 2 ulp. Odd, -0, infinities and NaN stay.
    """
    if x.type.scalar == F64:
        return _libm(b, "asinh", x)
    t = b.abs(x)
    square = t * t
    near = log1p(b, t + square / (b.sqrt(square + 1) + 1))
    return _signed(b, b.select(t > 1e4, log(b, t) + math.log(2), near), x)


def acosh(b: Function, x: Register) -> Register:
    """Return the inverse hyperbolic cosine.

    Method: with t = x - 1, log1p(t + sqrt(t (t + 2))); beyond 10,000 log(x) + log(2). Error: 2.3 ulp.
    NaN below 1, inf and NaN stay.
    """
    if x.type.scalar == F64:
        return _libm(b, "acosh", x)
    t = x - 1
    near = log1p(b, t + b.sqrt(t * (t + 2)))
    return b.select(x < 1, x.like(_NAN), b.select(x > 1e4, log(b, x) + math.log(2), near))


def atanh(b: Function, x: Register) -> Register:
    """Return the inverse hyperbolic tangent: log1p(2t / (1 - t)) / 2 on t = |x|.

    Error: 2 ulp. Odd, -0 stays, infinite at 1, NaN beyond.
    """
    if x.type.scalar == F64:
        return _libm(b, "atanh", x)
    t = b.abs(x)
    return _signed(b, log1p(b, t * 2 / (1 - t)) * 0.5, x)


def power(b: Function, x: Register, y: Register) -> Register:
    """Return the power of x to y.

    Method: exp(y log |x|) in float64, rounded once, signed by whether y is odd. Error: 1 ulp.
    Special values as in C: pow(x, 0) = pow(1, y) = 1 even for NaN; NaN for finite x < 0 and y no integer; pow(-1, inf) = 1.
    """
    if x.type.scalar == F64:
        return _libm(b, "pow", x, y)
    base = b.abs(x)
    magnitude = _exp_double(b, y.to(F64) * _log_double(b, base.to(F64))).to(F32)
    whole = b.call_math("floor", y).eq(y)
    half = y * 0.5
    odd = whole & b.call_math("floor", half).ne(half)
    signed = b.select(odd, b.call_math("copysign", magnitude, x), magnitude)
    impossible = (x < 0) & (x > -_INF) & ~whole
    result = b.select(impossible, x.like(_NAN), signed)
    return b.select(y.eq(0) | x.eq(1) | (base.eq(1) & b.abs(y).eq(_INF)), x.like(1), result)


FUNCTIONS: Mapping[str, Callable[[Function, Register], Register]] = {
    "acos": acos,
    "acosh": acosh,
    "asin": asin,
    "asinh": asinh,
    "atan": atan,
    "atanh": atanh,
    "cos": cos,
    "cosh": cosh,
    "erf": erf,
    "exp": exp,
    "expm1": expm1,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "log": log,
    "log1p": log1p,
    "sigmoid": sigmoid,
    "sin": sin,
    "sinh": sinh,
    "softplus": softplus,
    "tan": tan,
    "tanh": tanh,
}
"""Every function of one argument, under its name."""


def _signed(b: Function, magnitude: Register, sign: Register) -> Register:
    return b.call_math("copysign", magnitude, sign)


def _log_of(b: Function, x: Register, addend: Register | None) -> Register:
    """Return log(x) for positive finite x, plus a small addend."""
    tiny = x < 2.0**-126
    scaled = b.select(tiny, x * 2.0**23, x)
    bits = scaled.bits_as(I32)
    n = (bits - 0x3F3504F3) >> 23
    f = (bits - (n << 23)).bits_as(F32) - 1
    turns = (n - b.select(tiny, n.like(23), n.like(0))).to(F32)
    square = f * f
    small = f * square * polynomial(b, f, coefficients.LOG) + turns * LN2_LOW
    if addend is not None:
        small = small + addend
    return b.fma(turns, LN2_HIGH, b.fma(square, -0.5, small) + f)


def _log_edges(b: Function, x: Register, result: Register) -> Register:
    """Return `result` where x is positive and finite, else what a logarithm is there."""
    edge = b.select(x.eq(0), x.like(-_INF), b.select(x < 0, x.like(_NAN), x))
    return b.select((x > 0) & (x < _INF), result, edge)


def _exp_double(b: Function, x: Register) -> Register:
    """Return e^x of float64: the series to r^13. Error: 1 ulp."""
    n = b.round_even(clamp(b, x, -746.0, 711.0) * (1 / math.log(2)))
    r = b.fma(n, -1.9082149292705877e-10, b.fma(n, -0.693147180369123816490, clamp(b, x, -746.0, 711.0)))
    value = b.fma(r * r, polynomial(b, r, _EXP_DOUBLE), r) + 1
    whole = n.to(I32).to(I64)
    half = whole >> 1
    steps = [((part + 1023) << 52).bits_as(F64) for part in (half, whole - half)]
    return value * steps[0] * steps[1]


def _expm1_double(b: Function, x: Register) -> Register:
    """Return e^x - 1 of float64: with x = n ln 2 + r, 2^n ((e^r - 1) + (1 - 2^-n)). Error: 2 ulp; -0 stays."""
    inside = clamp(b, x, -40.0, 711.0)
    n = b.round_even(inside * (1 / math.log(2)))
    r = b.fma(n, -1.9082149292705877e-10, b.fma(n, -0.693147180369123816490, inside))
    near = b.fma(r * r, polynomial(b, r, _EXP_DOUBLE), r)
    whole = n.to(I32).to(I64)
    half = whole >> 1
    steps = [((part + 1023) << 52).bits_as(F64) for part in (half, whole - half)]
    inverse = ((b.max(-whole, -1022) + 1023) << 52).bits_as(F64)
    value = (near + (1 - inverse)) * steps[0] * steps[1]
    return b.select(n.eq(0), b.select(x.eq(0), x, near), value)


def _log_double(b: Function, x: Register) -> Register:
    """Return log(x) of float64: x = 2^n m, s = (m - 1) / (m + 1), the series of 2 atanh(s) to s^21. Error: 2 ulp."""
    tiny = x < 2.0**-1022
    bits = b.select(tiny, x * 2.0**54, x).bits_as(I64)
    n = (bits - 0x3FE6A09E667F3BCD) >> 52
    f = (bits - (n << 52)).bits_as(F64) - 1
    s = f / (f + 2)
    square = s * s
    tail = s * square * polynomial(b, square, _LOG_DOUBLE)
    turns = (n - b.select(tiny, n.like(54), n.like(0))).to(I32).to(F64)
    result = b.fma(turns, 0.693147180369123816490, b.fma(turns, 1.9082149292705877e-10, tail) + s * 2)
    return _log_edges(b, x, result)


_Turns = Callable[[Function, Register, Register, Register, Register | None], Register]


def _trigonometric(b: Function, x: Register, name: str, finish: _Turns) -> Register:
    """Reduce to a quarter turn, evaluate sine and cosine there, and let `finish(b, n, sine, cosine, r)` choose."""
    if x.type.scalar == F64:
        return _libm(b, name, x)
    wide = x.to(F64)
    n = b.round_even(wide * (2 / math.pi))
    n = b.select(b.abs(wide) <= _FAR_TURNS, n, n.like(0))
    r = b.fma(n, -_QUARTER_TURN_LOW, b.fma(n, -_QUARTER_TURN, wide)).to(F32)
    z = r * r
    sine = b.fma(r * z, polynomial(b, z, coefficients.SIN), r)
    cosine = b.fma(z * z, polynomial(b, z, coefficients.COS), b.fma(z, -0.5, z.like(1)))
    near = finish(b, n.to(I32), sine, cosine, r)
    if name != "cos":
        near = b.select(b.abs(x) < 2.0**-12, x, near)
    return _libm_where(b, ~(b.abs(x) <= _FAR_TURNS), name, x, near)


def _sin_of_turns(b: Function, n: Register, sine: Register, cosine: Register, _: Register | None) -> Register:
    """Return sin(n pi / 2 + r)."""
    chosen = b.select((n & 1).eq(0), sine, cosine)
    return b.select((n & 2).eq(0), chosen, -chosen)


def _tan_of_turns(b: Function, n: Register, sine: Register, cosine: Register, _: Register | None) -> Register:
    """Return tan(n pi / 2 + r)."""
    even = (n & 1).eq(0)
    return b.select(even, sine, -cosine) / b.select(even, cosine, sine)


def _asin_halves(b: Function, x: Register) -> tuple[Register, Register]:
    """Return asin(|x|) by the polynomial, good up to 1/2, and asin(sqrt((1 - |x|) / 2)), good beyond."""
    t = b.abs(x)
    far = t > 0.5
    z = b.select(far, (1 - t) * 0.5, t * t)
    s = b.select(far, b.sqrt(z), t)
    result = b.fma(s * z, polynomial(b, z, coefficients.ASIN), s)
    return result, result


def _libm(b: Function, name: str, *arguments: Register) -> Register:
    """Call the C library's function of float64 on each lane."""
    kind = arguments[0].type
    if kind.lanes == 1:
        return b.intrinsic(name, F64, arguments)
    slots = [b.stack(F64, kind.lanes, align=kind.lanes * 8) for _ in (*arguments, None)]
    for slot, argument in zip(slots, arguments, strict=False):
        slot.store(argument, 0, kind.lanes)
    with b.loop(0, kind.lanes) as lane:
        slots[-1].store(b.intrinsic(name, F64, [slot.load(lane) for slot in slots[:-1]]), lane)
    return slots[-1].load(0, kind.lanes)


def _libm_where(b: Function, where: Register, name: str, x: Register, otherwise: Register) -> Register:
    """Return `otherwise`, but in the rare lanes `where` holds what the C library says of x, evaluated in float64."""
    result = b.variable(otherwise)
    with b.when(b.any_lane(where)):
        result.set(b.select(where, _libm(b, name, x.to(F64)).to(F32), otherwise))
    return result.value
