"""Facts about com.microsoft's operators on strings."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, infer_op, plain

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import Fact, tensor

RULES = {"mark": 0, "mincharnum": 1, "pad_value": "", "separators": (" ",)}


def tokens_of(*shape: object) -> Fact:
    return infer_op("Tokenizer", tensor(DataType.STRING, shape), domain="com.microsoft", **RULES)[0]


def test_tokens_lie_on_a_new_axis() -> None:
    """It is as long as the most tokens."""
    assert plain(tokens_of(A, 3)) == (A, 3, UNKNOWN_DIM)
    assert plain(tokens_of(4)) == (4, UNKNOWN_DIM)


def test_a_list_that_may_be_empty_has_that_axis_too() -> None:
    """So that what follows knows the rank."""
    assert plain(tokens_of(A)) == (A, UNKNOWN_DIM)
    assert plain(tokens_of(0)) == (0, UNKNOWN_DIM)
