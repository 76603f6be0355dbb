"""Operators of one tensor, element by element, without parameters."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.blocks import map_blocks
from sardonyx.providers.reference.algorithms.erf import erf_into
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet
from sardonyx.providers.reference.registry import Call, KernelFunction, kernel

__all__ = ["erf", "is_inf", "is_nan"]

_UFUNCS: dict[str, np.ufunc] = {
    "Abs": np.absolute,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BitwiseNot": np.invert,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Exp": np.exp,
    "Floor": np.floor,
    "Log": np.log,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Reciprocal": np.reciprocal,
    "Round": np.rint,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
"""Operators that one ufunc is; Round rounds halves to even. The ufuncs of narrow floats compute in float32 and round once."""


def _elementwise(ufunc: np.ufunc) -> KernelFunction:
    """Return the kernel that applies `ufunc`: x of any shape and of a type that the operator takes; same shape and type out."""

    @quiet
    def apply(_node: Call, x: Array) -> Array:
        return np.asarray(ufunc(x))

    return apply


for _name, _ufunc in _UFUNCS.items():
    kernel(_name)(_elementwise(_ufunc))


@kernel("Erf")
@quiet
def erf(_node: Call, x: Array) -> Array:
    """Apply the error function; same shape and type out, integers truncated. ONNX Erf-9, Erf-13."""
    if compute_type(x.dtype).kind == "f":
        return map_blocks(erf_into, x)
    return map_blocks(erf_into, x.astype(np.float64)).astype(x.dtype)


@kernel("IsInf")
@quiet
def is_inf(_node: Call, x: Array, *, detect_negative: int = 1, detect_positive: int = 1) -> Array:
    """Mark infinities of the wanted signs; bool of the same shape out. ONNX IsInf-10, IsInf-20."""
    infinite: Array = np.isinf(x)
    if not detect_negative:
        infinite = infinite & ~np.signbit(x)
    if not detect_positive:
        infinite = infinite & np.signbit(x)
    return np.asarray(infinite)


@kernel("IsNaN")
@quiet
def is_nan(_node: Call, x: Array) -> Array:
    """Mark NaNs; bool of the same shape out. ONNX IsNaN-9, IsNaN-20."""
    return np.asarray(np.isnan(x))
