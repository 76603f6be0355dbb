"""Run an operator of ai.onnx from the kernel of another: many com.microsoft operators are fusions of standard ones.

y = run_standard("Gelu", x, approximate="tanh")
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.ir.attribute import AttributeValue
from sardonyx.ops.activations import FUSED_ACTIVATIONS
from sardonyx.providers.reference.registry import Call, Given, find_kernel

__all__ = ["activate", "run_standard"]

_NEWEST = 2**31 - 1

_ACTIVATIONS: dict[str, tuple[str, ...]] = {"": (), **FUSED_ACTIVATIONS}
"""Activation that a fused operator may name -> the attributes that its parameters stand for, in order."""


def run_standard(
    op_type: str, *inputs: OnnxValue, version: int = _NEWEST, outputs: int = 1, **attributes: AttributeValue
) -> OnnxValue:
    """Return what `op_type` of ai.onnx, read at opset `version`, gives for `inputs`: an array, or a tuple for several outputs."""
    found = find_kernel("", op_type, version)
    assert found is not None, f"ai.onnx.{op_type} has no reference kernel"
    call = Call("", op_type, version, (True,) * outputs, (None,) * outputs)
    if found.view is not None:
        attributes = found.keywords(Given.of(op_type, version, "", attributes), attributes)
    return found.function(call, *inputs, **attributes)


def activate(x: Array, name: str, parameters: Sequence[float]) -> Array:
    """Apply the activation of a fused operator; Clip takes its limits as parameters, "" changes nothing."""
    if name == "Clip":
        low, high = parameters
        clipped: Array = run_standard("Clip", x, version=6, min=low, max=high)
        return clipped
    takes = _ACTIVATIONS.get(name)
    if takes is None:
        raise InvalidArgument(f"activation is {name!r}; expected Clip or one of {', '.join(filter(None, _ACTIVATIONS))}")
    if not name:
        return x
    attributes: dict[str, AttributeValue] = dict(zip(takes, parameters, strict=False))
    activated: Array = run_standard(name, x, **attributes)
    return activated
