"""Which nodes are generation loops."""

from __future__ import annotations

import pytest

from sardonyx.ir import Node
from sardonyx.ops.generation_bodies import GENERATION_LOOPS, is_generation_loop


@pytest.mark.parametrize("op_type", GENERATION_LOOPS)
def test_loops_belong_to_com_microsoft(op_type: str) -> None:
    """An operator of the same name in another domain is none."""
    assert is_generation_loop(Node(op_type, [], domain="com.microsoft", version=1))
    assert not is_generation_loop(Node(op_type, [], version=1))


def test_other_operators_are_none() -> None:
    """Loop runs a graph too, and chooses no tokens."""
    assert not is_generation_loop(Node("Attention", [], domain="com.microsoft", version=1))
