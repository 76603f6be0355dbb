"""What rules about ai.onnx.ml's models share: rows, post transforms and class labels, in operators of ai.onnx.

The meanings are those of `providers/reference/algorithms/scores.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.ir import Node, Value
from sardonyx.ir.attribute import AttributeValue
from sardonyx.optimize.rule import Builder
from sardonyx.optimize.target import OpKey

__all__ = ["ML", "NUMBERS", "POST_TRANSFORMS", "Maker", "class_labels", "labelled", "ml", "post_transformed", "two_columns"]

ML = "ai.onnx.ml"
"""The domain of the operators that are taken apart."""

NUMBERS = (DataType.FLOAT, DataType.DOUBLE, DataType.INT64, DataType.INT32)
"""The types of numbers that operators of ai.onnx.ml take."""

POST_TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
"""All post transforms."""

_FIRST_VERSION = 18
"""The version from which on reductions take their axes as an input, as they are written here."""


def ml(*names: str) -> frozenset[OpKey]:
    """Return the keys of operators of ai.onnx.ml."""
    return frozenset(OpKey(ML, name) for name in names)


class Maker:
    """Makes nodes of ai.onnx, whose version is the model's, or 18 where that is older or there is none."""

    def __init__(self, op: Builder) -> None:
        """Make them by a builder."""
        self._op, self._version = op, max(op.version(), _FIRST_VERSION)

    def __call__(self, op_type: str, *inputs: OnnxValue, **attributes: AttributeValue) -> Value:
        """Make a node with one output."""
        return self._op.node(op_type, *inputs, _version=self._version, **attributes)

    def cast(self, x: Value, dtype: DataType) -> Value:
        """Convert the elements of x, which may have that type."""
        return x if x.dtype is dtype else self("Cast", x, to=dtype.value)

    def reshape(self, x: Value, *dims: int) -> Value:
        """Reshape x; 0 keeps a dimension."""
        return self("Reshape", x, np.array(dims, np.int64))

    def float_rows(self, x: Value) -> Value:
        """Return (N, F) or (F,) as float32 rows (N, F)."""
        rows = self.cast(x, DataType.FLOAT)
        return self.reshape(rows, 1, -1) if x.shape is not None and len(x.shape) == 1 else rows


def post_transformed(make: Maker, scores: Value, post_transform: str) -> Value:
    """Return scores (N, E) after one of POST_TRANSFORMS."""
    if post_transform == "LOGISTIC":
        return make("Sigmoid", scores)
    if post_transform == "SOFTMAX":
        return make("Softmax", scores, axis=-1)
    if post_transform == "SOFTMAX_ZERO":
        return _softmax_zero(make, scores)
    return _probit(make, scores) if post_transform == "PROBIT" else scores


def _softmax_zero(make: Maker, scores: Value) -> Value:
    last, zero = np.array([-1], np.int64), np.float32(0)
    top = make("ReduceMax", scores, last, keepdims=1)
    some = make("Greater", make("Abs", scores), np.float32(1e-7))
    powers = make("Where", some, make("Exp", make("Sub", scores, top)), make("Mul", scores, make("Exp", make("Neg", top))))
    return make("Div", powers, make("ReduceSum", make("Where", some, powers, zero), last, keepdims=1))


def _probit(make: Maker, scores: Value) -> Value:
    """Compute sqrt(2) * erfinv(2x - 1) by Winitzki's formula, as `scores.probit` of the reference provider."""
    one = np.float32(1)
    x = make("Sub", make("Mul", scores, np.float32(2)), one)
    log = make("Log", make("Mul", make("Sub", one, x), make("Add", x, one)))
    half = make("Add", make("Mul", log, np.float32(0.5)), np.float32(2 / (3.14159 * 0.147)))
    root = make("Sqrt", make("Sub", make("Mul", half, half), make("Mul", log, np.float32(1 / 0.147))))
    size = make("Sqrt", make("Sub", root, half))
    return make("Mul", make("Where", make("Less", x, np.float32(0)), make("Neg", size), size), np.float32(1.41421356))


def two_columns(make: Maker, pair: Value, is_probability: bool, post_transform: str) -> Value:
    """Return the scores of a binary classifier from (-s, s): see `scores.two_columns` of the reference provider."""
    if post_transform == "LOGISTIC":
        return make("Sigmoid", pair)
    columns = make("Add", pair, np.array([1, 0], np.float32)) if is_probability else pair
    return _probit(make, columns) if post_transform == "PROBIT" else columns


def class_labels(node: Node) -> Array | None:
    """Return a classifier's labels, strings or int64, whichever the model gives; None where it gives none."""
    strings: Sequence[str] = node.texts("classlabels_strings", ())
    if strings:
        labels = np.empty(len(strings), object)
        labels[:] = strings
        return labels
    integers = node.integers("classlabels_ints", ())
    return np.array(integers, np.int64) if integers else None


def labelled(make: Maker, places: Value, labels: Array) -> Value:
    """Return the labels at int64 places (N,), each of which is the place of a label."""
    if labels.dtype == np.int64 and np.array_equal(labels, np.arange(len(labels))):
        return places
    return make("Gather", labels, places, axis=0)
