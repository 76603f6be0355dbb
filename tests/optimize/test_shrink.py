"""Small parts of a model that show something."""

from __future__ import annotations

import numpy as np
from support.evaluate import evaluate_model
from support.optimizing import model_of, operators

from sardonyx.ir import Model
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.shrink import shrink

CHAIN = " ".join(f"a{i} = Add(a{i - 1}, k)" for i in range(1, 30))


def _model(text: str) -> Model:
    model = model_of(text)
    INFER_SHAPES.run(model, Context())
    return model


def _has(*wanted: str) -> object:
    def shows(part: Model) -> bool:
        verify(part)
        found = operators(part)
        return all(name in found for name in wanted)

    return shows


def test_one_node_is_found_in_a_long_chain() -> None:
    """Halving finds the one node, with its input and output as the part's."""
    model = _model(f"graph(a0: float[2]) -> (y) {{ k: float[2] = [1, 1] {CHAIN} e = Exp(a29) b = Neg(e) y = Add(b, k) }}")
    part = shrink(model, _has("Exp"))
    assert operators(part) == ["Exp"]
    assert [value.name for value in part.graph.inputs] == ["a29"]
    assert [value.name for value in part.graph.outputs] == ["e"]


def test_what_lies_between_two_nodes_stays() -> None:
    """Where two nodes are needed, what lies between comes along, and the part can be run."""
    lines = f"e = Exp(x) a0 = Sqrt(e) {CHAIN} n = Neg(a3) y = Abs(n)"
    model = _model(f"graph(x: float[2]) -> (y) {{ k: float[2] = [1, 1] {lines} }}")
    part = shrink(model, _has("Exp", "Neg"))
    assert operators(part)[0] == "Exp"
    assert operators(part)[-1] == "Neg"
    assert evaluate_model(part, {part.graph.inputs[0].name: np.zeros(2, np.float32)})[-1].tolist() == [-4, -4]


def test_a_model_of_which_no_part_shows_it_stays() -> None:
    """The whole model is the answer where nothing smaller shows it."""
    model = _model("graph(x: float[2]) -> (y) { a = Exp(x) b = Neg(a) y = Abs(b) }")
    assert shrink(model, _has("Exp", "Abs")) is model
    assert shrink(model, lambda part: False) is model
