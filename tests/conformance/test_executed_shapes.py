"""What is inferred about every value of every case is true of what runs.

Each case's model is made to give out all values that its main graph computes, and run without optimization. What was inferred
beforehand, with nothing known, with the values of the inputs known, and with symbols in the place of their sizes, is held against
the arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from support.backend_suite import SuiteCase, cases_of
from support.conformance import LEVELS

import sardonyx as ort
from sardonyx.dtypes import DataType
from sardonyx.formats.onnx import load
from sardonyx.ir import Dim, Expr, Model, TensorType, Value, symbol
from sardonyx.ir.shape import evaluate, is_anonymous
from sardonyx.ops.fact import MAX_VALUE_SIZE, Fact
from sardonyx.ops.infer import infer_graph
from sardonyx.session.providers import REFERENCE
from sardonyx.trace import Event, observe

KINDS = ("node", "model", "simple", "pytorch-converted", "pytorch-operator")
GROUPS = 64
"""Cases are spread over so many tests."""


def groups() -> list[tuple[SuiteCase, ...]]:
    """All cases but the networks, dealt out."""
    cases = [case for kind in KINDS for case in cases_of(kind)]
    return [tuple(cases[index::GROUPS]) for index in range(GROUPS)]


def with_all_values(case: SuiteCase) -> tuple[Model, list[str]]:
    """The model with every value of its main graph as an output, and the values' names; nothing is declared of them."""
    model = load(onnx.ModelProto.FromString(case.model.SerializeToString()))
    for node in model.graph:
        for value in node.outputs:
            if not value.name:
                continue
            value.type = None
            if value not in model.graph.outputs:
                model.graph.add_output(value)
    for value in model.graph.outputs:
        value.type = None
    return model, [value.name for value in model.graph.outputs]


def executed(case: SuiteCase) -> dict[str, Any]:
    """What each value is when the case runs, by name."""
    model, names = with_all_values(case)
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS["off"]
    session = ort.InferenceSession(model, options, providers=[REFERENCE])
    inputs, _ = case.data_sets[0]
    feed = dict(zip([item.name for item in session.get_inputs()], inputs, strict=False))
    return dict(zip(names, session.run(None, feed), strict=True))


def inferred(case: SuiteCase) -> list[tuple[dict[str, Fact], dict[str, int]]]:
    """What is inferred in three ways, by name, each with the sizes that its symbols stand for."""
    plain, given, symbolic = (with_all_values(case)[0] for _ in range(3))
    inputs, _ = case.data_sets[0]
    facts, sizes = symbolic_sizes(symbolic, inputs)
    runs = [
        (infer_graph(plain), {}),
        (infer_graph(given, overrides=known_values(given, inputs)), {}),
        (infer_graph(symbolic, overrides=facts), sizes),
    ]
    return [({value.name: fact for value, fact in found.items()}, sizes) for found, sizes in runs]


def known_values(model: Model, inputs: tuple[Any, ...]) -> dict[Value, Fact]:
    """Facts of the inputs that hold few elements."""
    pairs = [(value, array) for value, array in zip(_fed(model), inputs, strict=False) if isinstance(array, np.ndarray)]
    return {
        value: Fact(TensorType(DataType.from_numpy(array.dtype), array.shape), array if array.size <= MAX_VALUE_SIZE else None)
        for value, array in pairs
    }


def symbolic_sizes(model: Model, inputs: tuple[Any, ...]) -> tuple[dict[Value, Fact], dict[str, int]]:
    """Facts in which each size is a symbol, but for vectors of integers, whose elements shapes depend on; and the sizes."""
    facts, sizes = known_values(model, inputs), {}
    for value, array in zip(_fed(model), inputs, strict=False):
        if not isinstance(array, np.ndarray) or (array.dtype.kind in "iu" and array.ndim <= 1):
            continue
        names = [f"{value.name}_{axis}" for axis in range(array.ndim)]
        sizes.update(zip(names, array.shape, strict=True))
        facts[value] = Fact(TensorType(DataType.from_numpy(array.dtype), tuple(symbol(name) for name in names)))
    return facts, sizes


def _fed(model: Model) -> list[Value]:
    return [value for value in model.graph.inputs if value.constant is None]


def untruths(fact: Fact, array: Any, sizes: dict[str, int]) -> list[str]:
    """In which ways a fact is not true of what was computed."""
    if not isinstance(array, np.ndarray) or fact.dtype is None:
        return []
    if fact.dtype is not DataType.from_numpy(array.dtype):
        return [f"inferred {fact.dtype}, computed {array.dtype}"]
    if fact.shape is None:
        return []
    shape = tuple(_size(dim, sizes, size) for dim, size in zip(fact.shape, array.shape, strict=False))
    if len(fact.shape) != array.ndim or shape != array.shape:
        return [f"inferred {list(map(str, fact.shape))}, computed {array.shape} with {sizes}"]
    if fact.constant is not None and not np.array_equal(fact.constant, array, equal_nan=array.dtype.kind == "f"):
        return [f"inferred the elements {fact.constant.tolist()}, computed {array.tolist()}"]
    return []


def _size(dim: Dim, sizes: dict[str, int], otherwise: int) -> int:
    return otherwise if isinstance(dim, Expr) and (is_anonymous(dim) or not sizes) else evaluate(dim, sizes)


@pytest.mark.parametrize("group", range(GROUPS))
def test_inferred_types_shapes_and_elements_are_those_computed(group: int) -> None:
    """For every value of every case, in three ways of asking; and no shape function fails."""
    wrong: list[str] = []
    for case in groups()[group]:
        seen: list[Event] = []
        with observe(seen.append):
            found = inferred(case)
        wrong += [f"{case.name}: {event.details}" for event in seen if event.name == "infer.gave_up"]
        computed = executed(case)
        for facts, sizes in found:
            for name, array in computed.items():
                wrong += [f"{case.name}, value {name}: {text}" for text in untruths(facts.get(name, Fact(None)), array, sizes)]
    assert not wrong, "\n".join(wrong)
