"""LoRA adapters of runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import sardonyx as ort


def _model() -> bytes:
    """Return x + a @ b, with an initializer of zeros for each of a and b, which inputs override."""
    zeros = [numpy_helper.from_array(np.zeros((2, 1), np.float32), "a"), numpy_helper.from_array(np.zeros((1, 2), np.float32), "b")]
    declared = [("x", ["n", 2]), ("a", [2, "r"]), ("b", ["r", 2])]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])],
        "lora",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in declared],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        zeros,
    )
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString())


X = np.ones((2, 2), np.float32)


def _adapter(folder: Path, **arrays: object) -> ort.LoraAdapter:
    file = ort.AdapterFormat()
    file.set_parameters({name: ort.OrtValue.ortvalue_from_numpy(np.array(array, np.float32)) for name, array in arrays.items()})
    path = folder / "own.onnx_adapter"
    file.export_adapter(path)
    adapter = ort.LoraAdapter()
    adapter.Load(path)
    return adapter


def test_an_adapter_feeds_the_runs_that_it_is_active_in(tmp_path: Path) -> None:
    """Others have the initializers."""
    session = ort.InferenceSession(_model())
    options = ort.RunOptions()
    options.add_active_adapter(_adapter(tmp_path, a=[[1], [2]], b=[[3, 4]]))
    assert session.run(None, {"x": X}, options)[0].tolist() == [[4, 5], [7, 9]]
    assert session.run(None, {"x": X})[0].tolist() == X.tolist()


def test_adapters_count_in_every_kind_of_run(tmp_path: Path) -> None:
    """Of OrtValues and bindings too."""
    session = ort.InferenceSession(_model())
    options = ort.RunOptions()
    options.add_active_adapter(_adapter(tmp_path, a=[[1], [2]], b=[[3, 4]]))
    value = ort.OrtValue.ortvalue_from_numpy(X)
    assert session.run_with_ort_values(None, {"x": value}, options)[0].numpy().tolist() == [[4, 5], [7, 9]]
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding, options)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[4, 5], [7, 9]]


def test_several_adapters_feed_what_is_theirs(tmp_path: Path) -> None:
    """An input that is fed twice is an error."""
    session = ort.InferenceSession(_model())
    options = ort.RunOptions()
    options.add_active_adapter(_adapter(tmp_path, a=[[1], [2]]))
    options.add_active_adapter(_adapter(tmp_path, b=[[3, 4]]))
    assert session.run(None, {"x": X}, options)[0].tolist() == [[4, 5], [7, 9]]
    with pytest.raises(ort.InvalidArgument, match="'b' is fed twice"):
        session.run(None, {"x": X, "b": np.zeros((1, 2), np.float32)}, options)


def test_an_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    """By the name that the model lacks; so is one that is not loaded, and what is none."""
    session = ort.InferenceSession(_model())
    options = ort.RunOptions()
    options.add_active_adapter(_adapter(tmp_path, q=[1]))
    with pytest.raises(ort.InvalidArgument, match="no input 'q'"):
        session.run(None, {"x": X}, options)
    empty = ort.RunOptions()
    empty.add_active_adapter(ort.LoraAdapter())
    with pytest.raises(ort.InvalidArgument, match="holds nothing: call Load"):
        session.run(None, {"x": X}, empty)
    with pytest.raises(TypeError, match="takes a LoraAdapter, got str"):
        empty.add_active_adapter("own.onnx_adapter")  # type: ignore[arg-type]  # what is refused


def test_a_file_is_read_changed_and_written(tmp_path: Path) -> None:
    """Tensors of a file outlive the object that read it."""
    _adapter(tmp_path, a=[[1], [2]])
    path = tmp_path / "own.onnx_adapter"
    found = ort.AdapterFormat.read_adapter(path)
    kept = found.get_parameters()["a"]
    found.set_parameters({"b": kept})
    found.set_adapter_version(2)
    found.set_model_version(5)
    found.export_adapter(path)
    again = ort.AdapterFormat.read_adapter(path)
    assert (again.get_format_version(), again.get_adapter_version(), again.get_model_version()) == (1, 2, 5)
    assert {name: value.numpy().tolist() for name, value in again.get_parameters().items()} == {"b": [[1], [2]]}
    assert kept.numpy().tolist() == [[1], [2]]


def test_what_is_no_tensor_is_not_written(tmp_path: Path) -> None:
    """Nor a version of more than 32 bits."""
    file = ort.AdapterFormat()
    file.set_parameters({"s": ort.OrtValue.of([np.zeros(1, np.float32)])})
    with pytest.raises(ort.InvalidArgument, match="'s' is a tensor in an OrtValue"):
        file.export_adapter(tmp_path / "x")
    with pytest.raises(ort.InvalidArgument, match="adapter_version is a number of 32 bits"):
        file.set_adapter_version(1 << 31)


def test_a_file_that_cannot_be_written_is_a_fail(tmp_path: Path) -> None:
    """The message names it."""
    with pytest.raises(ort.Fail, match="the adapter cannot be written to .*nowhere"):
        ort.AdapterFormat().export_adapter(tmp_path / "nowhere" / "x")
