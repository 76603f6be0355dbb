"""Element-wise operators of one, two and more inputs, comparisons, and activations."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.formats.tflite.operator import ACTIVATION, Operator, imports
from sardonyx.formats.tflite.tables import has_table, looked_up
from sardonyx.ir import Value

__all__ = ["binary", "comparison", "unary"]

_UNARY = {
    "ABS": "Abs",
    "CEIL": "Ceil",
    "COS": "Cos",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "HARD_SWISH": "HardSwish",
    "LOG": "Log",
    "LOGISTIC": "Sigmoid",
    "RELU": "Relu",
    "ROUND": "Round",
    "SIGN": "Sign",
    "SIN": "Sin",
    "SQRT": "Sqrt",
    "TANH": "Tanh",
}
_BINARY = {"ADD": ("Add", "AddOptions"), "SUB": ("Sub", "SubOptions"), "MUL": ("Mul", "MulOptions"), "DIV": ("Div", "DivOptions")}
_COMPARISONS = {
    "EQUAL": "Equal",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
}
_BOUNDS = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}
_WHOLE = (DataType.INT32, DataType.INT64)
_WHOLE_BOUNDS = {"RELU": (0, None), "RELU_N1_TO_1": (-1, 1), "RELU6": (0, 6)}
"""What fused activations leave of integers that count by themselves."""
_FLOATS = (DataType.FLOAT, DataType.FLOAT16, DataType.DOUBLE, DataType.BFLOAT16)
_COMPLEX = (DataType.COMPLEX64, DataType.COMPLEX128)


def _exp_of(numbers: Array, low: float, high: float) -> Array:
    found: Array = np.exp(numbers.astype(np.float64))
    return found


def _log_of(numbers: Array, low: float, high: float) -> Array:
    return np.where(numbers > 0, np.log(numbers.astype(np.float64)), low)


def _rsqrt_of(numbers: Array, low: float, high: float) -> Array:
    return np.where(numbers > 0, np.float32(1) / np.sqrt(numbers), high)


def _gelu_of(numbers: Array, low: float, high: float) -> Array:
    found: Array = 0.5 * numbers * (1 + np.array([math.erf(number * math.sqrt(0.5)) for number in numbers]))
    return found


def _tanh_gelu_of(numbers: Array, low: float, high: float) -> Array:
    found: Array = 0.5 * numbers * (1 + np.tanh(math.sqrt(2 / math.pi) * (numbers + 0.044715 * numbers**3)))
    return found


_TABLES = {"EXP": _exp_of, "LOG": _log_of}
"""Functions that LiteRT takes from tables where activations have 16 bits."""


@imports(*_UNARY)
def unary(op: Operator) -> None:
    """Compute an operator of one input that ONNX has too."""
    function = _TABLES.get(op.code)
    if function is not None and has_table(op.info(0), op.output(0)):
        op.put_raw(0, looked_up(op.build, op.raw(0), op.info(0), op.output(0), function))
        return
    op.put(0, op.build.node(_UNARY[op.code], op.real(0)))


@imports("NEG")
def negation(op: Operator) -> None:
    """Compute -x; integers that stand for numbers change their sign as they are, without regard to scales, as in LiteRT."""
    op.put_raw(0, op.build.node("Neg", op.raw(0)))


@imports(*_BINARY)
def binary(op: Operator) -> None:
    """Compute arithmetic of two inputs, broadcast as in ONNX; integers are divided towards 0."""
    name, table = _BINARY[op.code]
    if op.info(0).dtype in _COMPLEX:
        op.put_raw(0, op.own(f"Complex{name}", op.raw(0), op.raw(1)))
        return
    value, activation = (
        op.build.node(name, op.real(0), op.real(1)),
        op.options(table).choice("fused_activation_function", ACTIVATION),
    )
    if op.info(0).dtype in _WHOLE and activation in _WHOLE_BOUNDS:
        kind = op.info(0).dtype.numpy.type
        bounds = (None if bound is None else op.build.constant(kind(bound)) for bound in _WHOLE_BOUNDS[activation])
        op.put_raw(0, op.build.node("Clip", value, *bounds))
        return
    op.put(0, op.activate(value, activation))


@imports(*_COMPARISONS, "NOT_EQUAL")
def comparison(op: Operator) -> None:
    """Compare two inputs."""
    left, right = op.real(0), op.real(1)
    if op.info(0).dtype in (DataType.INT8, DataType.UINT8, DataType.INT16) and not op.is_real():
        left, right = op.build.cast(left, DataType.INT32), op.build.cast(right, DataType.INT32)
    if op.code == "NOT_EQUAL":
        op.put_raw(0, op.build.node("Not", op.build.node("Equal", left, right)))
        return
    op.put_raw(0, op.build.node(_COMPARISONS[op.code], left, right))


@imports("LOGICAL_AND", "LOGICAL_OR")
def logical(op: Operator) -> None:
    """Combine truth values."""
    op.put_raw(0, op.build.node("And" if op.code == "LOGICAL_AND" else "Or", op.raw(0), op.raw(1)))


@imports("LOGICAL_NOT")
def logical_not(op: Operator) -> None:
    """Negate truth values."""
    op.put_raw(0, op.build.node("Not", op.raw(0)))


@imports("BITWISE_XOR")
def bitwise_xor(op: Operator) -> None:
    """Compute the exclusive or of integers bit by bit, or of truth values."""
    name = "Xor" if op.info(0).dtype is DataType.BOOL else "BitwiseXor"
    op.put_raw(0, op.build.node(name, op.raw(0), op.raw(1)))


@imports("RIGHT_SHIFT")
def right_shift(op: Operator) -> None:
    """Shift integers to the right; signed ones keep their sign, and shifts are kept within the bits of the type."""
    build = op.build
    shifts = build.node("Clip", build.cast(op.raw(1), DataType.INT64), build.constant(np.int64(0)), build.constant(np.int64(62)))
    value = build.cast(op.raw(0), DataType.INT64)
    divisor = build.node("Pow", build.constant(np.int64(2)), shifts)
    shifted = build.node("Div", build.node("Sub", value, build.node("Mod", value, divisor)), divisor)
    op.put_raw(0, build.cast(shifted, op.output(0).dtype))


@imports("MAXIMUM", "MINIMUM")
def extreme(op: Operator) -> None:
    """Compute the greater or the lesser of two inputs."""
    name = "Max" if op.code == "MAXIMUM" else "Min"
    op.through(lambda left, right: op.build.node(name, left, right), 2)


@imports("POW")
def power(op: Operator) -> None:
    """Compute powers."""
    op.put(0, op.build.node("Pow", op.real(0), op.real(1)))


@imports("SQUARED_DIFFERENCE")
def squared_difference(op: Operator) -> None:
    """Compute (a - b) squared."""
    difference = op.build.node("Sub", op.real(0), op.real(1))
    op.put(0, op.build.node("Mul", difference, difference))


@imports("SQUARE")
def square(op: Operator) -> None:
    """Compute squares."""
    value = op.real(0)
    op.put(0, op.build.node("Mul", value, value))


@imports("RSQRT")
def rsqrt(op: Operator) -> None:
    """Compute 1 / sqrt(x)."""
    if has_table(op.info(0), op.output(0)):
        op.put_raw(0, looked_up(op.build, op.raw(0), op.info(0), op.output(0), _rsqrt_of))
        return
    op.put(0, op.build.node("Reciprocal", op.build.node("Sqrt", op.real(0))))


@imports("FLOOR_DIV")
def floor_div(op: Operator) -> None:
    """Divide and round down."""
    left, right = op.real(0), op.real(1)
    if op.is_real():
        op.put(0, op.build.node("Floor", op.build.node("Div", left, right)))
        return
    rest = op.build.node("Mod", left, right)
    op.put_raw(0, op.build.node("Div", op.build.node("Sub", left, rest), right))


@imports("FLOOR_MOD")
def floor_mod(op: Operator) -> None:
    """Compute the rest of a division that is rounded down, which has the sign of the divisor."""
    build, left, right = op.build, op.real(0), op.real(1)
    if not op.is_real():
        op.put_raw(0, build.node("Mod", left, right))
        return
    rest = build.node("Mod", left, right, fmod=1)
    zero = build.constant(np.float32(0))
    differs = build.node("Xor", build.node("Less", right, zero), build.node("Less", rest, zero))
    moved = build.node("And", differs, build.node("Not", build.node("Equal", rest, zero)))
    op.put(0, build.node("Where", moved, build.node("Add", rest, right), rest))


@imports("ATAN2")
def atan2(op: Operator) -> None:
    """Compute the angle of (x, y) from y and x."""
    op.put_raw(0, op.own("Atan2", op.raw(0), op.raw(1)))


@imports("ADD_N")
def add_n(op: Operator) -> None:
    """Compute the sum of all inputs."""
    value = op.real(0)
    for index in range(1, len(op.inputs)):
        value = op.build.node("Add", value, op.real(index))
    op.put(0, value)


@imports(*_BOUNDS)
def bounded(op: Operator) -> None:
    """Keep numbers within bounds."""
    op.put(0, op.build.clip(op.real(0), *_BOUNDS[op.code]))


@imports("LEAKY_RELU")
def leaky_relu(op: Operator) -> None:
    """Multiply negative numbers by a constant."""
    op.put(0, op.build.node("LeakyRelu", op.real(0), alpha=op.options("LeakyReluOptions").real("alpha")))


@imports("PRELU")
def prelu(op: Operator) -> None:
    """Multiply negative numbers by the second input, which is broadcast."""
    op.put(0, op.build.node("PRelu", op.real(0), op.real(1)))


@imports("ELU")
def elu(op: Operator) -> None:
    """Compute exp(x) - 1 of negative numbers."""
    op.put(0, op.build.node("Elu", op.real(0)))


@imports("GELU")
def gelu(op: Operator) -> None:
    """Compute the Gaussian error linear unit."""
    approximate = "tanh" if op.options("GeluOptions").flag("approximate") else "none"
    if has_table(op.info(0), op.output(0)):
        function = _gelu_of if approximate == "none" else _tanh_gelu_of
        op.put_raw(0, looked_up(op.build, op.raw(0), op.info(0), op.output(0), function))
        return
    op.put(0, op.build.node("Gelu", op.real(0), approximate=approximate))


@imports("SOFTMAX")
def softmax(op: Operator) -> None:
    """Compute the softmax of beta x along the last axis."""
    beta, value = op.options("SoftmaxOptions").real("beta"), op.real(0)
    if beta != 1:
        kind = np.float16 if op.info(0).dtype is DataType.FLOAT16 else np.float32
        value = op.build.node("Mul", value, op.build.constant(kind(beta)))
    op.put(0, op.build.node("Softmax", value, axis=-1))


@imports("LOG_SOFTMAX")
def log_softmax(op: Operator) -> None:
    """Compute the logarithm of the softmax along the last axis."""
    op.put(0, op.build.node("LogSoftmax", op.real(0), axis=-1))


@imports("SELECT", "SELECT_V2")
def select(op: Operator) -> None:
    """Take elements of the second input where the first is true, else of the third; a condition of rank 1 may choose rows."""
    condition = op.raw(0)
    rank = op.rank(1)
    if op.code == "SELECT" and op.rank(0) == 1 and rank > 1:
        condition = op.build.reshape(condition, (-1,) + (1,) * (rank - 1))

    def choose(left: Value, right: Value) -> Value:
        return op.build.node("Where", condition, left, right)

    op.through(choose, 2, first=1)


@imports("CAST")
def cast(op: Operator) -> None:
    """Convert elements to another type."""
    source, target = op.info(0).dtype, op.output(0).dtype
    if source in _COMPLEX or target in _COMPLEX:
        op.put_raw(0, op.own("ComplexCast", op.raw(0), to=int(target)))
        return
    value = op.raw(0)
    if source in _FLOATS and target.numpy.kind in "iu":
        op.put_raw(0, _saturated(op, value if source is DataType.DOUBLE else op.build.cast(value, DataType.FLOAT), target))
        return
    op.put_raw(0, op.build.cast(value, target))


def _saturated(op: Operator, value: Value, target: DataType) -> Value:
    """Return real numbers as integers: those beyond the type's range as its least and greatest, NaN as the greatest."""
    kind = np.float64 if op.info(0).dtype is DataType.DOUBLE else np.float32
    limits, build = np.iinfo(target.numpy), op.build
    whole = build.cast(build.node("Max", value, build.constant(kind(limits.min))), target)
    is_less = build.node("Less", value, build.constant(kind(limits.max) + kind(1)))
    return build.node("Where", is_less, whole, build.constant(target.numpy.type(limits.max)))


