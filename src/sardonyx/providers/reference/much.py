"""Which calls of kernels may take so long that they are made beside the thread of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sardonyx.aside import arrays_of, may_be_left
from sardonyx.dtypes import OnnxValue

__all__ = ["is_much"]

_MUCH_ELEMENTS = 1 << 18
"""From how many elements on a thread, which takes some ten microseconds, is worth it."""
_MAKERS = frozenset(
    (
        *("AffineGrid", "BlackmanWindow", "CenterCropPad", "ConstantOfShape", "Expand", "HammingWindow", "HannWindow"),
        *("MaxUnpool", "MelWeightMatrix", "Multinomial", "OneHot", "Pad", "RandomNormal", "RandomUniform", "Range", "Resize"),
        *("STFT", "Tile", "Upsample"),
    )
)
"""Operators whose result has as many elements as small inputs and attributes say."""
_FEW_ELEMENTS = 16
"""So many numbers may be a size, or how often something is repeated."""


def is_much(op_type: str, arguments: Sequence[OnnxValue], attributes: Mapping[str, object]) -> bool:
    """Return whether a kernel may read or make very many elements, in a run that somebody may end."""
    elements: float = sum(array.size for argument in arguments for array in arrays_of(argument))
    if op_type in _MAKERS:
        elements = max(elements, 1) * _times(arguments, attributes)
    return elements >= _MUCH_ELEMENTS and may_be_left(arguments)


def _times(arguments: Sequence[OnnxValue], attributes: Mapping[str, object]) -> float:
    """Return a number that there are at most so many elements made of each one that is read, or more."""
    small = [array for argument in arguments for array in arrays_of(argument) if array.size <= _FEW_ELEMENTS]
    numbers = [number for array in small if array.dtype.kind in "iuf" for number in array.ravel().tolist()]
    for attribute in attributes.values():
        numbers += attribute if isinstance(attribute, tuple) else (attribute,)
    return math.prod(max(1.0, abs(number)) for number in numbers if isinstance(number, (int, float)) and math.isfinite(number))
