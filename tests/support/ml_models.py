"""Sessions of small models of ai.onnx.ml."""

from __future__ import annotations

from support.optimizing import model_of

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes

__all__ = ["REFERENCE", "ml_session", "native"]

REFERENCE = ["ReferenceExecutionProvider"]
"""The provider that says what is right, without rewrites that a test could not see."""


def ml_session(text: str, *, opset: str = "17, ai.onnx.ml 3", is_reference: bool = False) -> ort.InferenceSession:
    """A session of a model in text form; as the reference it runs the operators as they are."""
    options = ort.SessionOptions()
    if is_reference:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(to_bytes(model_of(text, opset)), options, **({"providers": REFERENCE} if is_reference else {}))


def native(session: ort.InferenceSession) -> bool:
    """Whether all nodes are compiled."""
    return {place.provider for place in session.explain()} <= {"CPUExecutionProvider"}
