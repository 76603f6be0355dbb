"""Whether a model can be run."""

import pytest
from support.optimizing import model_of

from sardonyx.errors import InvalidGraph, SardonyxError
from sardonyx.ir import Node
from sardonyx.optimize.soundness import check_sound, is_sound


def test_sound_model():
    """A model whose nodes fit their operators is sound, unknown operators and functions included."""
    functions = "function f.Act(a) -> (b) { b = Relu(a) }"
    check_sound(model_of(f"opset 21\ngraph(x: float[2]) -> (y) {{ a = f.Act(x) b = my.Own(a) y = Neg(b) }}\n{functions}"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = Reshape(x, x)", "Reshape-21 takes tensor"),
        ("y = Neg(x) {alpha = 1}", "alpha"),
        ("a = Shape(x) y = Add(a, x)", "Add"),
        ("y = Frobnicate(x)", "operator Frobnicate is unknown at opset"),
    ],
)
def test_nodes_that_do_not_fit_are_named(line, message):
    """Wrong types and attributes raise with the node."""
    model = model_of(f"graph(x: float[2]) -> (y) {{ {line} }}")
    with pytest.raises(SardonyxError, match=message):
        check_sound(model)
    assert not is_sound(model)


def test_a_cycle_is_not_sound():
    """A node that reads what comes after it raises InvalidGraph."""
    model = model_of("graph(x: float[2]) -> (y) { y = Neg(x) }")
    first = next(iter(model.graph))
    model.graph.insert_before(first, Node("Relu", [first.output], 1, version=21))
    with pytest.raises(InvalidGraph, match="does not stand before it"):
        check_sound(model)
