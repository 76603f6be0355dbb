"""Every case of an operator: what it computes is what LiteRT's reference kernels compute."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from formats.tflite.cases import every_case
from formats.tflite.cases.case import Case

import sardonyx
from sardonyx.dtypes import Array
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.flat.reader import read_root
from sardonyx.formats.flat.schema_tflite import TFLITE

CASES = list(every_case())
HAS_PEER = importlib.util.find_spec("ai_edge_litert") is not None


def _ours(found: Case) -> list[Array]:
    session = sardonyx.InferenceSession(found.data)
    feed = dict(zip([value.name for value in session.get_inputs()], found.feeds, strict=True))
    return [list(session.run(None, feed)) for _ in range(found.runs)][-1]


@pytest.mark.parametrize("found", CASES, ids=lambda found: found.name)
def test_outputs_have_the_shapes_of_the_file(found: Case) -> None:
    """And its element types, where no run decides about them."""
    root = read_root(MemoryContent(memoryview(found.data)), TFLITE, "case")
    [graph] = root.tables("subgraphs")[:1]
    tensors = [graph.tables("tensors")[index] for index in graph.numbers("outputs")]
    for array, tensor in zip(_ours(found), tensors, strict=True):
        if not found.is_open:
            assert array.shape == tuple(tensor.numbers("shape"))
        assert array.dtype.name.replace("str", "object") in (tensor.choice("type").lower(), "object")


@pytest.mark.skipif(not HAS_PEER, reason="ai_edge_litert is not installed (extra peers)")
@pytest.mark.parametrize("found", [found for found in CASES if found.peer], ids=lambda found: found.name)
def test_litert_computes_the_same(found: Case) -> None:
    """Floats within a part of the greatest, integers that stand for numbers within a step, all else exactly."""
    interpreter = _interpreter(found.data, found.peer)
    for detail, array in zip(interpreter.get_input_details(), found.feeds, strict=True):
        text = array.dtype == object
        fed = np.array([item.encode() for item in array.reshape(-1)], object).reshape(array.shape) if text else array
        interpreter.set_tensor(detail["index"], fed)
    for _ in range(found.runs):
        interpreter.invoke()
    expected = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    for ours, theirs in zip(_ours(found), expected, strict=True):
        _compare(found, ours, theirs)


def _interpreter(data: bytes, peer: str) -> Any:
    """Return an interpreter with the reference kernels, or with the optimized ones where there is no such kernel."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolvers = [OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES]
    try:
        found = Interpreter(model_content=data, experimental_op_resolver_type=resolvers[peer == "optimized"])
    except ValueError:
        found = Interpreter(model_content=data, experimental_op_resolver_type=resolvers[1])
    found.allocate_tensors()
    return found


def _compare(found: Case, ours: Array, theirs: Array) -> None:
    assert ours.shape == theirs.shape
    if theirs.dtype.kind in "OS":
        assert [item.encode() for item in ours.reshape(-1)] == theirs.reshape(-1).tolist()
    elif theirs.dtype.kind in "fc":
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=found.tolerance * max(1, np.abs(theirs).max(initial=0)))
    else:
        steps = found.steps if theirs.dtype.itemsize < 4 else 0
        assert np.abs(ours.astype(np.int64) - theirs.astype(np.int64)).max(initial=0) <= steps
