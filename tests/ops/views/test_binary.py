"""How the inputs of element-wise operators meet."""

from __future__ import annotations

import pytest
from support.view_node import node

from sardonyx.ops.views.binary import Broadcast


@pytest.mark.parametrize(("op_type", "since"), [("Add", 7), ("Equal", 7), ("PRelu", 7), ("Max", 8), ("Mean", 8), ("Sum", 8)])
def test_operators_broadcast_as_numpy_does_since(op_type: str, since: int) -> None:
    """From opset 7 on, variadic ones from 8 on."""
    assert not Broadcast.of(node(op_type, since - 1)).is_numpy
    assert Broadcast.of(node(op_type, since)) == Broadcast(is_numpy=True, is_legacy=False, axis=None)


def test_before_7_the_second_input_may_be_stretched() -> None:
    """Where `broadcast` asks for it, from `axis` on."""
    assert Broadcast.of(node("Add", 6)) == Broadcast(is_numpy=False, is_legacy=False, axis=None)
    assert Broadcast.of(node("Add", 6, broadcast=1, axis=1)) == Broadcast(is_numpy=False, is_legacy=True, axis=1)


def test_operators_of_other_domains_broadcast() -> None:
    """Versions of other domains are not those of ai.onnx."""
    assert Broadcast.of(node("QLinearAdd", 1, domain="com.microsoft")).is_numpy
