"""Call one reference kernel as the engine would, without a model around it."""

from __future__ import annotations

from typing import Any

import numpy as np

import sardonyx.providers.reference.kernels  # noqa: F401  registers the kernels
from sardonyx.dtypes import DataType
from sardonyx.providers.reference.registry import Call, Given, find_kernel

LATEST = {"": 28, "ai.onnx.ml": 5, "com.microsoft": 1, "ai.onnx.preview.training": 1, "ai.onnx.preview": 1, "sardonyx.tflite": 1}


def run_op(
    op_type: str,
    *inputs: Any,
    domain: str = "",
    version: int | None = None,
    outputs: int = 1,
    output_types: tuple[DataType | None, ...] | None = None,
    **attributes: Any,
) -> Any:
    """Run `op_type` of `domain` at opset `version` (the newest if None) and return what its kernel returns."""
    version = LATEST[domain] if version is None else version
    found = find_kernel(domain, op_type, version)
    assert found is not None, f"no reference kernel for {domain}.{op_type} at {version}"
    unknown = set(attributes) - found.attributes
    assert not unknown or found.view is not None, f"{op_type}: the kernel takes no attribute {sorted(unknown)}"
    call = Call("test", op_type, version, (True,) * outputs, output_types or (None,) * outputs)
    arrays = [np.asarray(x) if isinstance(x, (int, float, np.generic)) else x for x in inputs]
    if found.view is not None:
        attributes = found.keywords(Given.of(op_type, version, domain, attributes), attributes)
    return found.function(call, *arrays, **attributes)
