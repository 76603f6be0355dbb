"""What ONNX Runtime's format says of operators."""

import pytest

from sardonyx.formats.ort.operators import OperatorFacts, default_attribute, facts_of
from sardonyx.ir import Attribute, Graph, Node


def _facts(op_type: str, version: int, domain: str = "") -> OperatorFacts:
    return facts_of(Node(op_type, [], 1, version=version, domain=domain))


def test_an_operator_has_the_version_from_which_its_meaning_holds() -> None:
    """Not that which the model imports."""
    assert _facts("Relu", 20).since_version == 14
    assert _facts("Scaler", 3, "ai.onnx.ml").since_version == 1


def test_types_are_named_by_constraints_or_parameters() -> None:
    """With the parameters that have them: 0 for inputs, 1 for outputs, and a number."""
    assert _facts("Gather", 13).types() == {"T": [(0, 0), (1, 0)], "Tind": [(0, 1)]}
    assert _facts("Reshape", 13).types() == {"T": [(0, 0), (1, 0)], "shape": [(0, 1)]}


@pytest.mark.parametrize(
    ("op_type", "inputs", "counts"), [("Concat", 3, [3]), ("Loop", 4, [1, 1, 2]), ("Clip", 1, [1, 0, 0]), ("If", 1, [1])]
)
def test_values_are_counted_by_parameter(op_type: str, inputs: int, counts: list[int]) -> None:
    """A variadic one takes all that are left, one that is left out none."""
    assert _facts(op_type, 13).counts(inputs) == counts


def test_an_operator_that_nobody_knows_takes_its_values_one_by_one() -> None:
    """And is of version 1."""
    facts = _facts("Mine", 7, "own")
    assert (facts.since_version, facts.types(), facts.counts(2)) == (1, {}, [1, 1])


def test_defaults_are_messages() -> None:
    """By the name of the attribute."""
    assert {item.name for item in _facts("Gemm", 13).defaults} == {"alpha", "beta", "transA", "transB"}
    assert (default_attribute("axis", Attribute.of(-1)).name, default_attribute("axis", Attribute.of(-1)).i) == ("axis", -1)
    with pytest.raises(ValueError, match="cannot be the graph"):
        default_attribute("body", Attribute.of(Graph("g")))
