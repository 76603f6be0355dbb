"""A prepared model."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
import sardonyx.backend as backend
from sardonyx.formats.onnx import to_bytes

READY = backend.prepare(to_bytes(model("graph(a: float[n], b: float[n]) -> (y) {\ny = Sub(a, b)\n}")))
A, B = np.full(2, 3, np.float32), np.ones(2, np.float32)


def test_inputs_come_in_order_or_by_name() -> None:
    """A dictionary may have any order."""
    assert READY.run([A, B])[0].tolist() == [2, 2]
    assert READY.run({"b": B, "a": A})[0].tolist() == [2, 2]


def test_one_array_is_the_input_of_a_model_of_one() -> None:
    """Without a list."""
    ready = backend.prepare(to_bytes(model("graph(x: float[n]) -> (y) {\ny = Neg(x)\n}")))
    assert ready.run(A)[0].tolist() == [-3, -3]


def test_another_number_of_inputs_is_refused() -> None:
    """And an option that is not permitted; one that does not exist has no effect."""
    with pytest.raises(ort.InvalidArgument, match=r"expects 2 inputs, \['a', 'b'\]; got 1"):
        READY.run([A])
    with pytest.raises(ort.InvalidArgument, match="'terminate' is not permitted here"):
        READY.run([A, B], terminate=True)
    assert READY.run([A, B], terminate_at=1)[0].tolist() == [2, 2]


def test_a_map_may_be_the_value_of_the_one_input() -> None:
    """Where its keys are no names of inputs."""
    text = "graph(x: map(int64, float)) -> (y) {\ny = ai.onnx.ml.DictVectorizer(x) {int64_vocabulary = [7, 9]}\n}"
    assert backend.prepare(to_bytes(model(text))).run({9: 2.0})[0].tolist() == [[0, 2]]
