"""Write what prepares features one by one (ai.onnx.ml) as element-wise operators of ai.onnx.

    Scaler(x)                  ->      (x - offset) * scale
    Binarizer(x)               ->      Cast(x > threshold)
    Imputer(x)                 ->      Where(x == replaced, imputed, x), or IsNaN(x) where NaN is replaced

Types other than float are computed with in double where the result is float, as the reference provider does.

Left alone:
    numbers of scales, offsets or imputed values that do not fit, which are the reference provider's to refuse
    a number to replace that the elements' type does not hold
    other ranks than those for which the operators are defined
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Node, Value
from sardonyx.optimize.helpers.ml_scores import ML, NUMBERS, Maker, ml
from sardonyx.optimize.match import Match
from sardonyx.optimize.pattern import PatternBuilder, PatternFunction
from sardonyx.optimize.rule import Builder, Rule
from sardonyx.optimize.terms import Term

__all__ = ["EXPAND_BINARIZER", "EXPAND_IMPUTER", "EXPAND_SCALER"]


def _pattern(op_type: str) -> PatternFunction:
    def pattern(op: PatternBuilder, x: Term) -> Term:
        return op.node(op_type, x, _domain=ML)

    return pattern


def _type_reason(x: Value) -> str | None:
    if x.dtype not in NUMBERS:
        return f"elements of type {x.dtype}"
    return "data of unknown rank" if x.shape is None else None


def _count_reason(x: Value, *lists: Sequence[float]) -> str | None:
    """Return why lists of numbers do not fit the last axis of x, each of one number or of one for each of its elements."""
    if x.shape is None or all(len(numbers) == 1 for numbers in lists):
        return None
    counts = {len(numbers) for numbers in lists} - {1}
    last = x.shape[-1] if x.shape else 1
    fits = len(counts) == 1 and (last in counts if isinstance(last, int) else len(x.shape) == 2)
    return None if fits else f"{[len(numbers) for numbers in lists]} numbers for an axis of {last}"


def _with_features(make: Maker, x: Value, *lists: Sequence[float]) -> Value:
    """Return x with a last axis of known length where a list has a number for each of its elements."""
    count = max(len(numbers) for numbers in lists)
    if count == 1 or x.shape is None or x.shape[-1] == count:
        return x
    return make.reshape(x, 0, count)


def _as_before(make: Maker, result: Value, x: Value) -> Value:
    """Return a result of x in the shape of x, whatever that is."""
    return result if result.shape == x.shape else make("Reshape", result, make("Shape", x))


def _wide(make: Maker, x: Value) -> Value:
    return x if x.dtype is DataType.FLOAT else make.cast(x, DataType.DOUBLE)


def _array(x: Value, numbers: Sequence[float]) -> Array:
    return np.array(numbers, x.dtype.numpy if x.dtype is not None else np.float32)


def _number(x: Value, number: float) -> Array:
    return _array(x, [number]).reshape(())


def _scaler_numbers(node: Node) -> tuple[Sequence[float], Sequence[float]]:
    return node.numbers("offset", (0.0,)), node.numbers("scale", (1.0,))


def _check_scaler(match: Match) -> str | None:
    return _type_reason(match["x"]) or _count_reason(match["x"], *_scaler_numbers(match.root))


def _replace_scaler(op: Builder, match: Match, learned: None) -> Value:
    make, (offset, scale) = Maker(op), _scaler_numbers(match.root)
    x = _wide(make, _with_features(make, match["x"], offset, scale))
    if any(offset):
        x = make("Sub", x, _array(x, offset))
    if any(number != 1 for number in scale):
        x = make("Mul", x, _array(x, scale))
    narrow = make.cast(x, DataType.FLOAT)
    made = make("Identity", x) if narrow is match["x"] else narrow
    return _as_before(make, made, match["x"])


def _check_binarizer(match: Match) -> str | None:
    return _type_reason(match["x"])


def _replace_binarizer(op: Builder, match: Match, learned: None) -> Value:
    make, x = Maker(op), match["x"]
    wide = _wide(make, x)
    return make(
        "Cast", make("Greater", wide, _number(wide, match.root.number("threshold", 0.0))), to=x.dtype.value if x.dtype else 1
    )


def _imputed(node: Node, x: Value) -> tuple[Sequence[float], float]:
    """Return the numbers to put in, and the one whose place they take."""
    if x.dtype in (DataType.FLOAT, DataType.DOUBLE):
        return node.numbers("imputed_value_floats", ()), node.number("replaced_value_float", 0.0)
    return node.integers("imputed_value_int64s", ()), node.integer("replaced_value_int64", 0)


def _check_imputer(match: Match) -> str | None:
    x = match["x"]
    reason = _type_reason(x)
    if reason is not None:
        return reason
    values, replaced = _imputed(match.root, x)
    if not values:
        return "no imputed values of the elements' type"
    if x.dtype is DataType.INT32 and any(not -(1 << 31) <= number < 1 << 31 for number in (*values, replaced)):
        return "a number that int32 does not hold"
    return _count_reason(x, values)


def _replace_imputer(op: Builder, match: Match, learned: None) -> Value:
    make = Maker(op)
    values, replaced = _imputed(match.root, match["x"])
    x = _with_features(make, match["x"], values)
    missing = make("IsNaN", x) if replaced != replaced else make("Equal", x, _number(x, replaced))
    return _as_before(make, make("Where", missing, _array(x, values), x), match["x"])


EXPAND_SCALER = Rule(
    "expand_scaler",
    _pattern("Scaler"),
    _replace_scaler,
    _check_scaler,
    takes_apart=ml("Scaler"),
    summary="Write Scaler of ai.onnx.ml as a subtraction and a multiplication.",
)
EXPAND_BINARIZER = Rule(
    "expand_binarizer",
    _pattern("Binarizer"),
    _replace_binarizer,
    _check_binarizer,
    takes_apart=ml("Binarizer"),
    summary="Write Binarizer of ai.onnx.ml as a comparison.",
)
EXPAND_IMPUTER = Rule(
    "expand_imputer",
    _pattern("Imputer"),
    _replace_imputer,
    _check_imputer,
    takes_apart=ml("Imputer"),
    summary="Write Imputer of ai.onnx.ml as a choice between elements and constants.",
)
