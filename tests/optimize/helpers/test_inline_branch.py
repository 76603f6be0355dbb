"""One branch in the place of an If; more in test_fold_constants.py."""

import pytest
from support.optimizing import model_of, operators

from sardonyx.errors import InvalidGraph
from sardonyx.ir.verify import verify
from sardonyx.optimize.helpers.inline_branch import inline_branch


def test_branch_with_too_few_outputs_is_refused():
    """A branch that does not give out what the If does raises InvalidGraph."""
    model = model_of("graph(c) -> (y) { y, z = If(c) {then_branch = graph() -> (c) {}, else_branch = graph() -> (c, c) {}} }")
    with pytest.raises(InvalidGraph, match="then_branch gives 1 values out, expected 2"):
        inline_branch(next(iter(model.graph)), "then_branch", str)


def test_missing_branch_is_refused():
    """An If without the branch raises InvalidGraph."""
    model = model_of("graph(c: bool[]) -> (y) { y = If(c) @choose }")
    with pytest.raises(InvalidGraph, match="the branch 'then_branch' is missing"):
        inline_branch(next(iter(model.graph)), "then_branch", str)


def test_nested_subgraphs_move_along():
    """A branch with control flow of its own moves whole."""
    model = model_of("""graph(c: bool[], x: float[2]) -> (y) {
        y = If(c) {then_branch = graph() -> (a) {
            n = Neg(x)
            a = If(c) {then_branch = graph() -> (n) {}, else_branch = graph() -> (b) { b = Exp(n) }}
        }, else_branch = graph() -> (x) {}} }""")
    inline_branch(next(iter(model.graph)), "then_branch", str)
    verify(model)
    assert operators(model) == ["Neg", "If"]
    assert model.graph.outputs[0].name == "y"
