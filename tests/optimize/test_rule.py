"""The builder of replacements; how rules fire is in test_rewrite.py."""

import numpy as np
import pytest
from support.optimizing import model_of

from sardonyx.errors import InvalidArgument
from sardonyx.ir import Node
from sardonyx.optimize.contract import Level
from sardonyx.optimize.rule import Builder, Rule


@pytest.fixture
def op():
    """A builder in front of the only node of a graph."""
    model = model_of("opset 20, com.microsoft 1, other 5\ngraph(x: float[2]) -> (y) { y = Relu(x) {alpha = 1.0} @root }")
    return Builder(next(iter(model.graph)), model.opset_imports, lambda base: f"{base}!")


def test_new_nodes_stand_before_the_root_with_its_name_and_version(op):
    """A new node precedes the root, has its name, and its version in the same domain."""
    value = op.Neg(op.graph.inputs[0])
    assert [node.op_type for node in op.graph] == ["Neg", "Relu"]
    assert (value.producer.name, value.producer.version) == ("root", 20)
    assert op.Neg(value, _domain="other").producer.version == 5
    assert op.Neg(value, _version=13).producer.version == 13


def test_types_of_new_values_are_inferred(op):
    """A new value has the type that shape inference gives."""
    assert op.Cast(op.graph.inputs[0], to=7).type.shape == (2,)


def test_attributes_begin_with_given_ones_and_skip_none(op):
    """_attributes are the start, keywords come on top, None leaves out."""
    (root,) = op.graph
    value = op.Relu(op.graph.inputs[0], _attributes=root.attributes, beta=2, gamma=None)
    assert {name: attribute.value for name, attribute in value.producer.attributes.items()} == {"alpha": 1.0, "beta": 2}


def test_several_outputs(op):
    """op.outputs makes a node with as many outputs as asked for."""
    assert len(op.outputs("Split", 2, op.graph.inputs[0], axis=0)) == 2


def test_inputs_may_be_missing_or_numbers(op):
    """None leaves an input out, arrays and numbers become constants with fresh names."""
    value = op.Clip(op.graph.inputs[0], None, np.float32(6))
    assert value.producer.inputs[1] is None
    assert list(op.graph.initializers) == ["root/constant!"]
    assert op.constant(np.zeros(1), "mine").name == "mine!"


def test_mistakes_are_named(op):
    """An unknown keyword with an underscore, and a root without graph, raise InvalidArgument."""
    with pytest.raises(InvalidArgument, match="Neg takes no _domian; known are _attributes, _domain, _version"):
        op.Neg(op.graph.inputs[0], _domian="a")
    with pytest.raises(InvalidArgument, match="is in no graph"):
        Builder(Node("Relu", [], 1, version=20), {}, str)


def test_rules_are_basic_and_fire_always_by_default():
    """A rule without check fires at every match, from BASIC on."""
    rule = Rule("r", lambda op, x: op.Neg(x), lambda op, match, learned: match["x"])
    assert rule.level is Level.BASIC
    assert rule.check(None) is None
