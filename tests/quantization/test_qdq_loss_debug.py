"""onnxruntime's functions about what quantization does to single tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.quantizing import CNN, images, saved

from sardonyx.errors import InvalidArgument
from sardonyx.quantization import qdq_loss_debug as debug
from sardonyx.quantization.quantize import quantize_static


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `float.onnx` and what `quantize_static` makes of it, one scale for each channel."""
    saved(CNN, tmp_path)
    quantize_static(tmp_path / "float.onnx", tmp_path / "int8.onnx", images(), per_channel=True)
    return tmp_path


def _activations(path: Path, *operators: str) -> dict[str, list[np.ndarray]]:
    watched = path.with_suffix(".watched.onnx")
    debug.modify_model_output_intermediate_tensors(path, watched, operators)
    return debug.collect_activations(str(watched), images())


def test_tensors_are_what_onnxruntime_gives(folder: Path) -> None:
    """The same names, as many runs, flat, and the same numbers but for the order of sums."""
    peer = pytest.importorskip("onnxruntime.quantization.qdq_loss_debug")
    peer.modify_model_output_intermediate_tensors(folder / "float.onnx", folder / "theirs.onnx")
    theirs = peer.collect_activations(str(folder / "theirs.onnx"), images())
    ours = _activations(folder / "float.onnx")
    assert sorted(ours) == sorted(theirs)
    for name, runs in ours.items():
        for own, other in zip(runs, theirs[name], strict=True):
            assert own.ndim == 1
            np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-5)


def test_operators_may_be_chosen(folder: Path) -> None:
    """Inputs and outputs of these only."""
    assert sorted(_activations(folder / "float.onnx", "Add")) == ["a", "c2", "p1"]


def test_errors_of_activations_are_those_that_onnxruntime_finds(folder: Path) -> None:
    """Of the rounding of a tensor, and of the model up to it."""
    peer = pytest.importorskip("onnxruntime.quantization.qdq_loss_debug")
    floats, quantized = _activations(folder / "float.onnx"), _activations(folder / "int8.onnx")
    found = debug.compute_activation_error(debug.create_activation_matching(quantized, floats))
    wanted = peer.compute_activation_error(peer.create_activation_matching(quantized, floats))
    assert found.keys() == wanted.keys() >= {"x", "p1"}
    for name, errors in found.items():
        assert errors == pytest.approx(wanted[name])


def test_without_floats_there_is_the_error_of_the_rounding(folder: Path) -> None:
    """No error of the model up to the tensor."""
    matched = debug.create_activation_matching(_activations(folder / "int8.onnx"))
    assert {tuple(errors) for errors in debug.compute_activation_error(matched).values()} == {("qdq_err",)}


def test_errors_of_weights_are_those_that_onnxruntime_finds(folder: Path) -> None:
    """A scale for each channel."""
    peer = pytest.importorskip("onnxruntime.quantization.qdq_loss_debug")
    paths = [str(folder / name) for name in ("float.onnx", "int8.onnx")]
    found = debug.compute_weight_error(debug.create_weight_matching(*paths))
    wanted = peer.compute_weight_error(peer.create_weight_matching(*paths))
    assert found.keys() == wanted.keys() >= {"w1", "w2", "w3"}
    assert all(error > 30 for error in found.values())
    assert [found[name] for name in ("w1", "w2")] == pytest.approx([wanted[name] for name in ("w1", "w2")], rel=1e-3)


def test_codes_lose_nothing_by_their_own_type() -> None:
    """-100 less 100 is -200, which int8 does not hold; blocks have scales of their own, the last one being short."""
    codes = numpy_helper.from_array(np.int8([[-100, 50, 3]]), "w_quantized")
    scales, zeros = (
        numpy_helper.from_array(array, name) for array, name in ((np.float32([[0.5, 2]]), "s"), (np.int8([[100, 1]]), "z"))
    )
    node = helper.make_node("DequantizeLinear", ["w_quantized", "s", "z"], ["y"], axis=1, block_size=2)
    info = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])]
    quantized = helper.make_model(helper.make_graph([node], "g", [], info, [codes, scales, zeros]), ir_version=10)
    weight = numpy_helper.from_array(np.float32([[-99, -26, 4]]), "w")
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], info, [weight])
    floats = helper.make_model(graph, ir_version=10)
    assert debug.create_weight_matching(floats, quantized)["w"]["dequantized"].tolist() == [[-100, -25, 4]]


def test_a_ratio_is_one_of_norms_in_decibels() -> None:
    """Of several tensors as of one; of equal ones it is finite."""
    ratio = debug.compute_signal_to_quantization_noice_ratio
    assert ratio(np.float32([3, 4]), np.float32([3, 4.5])) == pytest.approx(20)
    assert ratio([np.float32([3]), np.float32([[4]])], [np.float32([3]), np.float32([[4.5]])]) == pytest.approx(20)
    assert ratio(np.float32([1]), np.float32([1])) == pytest.approx(20 * 52 * np.log10(2))
    with pytest.raises(RuntimeError, match="as many tensors on both sides"):
        ratio([np.ones(1)], [])
    with pytest.raises(InvalidArgument, match="2 and 3 elements"):
        ratio(np.ones(2), np.ones(3))


def test_no_feed_is_an_error(folder: Path) -> None:
    """As in onnxruntime."""
    debug.modify_model_output_intermediate_tensors(onnx.load(folder / "float.onnx"), folder / "watched.onnx")
    with pytest.raises(RuntimeError, match="the reader gave no feed"):
        debug.collect_activations(str(folder / "watched.onnx"), [])