@imports("REAL", "IMAG", "COMPLEX_ABS")
def complex_part(op: Operator) -> None:
    """Take a part, or the absolute value, of complex numbers."""
    names = {"REAL": "ComplexReal", "IMAG": "ComplexImag", "COMPLEX_ABS": "ComplexAbs"}
    op.put_raw(0, op.own(names[op.code], op.raw(0)))


@imports("RFFT2D")
def rfft_2d(op: Operator) -> None:
    """Compute the half spectrum of real images, cut or padded to two lengths."""
    op.put_raw(0, op.own("Rfft2d", op.raw(0), op.raw(1)))


@imports("BITCAST")
def bitcast(op: Operator) -> None:
    """Read the bits of elements as another type; the last axis goes or comes where sizes differ."""
    op.put_raw(0, op.own("Bitcast", op.raw(0), to=int(op.output(0).dtype)))


@imports("QUANTIZE")
def quantize(op: Operator) -> None:
    """Compute the integers that stand for numbers, or for those that other integers stand for."""
    op.put(0, op.real(0))


@imports("DEQUANTIZE")
def dequantize(op: Operator) -> None:
    """Compute the numbers that integers, or numbers of half precision, stand for."""
    value = op.real(0)
    op.put_raw(
        0, op.build.cast(value, op.output(0).dtype) if op.info(0).dtype is not DataType.FLOAT and value is op.raw(0) else value
    )


