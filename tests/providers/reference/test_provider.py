"""The reference provider."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import graph

from sardonyx import errors
from sardonyx.provider import GraphView
from sardonyx.providers.reference.provider import ReferenceProvider, evaluate


def test_it_claims_what_has_a_kernel_and_says_what_has_none() -> None:
    """An operator of a strange domain is declined with its name."""
    held = graph("graph(x: float[2]) -> (y: float[2]) {\na = Relu(x)\ny = strange.Thing:3(a)\n}")
    claims = ReferenceProvider().capabilities(GraphView(held, tuple(held)))
    relu, thing = held
    assert [capability.nodes for capability in claims.capabilities] == [(relu,)]
    assert claims.declined == {thing: "no kernel for strange.Thing at version 3"}


def test_one_node_can_be_evaluated() -> None:
    """Constant folding computes a node from arrays; one value may be read twice."""
    held = graph("graph(x: float[2]) -> (y: float[2]) {\ny = Add(x, x)\n}")
    x = np.float32([1, 2])
    assert evaluate(next(iter(held)), [x, x])[0].tolist() == [2, 4]


def test_evaluating_an_unknown_operator_is_an_error() -> None:
    """There is nothing to call."""
    held = graph("graph(x: float[2]) -> (y: float[2]) {\ny = strange.Thing:3(x)\n}")
    with pytest.raises(errors.NotImplemented, match="strange.Thing-3"):
        evaluate(next(iter(held)), [np.zeros(2, np.float32)])
