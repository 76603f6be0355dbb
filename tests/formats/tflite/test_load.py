"""TensorFlow Lite and Circle files to models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

import sardonyx
from sardonyx import errors


def test_inputs_and_outputs_have_the_names_of_tensors() -> None:
    """A number tells those of one name apart."""
    sketch = Sketch()
    x, y, z = sketch.input((2,), name="x"), sketch.input((2,), name="x"), sketch.tensor((2,), name="z")
    sketch.operator("SUB", [x, y], [z])
    session = sardonyx.InferenceSession(sketch.model([z]))
    assert [value.name for value in session.get_inputs()] == ["x", "x_1"]
    assert [value.name for value in session.get_outputs()] == ["z"]


def test_an_input_or_a_constant_may_be_given_out() -> None:
    """Also twice."""
    sketch = Sketch()
    x, c = sketch.input((2,)), sketch.constant(np.array([5], np.int32))
    found = run(sketch.model([x, c, x]), np.array([1, 2], np.float32))
    assert [array.tolist() for array in found] == [[1, 2], [5], [1, 2]]


def test_a_run_may_have_another_batch() -> None:
    """Where the signature leaves it open."""
    sketch = Sketch()
    x = sketch.input((1, 2), shape_signature=[-1, 2])
    y = sketch.tensor((1, 2))
    sketch.operator("NEG", [x], [y])
    assert run(sketch.model([y]), np.ones((3, 2), np.float32))[0].shape == (3, 2)


def _broken(change: Any) -> bytes:
    sketch = Sketch()
    x, y = sketch.input((2,)), sketch.tensor((2,))
    sketch.operator("NEG", [x], [y])
    sketch.outputs(y)
    change(sketch)
    return sketch.model()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda sketch: sketch.extra.update(version=2), "Model.version: it is 2"),
        (lambda sketch: sketch.extra.update(subgraphs=[]), "Model.subgraphs: the model has none"),
        (lambda sketch: sketch.subgraphs[0]["operators"][0].update(opcode_index=7), r"opcode_index: it is 7, and the model has 1"),
        (lambda sketch: sketch.subgraphs[0]["operators"][0].update(inputs=[9]), r"operators\[0\].inputs: there is no tensor 9"),
        (lambda sketch: sketch.subgraphs[0]["operators"][0].update(outputs=[-1]), r"operators\[0\].outputs: there is no tensor -1"),
        (lambda sketch: sketch.subgraphs[0].update(outputs=[5]), r"subgraphs\[0\].outputs: there is no tensor 5"),
        (lambda sketch: sketch.subgraphs[0].update(operators=[]), r"outputs: tensor 1 \('t1'\) is made by nothing"),
        (lambda sketch: sketch.codes[0].update(builtin_code=5000), r"operator_codes\[0\].builtin_code: 5000 is no operator"),
    ],
)
def test_contradictions_are_refused(change: Any, message: str) -> None:
    """With the table and the field."""
    with pytest.raises(errors.InvalidFlatBuffer, match=message):
        sardonyx.InferenceSession(_broken(change))


def test_an_unknown_custom_operator_is_named() -> None:
    """With its place in the file."""
    with pytest.raises(errors.SardonyxError, match="tflite.MyOperator"):
        run(one("MyOperator", [((2,), "FLOAT32")], ((2,), "FLOAT32")), np.zeros(2, np.float32))


def test_older_files_have_the_code_in_a_byte() -> None:
    """The wider field is absent there."""
    sketch = Sketch()
    x, y = sketch.input((2,)), sketch.tensor((2,))
    sketch.operator("NEG", [x], [y])
    del sketch.codes[0]["builtin_code"]
    assert run(sketch.model([y]), np.array([1, -2], np.float32))[0].tolist() == [-1, 2]
