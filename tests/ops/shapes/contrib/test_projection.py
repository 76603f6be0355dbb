"""Facts about projections with packed weights."""

from __future__ import annotations

from support.infer_op import A, error_of, floats, infer_op

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor

PART = (tensor(DataType.UINT8, (8, 1, 16)), floats(8), None)
OPTIONS = {"domain": "com.microsoft", "K": 32, "block_size": 32}


def test_gated_layer() -> None:
    """The result has the size of a projection, the sum that of the input."""
    found = infer_op(
        "MatMulNBitsMlp", floats(A, 32), floats(A, 32), floats(32), *PART, *PART, outputs=2, N=8, activation="silu", **OPTIONS
    )
    assert [fact.shape for fact in found] == [(A, 8), (A, 32)]


def test_queries_keys_and_values() -> None:
    """Queries have a size of their own."""
    found = infer_op("MatMulNBitsQkv", floats(A, 32), None, floats(32), *PART, *PART, *PART, outputs=4, Nq=8, Nkv=4, **OPTIONS)
    assert [fact.shape for fact in found] == [(A, 8), (A, 4), (A, 4), (A, 32)]
    assert {fact.dtype for fact in found} == {DataType.FLOAT}


def test_input_of_another_size() -> None:
    """It must have K features."""
    message = error_of("MatMulNBitsQkv", floats(A, 31), None, floats(32), *PART, *PART, *PART, outputs=3, Nq=8, Nkv=4, **OPTIONS)
    assert "does not end in K=32" in message
