"""Run models on the CPU provider alone, beside the reference provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from support.models import model

from sardonyx import InferenceSession
from sardonyx.codegen.target import available_levels, host_target
from sardonyx.dtypes import Array
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import TensorType
from sardonyx.providers.cpu.provider import NAME, CpuProvider

__all__ = ["LEVELS", "assert_close", "cpu_session", "declined", "kernels_of", "reference", "run_cpu", "worst_error"]

LEVELS = [level for level in available_levels() if level != "amx"]
"""The instruction set levels of this machine that kernels are written for."""


def cpu_session(body: str, *, opset: int = 21, threads: int = 1, isa: str | None = None) -> InferenceSession:
    """A session that runs `graph(...)` on the CPU provider; nothing of it may fall back."""
    session = InferenceSession(to_bytes(model(body, opset=opset)), providers=[CpuProvider(host_target(isa), threads)])
    left = {placement.op_type: placement.declined for placement in session.explain() if placement.provider != NAME}
    assert not left, f"not compiled: {left}"
    return session


def run_cpu(body: str, feeds: Mapping[str, Any], *, opset: int = 21, threads: int = 1, isa: str | None = None) -> list[Any]:
    """The outputs of one run on the CPU provider."""
    return cpu_session(body, opset=opset, threads=threads, isa=isa).run(None, dict(feeds))


def reference(body: str, feeds: Mapping[str, Any], *, opset: int = 21, double: bool = False) -> list[Any]:
    """The outputs by the reference provider; with `double`, the model and its feeds are float64 where they were float32."""
    made = model(body, opset=opset)
    given = dict(feeds)
    if double:
        body = body.replace("float[", "double[")
        made = model(body, opset=opset)
        given = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in given.items()}
    return InferenceSession(to_bytes(made), providers=["ReferenceExecutionProvider"]).run(None, given)


def declined(body: str, *, opset: int = 21) -> list[str]:
    """Why the CPU provider leaves nodes of a model to others."""
    session = InferenceSession(to_bytes(model(body, opset=opset)), providers=[CpuProvider(host_target(None), 1)])
    return [placement.declined[NAME] for placement in session.explain() if placement.provider != NAME]


def kernels_of(body: str, *, opset: int = 21) -> list[str]:
    """The operators of each step of the one partition that a model is."""
    from sardonyx.ops.schemas import find_schema  # noqa: F401  # the session's parts are imported by then

    return [step.split(":")[0] for step in _program(body, opset)]


def _program(body: str, opset: int) -> list[str]:
    seen: list[str] = []

    class Watching(CpuProvider):
        def compile(self, partition: Any, bodies: Any) -> Any:
            program = super().compile(partition, bodies)
            seen.extend(program.steps)
            return program

    InferenceSession(to_bytes(model(body, opset=opset)), providers=[Watching(host_target(None), 1)])
    return seen


def worst_error(found: Array, exact: Array) -> float:
    """The largest error in units of the larger of the exact value and the typical size of all."""
    with np.errstate(invalid="ignore", over="ignore"):
        scale = np.maximum(np.abs(exact), np.sqrt(np.mean(np.square(exact))) if exact.size else 1)
        return float(np.max(np.abs(found - exact) / np.where(scale == 0, 1, scale), initial=0))


def assert_close(found: Array, exact: Array, tolerance: float) -> None:
    """Shapes and special values are equal, and the worst error is within the tolerance."""
    assert found.shape == exact.shape
    special = ~np.isfinite(exact)
    np.testing.assert_array_equal(found[special], exact[special].astype(found.dtype))
    assert worst_error(found[~special], exact[~special]) <= tolerance


_ = TensorType
