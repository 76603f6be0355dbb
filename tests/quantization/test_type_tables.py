"""Facts about types by their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from sardonyx.quantization import type_tables


@pytest.mark.parametrize("name", ["ONNX_INT_TYPE_RANGE", "ONNX_INT_TYPE_REDUCED_RANGE", "ONNX_INT_TYPE_SYMMETRIC_RANGE"])
def test_ends_are_those_of_onnxruntimes_tables(name: str) -> None:
    """With their types."""
    peer = pytest.importorskip("onnxruntime.quantization.quant_utils")
    ours, theirs = getattr(type_tables, name), getattr(peer, name)
    assert ours.keys() == theirs.keys()
    for number, ends in ours.items():
        assert [(int(end), end.dtype) for end in ends] == [(int(end), end.dtype) for end in theirs[number]]


def test_types_of_codes_have_numpy_types() -> None:
    """As in onnxruntime."""
    peer = pytest.importorskip("onnxruntime.quantization.quant_utils")
    assert {number: np.dtype(kind) for number, kind in peer.ONNX_TYPE_TO_NP_TYPE.items()} == type_tables.ONNX_TYPE_TO_NP_TYPE


def test_types_have_the_names_of_onnx() -> None:
    """Those of eight bits that are floats among them."""
    assert {name: number for number, name in type_tables.type_to_name.items()}.items() <= dict(TensorProto.DataType.items()).items()
    assert [type_tables.type_to_name[number] for number in type_tables.FLOAT8_TYPES] == [
        f"FLOAT8{rest}" for rest in ("E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ")
    ]
