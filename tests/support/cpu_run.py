"""Run models in text form on the CPU provider alone, beside the reference provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from support.models import model

from sardonyx import GraphOptimizationLevel, InferenceSession, SessionOptions
from sardonyx.codegen.target import available_levels, emulated_target, host_target
from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Graph, Model
from sardonyx.provider import Body, Layout, Partition
from sardonyx.providers.cpu.loop_program import LoopProgram
from sardonyx.providers.cpu.program import CpuProgram
from sardonyx.providers.cpu.provider import NAME, CpuProvider

__all__ = [
    "LEVELS",
    "TILES",
    "assert_close",
    "assert_same_bits",
    "cpu_model_session",
    "cpu_session",
    "declined",
    "reference",
    "run_cpu",
    "steps_of",
    "symbols_of",
    "worst_error",
]

LEVELS = [level for level in available_levels() if level != "amx"]
"""The instruction set levels of this machine that kernels are written for."""


TILES = emulated_target("amx", ["amx-tile", "amx-int8", "amx-bf16", "avx512vnni"])
"""A processor with AMX, emulated: what it computes, slowly, on any machine."""


class _Watched(CpuProvider):
    """The provider, which also remembers the steps of what it compiles."""

    def __init__(self, isa: str | None, threads: int, layout: Layout) -> None:
        super().__init__(host_target(isa), threads)
        self.preferred_layout = layout
        self.steps: list[str] = []
        self.symbols: list[str] = []

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CpuProgram | LoopProgram:
        program = super().compile(partition, bodies)
        self.steps += [step.partition(":")[0] for step in program.steps]
        self.symbols += [step.partition(": ")[2] for step in program.steps]
        return program


def cpu_session(
    body: str, *, opset: int = 21, threads: int = 1, isa: str | None = None, layout: Layout = Layout.NCHW
) -> InferenceSession:
    """A session that runs `graph(...)` on the CPU provider; nothing of it may fall back."""
    return cpu_model_session(model(body, opset=opset), threads=threads, isa=isa, layout=layout)


def cpu_model_session(made: Model, *, threads: int = 1, isa: str | None = None, layout: Layout = Layout.NCHW) -> InferenceSession:
    """A session that runs a model on the CPU provider; nothing of it may fall back."""
    session = InferenceSession(to_bytes(made), providers=[_Watched(isa, threads, layout)])
    left = {placement.op_type: placement.declined for placement in session.explain() if placement.provider != NAME}
    assert not left, f"not compiled: {left}"
    return session


def run_cpu(
    body: str, feeds: Mapping[str, Any], *, opset: int = 21, threads: int = 1, isa: str | None = None, layout: Layout = Layout.NCHW
) -> list[Any]:
    """The outputs of one run on the CPU provider."""
    return cpu_session(body, opset=opset, threads=threads, isa=isa, layout=layout).run(None, dict(feeds))


def reference(body: str, feeds: Mapping[str, Any], *, opset: int = 21, double: bool = False) -> list[Any]:
    """The outputs by the reference provider; with `double`, what is float32 in the model and its feeds is float64 instead."""
    given = dict(feeds)
    if double:
        body = body.replace("float[", "double[")
        given = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in given.items()}
    return InferenceSession(to_bytes(model(body, opset=opset)), providers=["ReferenceExecutionProvider"]).run(None, given)


def declined(body: str, *, opset: int = 21, is_rewritten: bool = True) -> list[str]:
    """Why the CPU provider leaves nodes of a model to others; as they are in the model, or as rules write them."""
    options = SessionOptions()
    if not is_rewritten:
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.keep_narrow_floats", "1")
    session = InferenceSession(to_bytes(model(body, opset=opset)), options, providers=[_Watched(None, 1, Layout.NCHW)])
    return [placement.declined[NAME] for placement in session.explain() if placement.provider != NAME]


def steps_of(body: str, *, opset: int = 21, layout: Layout = Layout.NCHW) -> list[str]:
    """The operators of each step, such as Softmax+Mul."""
    provider = _Watched(None, 1, layout)
    InferenceSession(to_bytes(model(body, opset=opset)), providers=[provider])
    return provider.steps


def symbols_of(body: str, *, opset: int = 21) -> list[str]:
    """The kernel of each step."""
    provider = _Watched(None, 1, Layout.NCHW)
    InferenceSession(to_bytes(model(body, opset=opset)), providers=[provider])
    return provider.symbols


def worst_error(found: Array, exact: Array) -> float:
    """The largest error in units of the exact value, or of the typical size of all where that is larger."""
    with np.errstate(invalid="ignore", over="ignore"):
        typical = np.sqrt(np.mean(np.square(exact))) if exact.size else 1.0
        scale = np.maximum(np.abs(exact), typical)
        return float(np.max(np.abs(found - exact) / np.where(scale == 0, 1, scale), initial=0))


def assert_close(found: Array, exact: Array, tolerance: float) -> None:
    """Shapes and special values are equal, and the worst error is within the tolerance."""
    assert found.shape == exact.shape
    special = ~np.isfinite(exact)
    np.testing.assert_array_equal(found[special], exact[special].astype(found.dtype))
    assert worst_error(found[~special], exact[~special]) <= tolerance


def assert_same_bits(left: Array, right: Array) -> None:
    """Type, shape and every bit are equal."""
    assert (left.dtype, left.shape) == (right.dtype, right.shape)
    assert left.tobytes() == right.tobytes()
