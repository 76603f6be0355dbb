"""The node cases of onnx.backend.test as pairs of arrays, for tests of what is known before they run."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from sardonyx.dtypes import DataType


@dataclasses.dataclass(frozen=True)
class Case:
    """One model with its inputs and expected outputs; values are arrays, lists or None."""

    name: str
    model: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


@functools.cache
def node_cases() -> tuple[Case, ...]:
    """Every node case of the installed onnx."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    return tuple(
        Case(case.name, case.model, tuple(map(_array, inputs)), tuple(map(_array, outputs)))
        for case in found
        for inputs, outputs in case.data_sets
    )


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        dtype = DataType(value.data_type)
        if dtype is DataType.STRING:
            return np.array([item.decode() for item in value.string_data], object).reshape(tuple(value.dims))
        array = numpy_helper.to_array(value)
        return array if array.dtype == dtype.numpy else array.astype(dtype.numpy)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return array.astype(object) if array.dtype.kind in "US" else array
    return value
