"""Which nodes are generation loops."""

from __future__ import annotations

import pytest

from sardonyx.ir import Graph, Node
from sardonyx.ops.generation_bodies import GENERATION_LOOPS, is_generation_loop, loop_bodies


@pytest.mark.parametrize("op_type", GENERATION_LOOPS)
def test_loops_belong_to_com_microsoft(op_type: str) -> None:
    """An operator of the same name in another domain is none."""
    assert is_generation_loop(Node(op_type, [], domain="com.microsoft", version=1))
    assert not is_generation_loop(Node(op_type, [], version=1))


def test_other_operators_are_none() -> None:
    """Loop runs a graph too, and chooses no tokens."""
    assert not is_generation_loop(Node("Attention", [], domain="com.microsoft", version=1))


def test_a_loop_has_one_decoder_or_two() -> None:
    """The second is for the first step."""
    later, first = Graph("later"), Graph("first")
    loop = Node("BeamSearch", [], attributes={"decoder": later, "init_decoder": first}, domain="com.microsoft", version=1)
    assert loop_bodies(loop) == [later, first]
    assert loop_bodies(Node("GreedySearch", [], attributes={"decoder": later}, domain="com.microsoft", version=1)) == [later]