@imports("FAKE_QUANT")
def fake_quant(op: Operator) -> None:
    """Round numbers to those that so many bits between two bounds can stand for."""
    options, build = op.options("FakeQuantOptions"), op.build
    bits = options.integer("num_bits")
    if not 2 <= bits <= 16:
        op.refuse(f"it has {bits} bits; expected 2 to 16")
    lowest, highest = (1 if options.flag("narrow_range") else 0), (1 << bits) - 1
    low, high = np.float32(options.real("min")), np.float32(options.real("max"))
    if not low < high:
        op.refuse(f"its bounds {low} and {high} are not in order")
    scale = np.float32((high - low) / np.float32(highest - lowest))
    from_low = np.float32(lowest) - low / scale
    point = min(max(float(np.floor(from_low + 0.5)), lowest), highest)
    nudged_low, nudged_high = np.float32((lowest - point) * scale), np.float32((highest - point) * scale)
    value = build.node("Sub", build.clip(op.real(0), float(nudged_low), float(nudged_high)), build.constant(nudged_low))
    steps = build.node("Mul", value, build.constant(np.float32(1) / scale))
    steps = build.node("Floor", build.node("Add", steps, build.constant(np.float32(0.5))))
    op.put(0, build.node("Add", build.node("Mul", steps, build.constant(scale)), build.constant(nudged_low)))
