"""`sardonyx quantize`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from support.quantizing import CNN, PRODUCTS, images, operators, saved

import sardonyx as ort
from sardonyx.cli import demo


@pytest.fixture
def cnn(tmp_path: Path) -> Path:
    """A file with a model."""
    return saved(CNN, tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file with feeds for it."""
    np.savez(tmp_path / "data.npz", x=np.concatenate([feed["x"] for feed in images()]))
    return tmp_path / "data.npz"


def test_calibration_data_makes_a_static_model(invoke: Callable[..., Result], cnn: Path, data: Path, tmp_path: Path) -> None:
    """With a table of the layers that lose most."""
    result = invoke("quantize", cnn, "-o", tmp_path / "out.onnx", "--data", data, "--per-channel")
    assert result.exit_code == 0, result.output
    assert "layers with the largest error" in result.output
    assert operators(tmp_path / "out.onnx")["QuantizeLinear"] == 7


def test_without_data_activations_are_quantized_in_each_run(invoke: Callable[..., Result], cnn: Path, tmp_path: Path) -> None:
    """And errors are not measured."""
    result = invoke("quantize", cnn, "-o", tmp_path / "out.onnx")
    assert "errors of layers were not measured" in result.output
    assert operators(tmp_path / "out.onnx")["ConvInteger"] == 2


@pytest.mark.parametrize("options", [(), ("--algorithm", "hqq"), ("--symmetric", "--accuracy-level", "4")])
def test_bits_quantize_weights_in_blocks(options: tuple[str, ...], invoke: Callable[..., Result], tmp_path: Path) -> None:
    """By either algorithm."""
    result = invoke("quantize", saved(PRODUCTS, tmp_path), "-o", tmp_path / "out.onnx", "--bits", "4", *options)
    assert result.exit_code == 0, result.output
    assert operators(tmp_path / "out.onnx")["MatMulNBits"] == 2


def test_the_digits_of_the_demo_keep_their_accuracy(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """To half a percent; with weights of 7 bits, whose products saturate nowhere, onnxruntime finds the same classes."""
    folder = Path(demo.__file__).parent / "demo_data"
    given = np.load(folder / "digits.npz")
    np.savez(tmp_path / "some.npz", image=given["images"][:100])
    path = tmp_path / "out.onnx"
    arguments = ("--data", tmp_path / "some.npz", "--evaluate", folder / "digits.npz", "--json")
    result = invoke("quantize", folder / "digits_cnn.onnx", "-o", path, *arguments)
    before, after = json.loads(result.output)["accuracy"]
    assert abs(before - after) <= 0.005
    invoke("quantize", folder / "digits_cnn.onnx", "-o", path, *arguments, "--reduce-range", "--force")
    peer, feed = pytest.importorskip("onnxruntime"), {"image": given["images"]}
    wanted = peer.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feed)[0]
    np.testing.assert_array_equal(ort.InferenceSession(path).run(None, feed)[0].argmax(1), wanted.argmax(1))


def test_a_model_without_anything_to_quantize_is_told(invoke: Callable[..., Result], model_file: Path, tmp_path: Path) -> None:
    """It is written all the same."""
    result = invoke("quantize", model_file, "-o", tmp_path / "out.onnx")
    assert "No node was quantized" in result.output
    assert (tmp_path / "out.onnx").is_file()


def test_nothing_is_overwritten_unasked(invoke: Callable[..., Result], cnn: Path) -> None:
    """Least of all the model itself."""
    result = invoke("quantize", cnn, "-o", cnn)
    assert result.exit_code == 1
    assert "--force" in result.output


def test_bits_need_no_calibration(invoke: Callable[..., Result], cnn: Path, tmp_path: Path) -> None:
    """Both together are refused."""
    result = invoke("quantize", cnn, "-o", tmp_path / "out.onnx", "--bits", "4", "--random", "1")
    assert result.exit_code == 1
    assert "leave out" in result.output
