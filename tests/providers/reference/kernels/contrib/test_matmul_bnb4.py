"""MatMulBnb4: the codes of FP4 and NF4, their order, and both directions of the product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.errors import InvalidArgument

CODES = np.arange(48) % 16
PACKED = (CODES[::2] << 4 | CODES[1::2]).astype(np.uint8)
ABSMAX = np.array([1.0, 2.0, 3.0], np.float32)
OPTIONS = {"K": 12, "N": 4, "block_size": 16}


def run(a: Any, **options: Any) -> Any:
    return run_op("MatMulBnb4", a, PACKED, ABSMAX, domain="com.microsoft", **(OPTIONS | options))


@pytest.mark.parametrize(("quant_type", "first", "last"), [(0, 0.0, -0.25), (1, -1.0, 1.0)])
def test_each_type_has_its_sixteen_values(quant_type: int, first: float, last: float) -> None:
    """The high half of a byte comes first; each block of 16 has its own factor."""
    weights = run(np.eye(12, dtype=np.float32), quant_type=quant_type).T.reshape(-1)
    for block in range(3):
        assert weights[16 * block] == pytest.approx(first * (block + 1))
        assert weights[16 * block + 15] == pytest.approx(last * (block + 1))
    values = weights[:16]
    assert len(set(np.abs(values) if quant_type == 0 else values)) == (8 if quant_type == 0 else 16)


def test_transB_0_multiplies_from_the_other_side() -> None:
    """A (..., N) gives (..., K)."""
    weights = run(np.eye(12, dtype=np.float32), quant_type=1).T
    np.testing.assert_array_equal(run(np.eye(4, dtype=np.float32), quant_type=1, transB=0), weights)


def test_half_types_are_kept() -> None:
    """The product is made in float32."""
    assert run(np.ones((2, 3, 12), np.float16), quant_type=1).dtype == np.float16


@pytest.mark.parametrize(
    ("options", "message"),
    [({"quant_type": 2}, "quant_type is 2"), ({"quant_type": 1, "N": 5}, "N 5"), ({"quant_type": 1, "block_size": 32}, r"\(2,\)")],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    """The message holds what the attributes ask for."""
    with pytest.raises(InvalidArgument, match=message):
        run(np.ones((1, 12), np.float32), **options)
