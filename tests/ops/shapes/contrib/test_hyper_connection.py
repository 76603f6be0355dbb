"""Facts about hyper-connections of com.microsoft."""

from __future__ import annotations

import pytest
from support.infer_op import A, B, floats, infer_op, infer_shape

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ops.fact import UNKNOWN, tensor

MICROSOFT = "com.microsoft"


def test_streams_are_reduced_to_one() -> None:
    """Grouped streams lose their axis; flattened ones keep a part of their width."""
    assert infer_shape("HyperConnectionPreMix", floats(A, B, 4, 8), floats(A, B, 4), domain=MICROSOFT) == (A, B, 8)
    flat = infer_shape("HyperConnectionPreMix", floats(A, B, 32), floats(A, B, 4), domain=MICROSOFT, num_branches=4)
    assert flat == (A, B, 8)


@pytest.mark.parametrize(("shape", "branches"), [((8,), 0), ((), 4), ((A, 8), -4)])
def test_streams_that_cannot_be_reduced_have_no_shape(shape: tuple[int, ...], branches: int) -> None:
    """The run refuses them."""
    fact = infer_op("HyperConnectionPreMix", floats(*shape), floats(), domain=MICROSOFT, num_branches=branches)[0]
    assert fact.shape is None


def test_mixed_streams_keep_shape_and_type() -> None:
    """Whatever the gates are."""
    streams = tensor(DataType.FLOAT16, (A, 4, 8))
    (fact,) = infer_op("HyperConnectionPostMix", streams, floats(A, 8), floats(A, 4), domain=MICROSOFT)
    assert (fact.dtype, fact.shape) == (DataType.FLOAT16, (A, 4, 8))


def test_a_gated_value_is_one_for_each_stream() -> None:
    """Both outputs have the shape of the keys, which have four axes."""
    keys = floats(A, B, 2, 8)
    rest = (keys, floats(A, B, 8), floats(2, 8), floats(2, 8), floats(2, 8))
    facts = infer_op("EngramGate", keys, *rest, outputs=2, domain=MICROSOFT)
    assert [fact.shape for fact in facts] == [(A, B, 2, 8)] * 2
    assert infer_op("EngramGate", UNKNOWN, *rest, domain=MICROSOFT)[0].shape is None
    with pytest.raises(InvalidGraph, match="expected rank 4"):
        infer_op("EngramGate", floats(A, 8), *rest, domain=MICROSOFT)
