"""Inference over real models: against onnx's own shape inference, and its cost."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest
from support.light_model import read_light

from sardonyx.formats.onnx import load
from sardonyx.ir import TensorType
from sardonyx.ops.infer import infer_graph
from sardonyx.trace import Event, observe

FOLDER = Path(os.environ.get("SARDONYX_ZOO", "/nonexistent")) / "light"
MODELS = sorted(FOLDER.glob("*.onnx"))


@pytest.mark.skipif(not MODELS, reason="SARDONYX_ZOO names no folder of models")
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_inferred_sizes_agree_with_onnx(path: Path) -> None:
    """Every type and every integer size equals the one that onnx.shape_inference finds, and no shape function fails."""
    proto = read_light(path)
    model = load(proto)
    seen: list[Event] = []
    with observe(seen.append):
        facts = infer_graph(model)
    assert [event for event in seen if event.name == "infer.gave_up"] == []
    inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
    theirs = {
        value.name: value.type.tensor_type
        for value in [*inferred.value_info, *inferred.output]
        if value.type.HasField("tensor_type")
    }
    for node in model.graph:
        for value in node.outputs:
            found, wanted = facts[value].type, theirs.get(value.name)
            if wanted is None or not isinstance(found, TensorType):
                continue
            assert int(found.dtype) == wanted.elem_type, value
            if wanted.HasField("shape"):
                assert found.shape is not None, value
                pairs = zip(found.shape, wanted.shape.dim, strict=True)
                assert all(a == b.dim_value for a, b in pairs if isinstance(a, int) and b.HasField("dim_value")), value
