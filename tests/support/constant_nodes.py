"""Models of one node, some of whose inputs are constants."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import helper, numpy_helper

from sardonyx import InferenceSession, SessionOptions
from sardonyx.dtypes import Array

__all__ = ["declined_of", "node_model", "open_session"]


def node_model(
    op_type: str,
    inputs: Sequence[tuple[str, Array] | Array | None],
    *,
    domain: str = "com.microsoft",
    opset: int = 21,
    shapes: dict[str, Sequence[str | int]] | None = None,
    **attributes: object,
) -> bytes:
    """The model of a node with one output y, of the type of the first input.

    Args:
        op_type: the operator.
        inputs: what it reads: (name, an array of the type and shape) of what is fed, an array that is constant, None for nothing.
        domain: the operator's.
        opset: of the standard.
        shapes: the shapes that inputs are declared with, where they are others.
        attributes: the node's.
    """
    names, fed, constants = [], [], []
    for place, given in enumerate(inputs):
        if given is None:
            names.append("")
        elif isinstance(given, tuple):
            name, array = given
            names.append(name)
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            fed.append(helper.make_tensor_value_info(name, kind, (shapes or {}).get(name, array.shape)))
        else:
            names.append(f"c{place}")
            constants.append(numpy_helper.from_array(given, f"c{place}"))
    node = helper.make_node(op_type, names, ["y"], domain=domain, **attributes)
    output = helper.make_tensor_value_info("y", fed[0].type.tensor_type.elem_type, None)
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    graph = helper.make_graph([node], "g", fed, [output], constants)
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())


def open_session(model: bytes, provider: str = "CPU", threads: int = 1) -> InferenceSession:
    """A session of the model on one provider; nothing of it may be left to another."""
    options = SessionOptions()
    options.intra_op_num_threads = threads
    session = InferenceSession(model, options, providers=[f"{provider}ExecutionProvider"])
    left = [placement.declined for placement in session.explain() if placement.provider != f"{provider}ExecutionProvider"]
    assert not left, left
    return session


def declined_of(model: bytes) -> str:
    """Why the CPU provider leaves the node to others."""
    session = InferenceSession(model, providers=["CPUExecutionProvider"])
    reasons = [placement.declined["CPUExecutionProvider"] for placement in session.explain() if placement.declined]
    return reasons[0] if reasons else ""
