"""Inference over the node cases of onnx.backend.test: what is inferred equals what the cases expect.

Each case is inferred three times: as its model declares, with the values of its inputs known, and with every size of its inputs
replaced by a symbol, whose inferred expressions are then evaluated for the true sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.backend_cases import Case, node_cases

from sardonyx.dtypes import DataType
from sardonyx.formats.onnx import load
from sardonyx.ir import Dim, Expr, Model, TensorType, Value, symbol
from sardonyx.ir.shape import evaluate, is_anonymous
from sardonyx.ops.fact import MAX_VALUE_SIZE, Fact
from sardonyx.ops.infer import infer_graph
from sardonyx.trace import Event, observe

EVERY = 4
"""One in so many cases is run; the name decides which, so that each run takes the same."""
SAMPLE = [case for case in node_cases() if sum(map(ord, case.name)) % EVERY == 0]


def tensors(model: Model, case: Case) -> Iterator[tuple[Value, Any]]:
    """Inputs that are tensors, with their arrays."""
    return ((value, array) for value, array in zip(model.graph.inputs, case.inputs, strict=False) if isinstance(array, np.ndarray))


def known_values(model: Model, case: Case) -> dict[Value, Fact]:
    small = ((value, array) for value, array in tensors(model, case) if array.size <= MAX_VALUE_SIZE and array.dtype != object)
    return {value: Fact(TensorType(DataType.from_numpy(array.dtype), array.shape), array) for value, array in small}


def symbolic_sizes(model: Model, case: Case) -> tuple[dict[Value, Fact], dict[str, int]]:
    """Facts in which each size is a symbol, but for vectors of integers, whose elements shapes depend on; and the sizes."""
    facts = known_values(model, case)
    sizes: dict[str, int] = {}
    for value, array in tensors(model, case):
        if array.dtype.kind in "iu" and array.ndim <= 1 and value in facts:
            continue
        names = [f"{value.name}_{axis}" for axis in range(array.ndim)]
        sizes.update(zip(names, array.shape, strict=True))
        facts[value] = Fact(TensorType(DataType.from_numpy(array.dtype), tuple(symbol(name) for name in names)))
    return facts, sizes


def check(fact: Fact, expected: Any, sizes: dict[str, int]) -> None:
    """Whatever the fact says of type, shape and elements is true of the expected output."""
    if not isinstance(expected, np.ndarray) or fact.dtype is None:
        return
    assert fact.dtype is DataType.from_numpy(expected.dtype)
    if fact.shape is None:
        return
    assert len(fact.shape) == expected.ndim
    for dim, size in zip(fact.shape, expected.shape, strict=True):
        assert _evaluated(dim, sizes, size) == size
    if fact.constant is not None:
        np.testing.assert_array_equal(np.asarray(fact.constant, expected.dtype), expected)


def _evaluated(dim: Dim, sizes: dict[str, int], otherwise: int) -> int:
    return otherwise if isinstance(dim, Expr) and (is_anonymous(dim) or not sizes) else evaluate(dim, sizes)


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_inferred_is_what_the_case_expects(case: Case) -> None:
    """Types, sizes and elements hold in all three ways of asking, and no shape function fails."""
    model = load(case.model)
    for value in model.graph.outputs:
        value.type = None
    symbolic, sizes = symbolic_sizes(model, case)
    seen: list[Event] = []
    with observe(seen.append):
        found = [
            infer_graph(model, overrides=known_values(model, case)),
            infer_graph(model, overrides=symbolic),
            infer_graph(model),
        ]
    assert [event for event in seen if event.name == "infer.gave_up"] == []
    for facts, bound in zip(found, ({}, sizes, {}), strict=True):
        for value, expected in zip(model.graph.outputs, case.outputs, strict=False):
            check(facts.get(value, Fact(value.type)), expected, bound)
