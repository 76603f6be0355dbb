"""Run small models on the CPU provider, in NHWC, and compare with the reference provider."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from sardonyx import InferenceSession
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array
from sardonyx.ir import Graph
from sardonyx.provider import Body, Capability, Claims, GraphView, Layout, Partition
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.provider import CpuProvider

__all__ = ["compare", "compiled", "model_of", "nhwc", "program_steps", "random"]


def random(*shape: int, seed: int = 0) -> Array:
    """Normal numbers of float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    constants: Mapping[str, Array],
    outputs: Sequence[str] = ("y",),
    opset: int = 20,
) -> bytes:
    """A model of float32 inputs with these shapes."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    text: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()
    return text


class _ChannelsLast(CpuProvider):
    """The provider, which computes windows with the channels last also where nothing else is computed so."""

    preferred_layout = Layout.NHWC

    def capabilities(self, view: GraphView) -> Claims:
        claims = super().capabilities(view)
        return dataclasses.replace(claims, capabilities=[_in_either_layout(claim) for claim in claims.capabilities])


def _in_either_layout(claim: Capability) -> Capability:
    (node,) = claim.nodes
    is_window = node.op_type in ("AveragePool", "Conv", "LpPool", "MaxPool") and not any(out.use_count for out in node.outputs[1:])
    is_by_channels = node.op_type == "GroupNormalization" and node.version >= 21
    return dataclasses.replace(claim, keeps_layout=False) if is_window or is_by_channels else claim


def nhwc(threads: int = 1) -> CpuProvider:
    """The provider, with its layout-sensitive nodes in NHWC."""
    return _ChannelsLast(host_target(), threads)


def compiled(model: bytes, threads: int = 1) -> InferenceSession:
    """A session that runs the whole model on the CPU provider; fails where it does not."""
    session = InferenceSession(model, providers=[nhwc(threads)])
    declined = {place.op_type: place.declined for place in session.explain() if place.provider != "CPUExecutionProvider"}
    assert not declined
    return session


def compare(model: bytes, feeds: Sequence[Mapping[str, Array]], tolerance: float = 2e-6) -> None:
    """One session for all feeds gives what the reference provider gives, to `tolerance` of the largest; 2 threads the same bits."""
    one, two = compiled(model), compiled(model, threads=2)
    reference = InferenceSession(model, providers=["ReferenceExecutionProvider"])
    for feed in feeds:
        found, again, expected = one.run(None, dict(feed)), two.run(None, dict(feed)), reference.run(None, dict(feed))
        for ours, same, theirs in zip(found, again, expected, strict=True):
            assert ours.shape == theirs.shape
            assert ours.tobytes() == same.tobytes()
            scale = float(np.abs(theirs[np.isfinite(theirs)]).max(initial=1e-30))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


def program_steps(model: bytes) -> list[str]:
    """The steps of every partition of a model, as the operators that each computes and its kernel."""
    seen: list[str] = []

    class Watching(_ChannelsLast):
        def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CpuProgram:
            program = super().compile(partition, bodies)
            seen.extend(program.steps)
            return program

    InferenceSession(model, providers=[Watching(host_target(), 1)])
    return seen
