"""Small models of 8-bit integers: on the CPU provider, which runs the whole of them, and on the reference provider, bit for bit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from sardonyx import GraphOptimizationLevel, InferenceSession, SessionOptions
from sardonyx.dtypes import Array
from sardonyx.providers.cpu.provider import create

__all__ = ["equal", "quantized_model", "random_bytes", "session_of"]


def random_bytes(dtype: Any, *shape: int, seed: int = 0) -> Array:
    """Integers of all of a type's range."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, endpoint=True)


def quantized_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[Any, Sequence[int | str]]],
    constants: Mapping[str, Any],
    output: Any,
    opset: int = 20,
) -> bytes:
    """A model whose inputs have these NumPy types and shapes, and whose output y has the type `output`."""

    def declared(name: str, dtype: Any, shape: Sequence[int | str] | None) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

    graph = helper.make_graph(
        list(nodes),
        "graph",
        [declared(name, *about) for name, about in inputs.items()],
        [declared("y", output, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    text: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return text


def session_of(model: bytes, threads: int = 1) -> InferenceSession:
    """A session that runs the whole model on the CPU provider, quantized operators as they are; fails where it does not."""
    session = InferenceSession(model, providers=[create({"intra_op_num_threads": str(threads)})])
    declined = {place.op_type: place.declined for place in session.explain() if place.provider != "CPUExecutionProvider"}
    assert not declined
    return session


def equal(model: bytes, feeds: Sequence[Mapping[str, Array]]) -> list[Array]:
    """One session for all feeds gives the reference provider's bits, with 1 thread and with 2; return them."""
    one, two = session_of(model), session_of(model, threads=2)
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    reference = InferenceSession(model, options, providers=["ReferenceExecutionProvider"])
    results = []
    for feed in feeds:
        found, again, expected = (session.run(None, dict(feed))[0] for session in (one, two, reference))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        assert found.tobytes() == again.tobytes()
        results.append(found)
    return results
