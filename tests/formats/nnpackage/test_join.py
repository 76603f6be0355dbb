"""Several models as one."""

from collections.abc import Sequence

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.packages import ADD, NEG, SQRT

from sardonyx.errors import InvalidGraph
from sardonyx.formats.nnpackage.join import join
from sardonyx.formats.nnpackage.manifest import Connection, End
from sardonyx.ir import Model
from sardonyx.ir.text import parse_model
from sardonyx.ir.verify import verify

_PAIR = {"ifm1": np.array([1, 2], np.float32), "ifm2": np.array([3, 7], np.float32)}


def _models(*texts: str) -> list[Model]:
    return [parse_model(text if text.startswith("opset") else f"opset 21\n{text}") for text in texts]


def _join(texts: Sequence[str], inputs: str, outputs: str, *edges: str) -> Model:
    pairs = [edge.split("->") for edge in edges]
    model = join(_models(*texts), _ends(inputs), _ends(outputs), [Connection(*_ends(" ".join(pair))) for pair in pairs])
    verify(model)
    return model


def _ends(text: str) -> list[End]:
    return [End(*map(int, word.split(":"))) for word in text.split()]


def test_two_models_in_a_row() -> None:
    """One reads what the other makes."""
    model = _join([ADD, SQRT], "0:0 0:1", "1:0", "0:0->1:0")
    assert [item.tolist() for item in evaluate_model(model, _PAIR)] == [[2, 3]]


def test_a_branch_and_models_in_another_order() -> None:
    """One output may be read by several models, and be an output too."""
    model = _join([NEG, SQRT, ADD], "2:0 2:1", "1:0 0:0 2:0", "2:0->0:0", "2:0->1:0")
    assert [item.tolist() for item in evaluate_model(model, _PAIR)] == [[2, 3], [-4, -9], [4, 9]]


def test_names_that_are_there_twice_get_a_number() -> None:
    """Of values, constants and nodes."""
    scale = "graph s(x: float[2]) -> (y: float[2]) {\nw: float[2] = [2, 3]\ny = Mul(x, w) @m\n}"
    model = _join([scale, scale], "0:0", "0:0 1:0", "0:0->1:0")
    assert evaluate_model(model, {"x": np.ones(2, np.float32)})[1].tolist() == [4, 9]
    assert (list(model.graph.initializers), [value.name for value in model.graph.outputs]) == (["w", "w_1"], ["y", "y_1"])
    assert [node.name for node in model.graph] == ["m", "m_1"]


def test_an_output_that_is_an_input_is_passed_on() -> None:
    """Through a model without nodes."""
    same = "graph s(x: float[2]) -> (x: float[2]) {\n}"
    model = _join([same, NEG], "0:0", "1:0 0:0", "0:0->1:0")
    assert [item.tolist() for item in evaluate_model(model, {"x": np.ones(2, np.float32)})] == [[-1, -1], [1, 1]]


def test_functions_of_one_name_stay_apart() -> None:
    """Each model calls its own."""
    text = (
        "opset 21\ngraph g(x: float[2]) -> (y: float[2]) {{\ny = own.F(x)\n}}\nfunction own.F(a) -> (b) {{\nopset 21\nb = {}(a)\n}}"
    )
    model = _join([text.format("Neg"), text.format("Abs")], "0:0", "1:0", "0:0->1:0")
    called = [model.functions[node.domain, node.op_type, node.overload] for node in model.graph]
    assert [next(iter(function.graph)).op_type for function in called] == ["Neg", "Abs"]


@pytest.mark.parametrize(
    ("inputs", "outputs", "edges", "message"),
    [
        ("0:0", "1:0", ["0:0->1:0"], "input 0:0:1 of the package's models .'ifm2' of add. has no source"),
        ("0:0 0:1 1:0", "1:0", ["0:0->1:0"], "input 1:0:0 of the package's models .'add'. has two sources"),
        ("0:0 0:1", "1:3", ["0:0->1:0"], "1:0:3 names none of the 1 outputs of model sqrt"),
        ("0:0 0:7", "1:0", ["0:0->1:0"], "0:0:7 names none of the 2 inputs of model add"),
        ("0:0", "1:0", ["0:0->1:0", "1:0->0:1"], "the package's models wait for one another: add, sqrt"),
    ],
)
def test_what_cannot_be_joined_is_refused(inputs: str, outputs: str, edges: list[str], message: str) -> None:
    """With the end that is wrong."""
    with pytest.raises(InvalidGraph, match=message):
        _join([ADD, SQRT], inputs, outputs, *edges)


@pytest.mark.parametrize("kind", ["float[3]", "int64[2]", "float[2, 1]"])
def test_types_must_fit(kind: str) -> None:
    """Elements and sizes."""
    other = f"graph o(a: {kind}) -> (b: {kind}) {{\nb = Identity(a)\n}}"
    with pytest.raises(
        InvalidGraph, match=r"the connection 0:0:0 -> 1:0:0 does not fit: 'add' is tensor\(float\) of shape \[2\], and 'a' is"
    ):
        _join([ADD, other], "0:0 0:1", "1:0", "0:0->1:0")
