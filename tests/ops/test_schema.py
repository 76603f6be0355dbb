"""Facts about the schema records."""

from __future__ import annotations

from sardonyx.ir import Node, Value
from sardonyx.ops.schema import OpSchema, ParameterOption, ParameterSchema, place_of


def _schema(*inputs: ParameterSchema) -> OpSchema:
    return OpSchema("", "Example", 3, inputs, (), {}, {}, 0, 9, 0, 0)


def test_variadic_parameter_takes_all_further_inputs() -> None:
    """Inputs from the variadic parameter on belong to it."""
    schema = _schema(ParameterSchema("x", "T"), ParameterSchema("rest", "T", ParameterOption.VARIADIC))
    assert schema.input(0) is schema.inputs[0]
    assert schema.input(7) is schema.inputs[1]


def test_parameter_beyond_the_last_is_none() -> None:
    """There is no formal parameter beyond the last single one."""
    assert _schema(ParameterSchema("x", "T")).input(1) is None
    assert _schema().output(0) is None


def test_label_names_domain_and_version() -> None:
    """The label of a standard operator leaves the domain out."""
    assert _schema().label == "Example-3"


def test_place_of_a_nameless_node_names_its_output() -> None:
    """A node without a name is called after its first output."""
    assert place_of(Node("Relu", [], [Value("y")], version=6)) == 'node that makes "y" (Relu, opset 6)'
    assert place_of(Node("Relu", [], [Value("y")], version=6, name="r")) == 'node "r" (Relu, opset 6)'
    assert place_of(Node("Relu", [], 0, version=1, domain="d")) == "node without outputs (d.Relu, opset 1)"
