"""The error of each layer."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from support.models import model
from support.quantizing import CNN, images, saved

from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import save
from sardonyx.quantization.layer_errors import LayerError, layer_errors
from sardonyx.quantization.quantize import quantize_static


def test_each_layer_that_both_models_have_is_listed(tmp_path: Path) -> None:
    """In the order of the model in floats, with a small error."""
    path = tmp_path / "int8.onnx"
    quantize_static(saved(CNN, tmp_path), path, images())
    found = layer_errors(str(tmp_path / "float.onnx"), str(path), images())
    assert [error.tensor for error in found] == ["c1", "r1", "p1", "c2", "a", "f", "y"]
    assert all(0 < error.relative_error < 0.1 for error in found)
    assert found[0].operator == "Conv"
    assert found[0].node == "first"


def test_errors_are_relative_to_the_values(tmp_path: Path) -> None:
    """The root of the mean square; equal tensors have none."""
    for name, factor in (("a", 1.0), ("b", 1.5)):
        text = f"graph(x: float[2]) -> (y: float[2]) {{ k: float[1] = [{factor}] z = Relu(x) y = Mul(z, k) }}"
        save(model(text), tmp_path / f"{name}.onnx")
    found = layer_errors(str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"), [{"x": np.float32([3, 4])}])
    assert [(error.tensor, error.relative_error, error.largest_error) for error in found] == [("z", 0, 0), ("y", 0.5, 2)]


def test_decibels() -> None:
    """A tenth is 20 dB, nothing infinitely many."""
    assert LayerError("x", "Relu", "", 0.1, 1).signal_to_noise_db == pytest.approx(20)
    assert math.isinf(LayerError("x", "Relu", "", 0, 0).signal_to_noise_db)


def test_models_without_a_common_tensor_are_refused(tmp_path: Path) -> None:
    """And no feed at all."""
    for name in "ab":
        save(model(f"graph(x: float[2]) -> ({name}: float[2]) {{ {name} = Relu(x) }}"), tmp_path / f"{name}.onnx")
    with pytest.raises(InvalidArgument, match="no tensor in common"):
        layer_errors(str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"), [])
    with pytest.raises(InvalidArgument, match="one feed"):
        layer_errors(str(tmp_path / "a.onnx"), str(tmp_path / "a.onnx"), [])
