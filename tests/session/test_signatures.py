"""Signatures of models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.flat_models import Sketch

import sardonyx
from sardonyx.errors import InvalidArgument
from sardonyx.session.signatures import chosen, signatures_of


def _model() -> bytes:
    """Return a model with two signatures, each of a graph of its own, that count in one variable."""
    sketch = Sketch()
    definitions = []
    for index, (name, code) in enumerate((("up", "ADD"), ("down", "SUB"))):
        if index:
            sketch.begin(name)
        x, handle = sketch.input((1,), name=f"{name}_x"), sketch.tensor((), "RESOURCE")
        before, after = sketch.tensor((1,)), sketch.tensor((1,), name=f"{name}_y")
        sketch.operator("VAR_HANDLE", [], [handle], ("VarHandleOptions", {"shared_name": "n"}))
        sketch.operator("READ_VARIABLE", [handle], [before])
        sketch.operator(code, [before, x], [after])
        sketch.operator("ASSIGN_VARIABLE", [handle, after], [])
        sketch.outputs(after)
        entry = {"signature_key": name, "subgraph_index": index, "inputs": [{"name": "by", "tensor_index": x}]}
        definitions.append(entry | {"outputs": [{"name": "n", "tensor_index": after}]})
    sketch.extra["signature_defs"] = definitions
    return sketch.model()


def test_signatures_are_listed() -> None:
    """With the names of their inputs and outputs."""
    session = sardonyx.InferenceSession(_model())
    assert session.get_signature_list() == {
        "up": {"inputs": ["by"], "outputs": ["n"]},
        "down": {"inputs": ["by"], "outputs": ["n"]},
    }


def test_signatures_share_variables(tmp_path: Path) -> None:
    """Though each has a graph of its own."""
    path = tmp_path / "model.tflite"
    path.write_bytes(_model())
    session = sardonyx.InferenceSession(path)
    up, down = session.get_signature_runner("up"), session.get_signature_runner("down")
    assert (up.input_names, up.output_names) == (["by"], ["n"])
    assert up(by=np.array([5], np.float32))["n"].item() == 5
    assert down(by=np.array([2], np.float32))["n"].item() == 3
    assert up(by=np.array([1], np.float32))["n"].item() == 4


@pytest.mark.parametrize(("inputs", "message"), [({}, "needs the input 'by'"), ({"bye": 1}, "has no input 'bye'; it has 'by'")])
def test_wrong_inputs_are_refused(inputs: dict[str, int], message: str) -> None:
    """With the names that there are."""
    with pytest.raises(InvalidArgument, match=message):
        sardonyx.InferenceSession(_model()).get_signature_runner("up")(**inputs)


def test_a_signature_that_is_not_there_is_refused() -> None:
    """With a name like it; the only one needs none."""
    with pytest.raises(InvalidArgument, match="did you mean 'down'"):
        sardonyx.InferenceSession(_model()).get_signature_runner("dow")
    with pytest.raises(InvalidArgument, match="there is no signature None"):
        chosen({"a": {}, "b": {}}, None)
    assert chosen({"a": {}}, None) == "a"


def test_a_model_without_signatures_has_none() -> None:
    """Nor has one whose metadata are no JSON."""
    assert signatures_of({}) == {}
    assert signatures_of({"sardonyx.signatures": "{"}) == {}
