"""Models are written in any format; ONNX Runtime loads what is written in its own."""

from pathlib import Path

import numpy as np
import pytest
from support.models import model as model_of

import sardonyx as ort
from sardonyx.formats.models import load
from sardonyx.session.saving import save_model

_CONV = """graph(x: float[n, 3, 8, 8]) -> (y: float[n, 8, 6, 6]) {
w: float[8, 3, 3, 3] = ... 7
b: float[8] = ... 8
c = Conv(x, w, b)
y = Relu(c)
}"""
_X = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)


def _peer(path: Path, feed: object) -> object:
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feed)


def test_onnx_is_written_for_every_other_suffix(tmp_path: Path) -> None:
    """With data beside it where that is named."""
    model = model_of(_CONV)
    assert save_model(model, tmp_path / "m.bin", data_name="m.data", least_bytes=1) == ()
    assert (tmp_path / "m.data").stat().st_size > 800
    assert ort.InferenceSession(tmp_path / "m.bin").run(None, {"x": _X})[0].shape == (2, 8, 6, 6)


def test_functions_are_inlined_and_types_inferred(tmp_path: Path) -> None:
    """For ONNX Runtime's format, which has neither; constants of functions become initializers."""
    text = (
        "graph(x: float[2]) -> (y: float[2]) {\na = own.F(x)\ny = Neg(a)\n}\n"
        "function own.F(a) -> (b) {\nopset 21\nk = Constant() {value_floats = [1.0, 2.0]}\nb = Add(a, k)\n}"
    )
    losses = save_model(model_of(text), tmp_path / "m.ort")
    assert [str(loss.where) for loss in losses] == ["function own.F"]
    feed = {"x": np.array([1, 2], np.float32)}
    assert ort.InferenceSession(tmp_path / "m.ort").run(None, feed)[0].tolist() == [-2, -4]
    assert _peer(tmp_path / "m.ort", feed)[0].tolist() == [-2, -4]  # type: ignore[index]  # onnxruntime gives more types than arrays


@pytest.mark.parametrize("level", [0, 1, 2, 99])
def test_onnxruntime_runs_what_a_session_saves(tmp_path: Path, level: int) -> None:
    """At every level of optimization, with fused operators."""
    model = tmp_path / "m.onnx"
    save_model(model_of(_CONV), model)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel(level)
    options.optimized_model_filepath = str(tmp_path / "out.ort")
    expected = ort.InferenceSession(model, options).run(None, {"x": _X})[0]
    assert (tmp_path / "out.ort").read_bytes()[4:8] == b"ORTM"
    again = ort.InferenceSession(tmp_path / "out.ort").run(None, {"x": _X})[0]
    np.testing.assert_allclose(again, expected, atol=1e-5)
    np.testing.assert_allclose(_peer(tmp_path / "out.ort", {"x": _X})[0], expected, atol=1e-5)  # type: ignore[index]  # onnxruntime gives more types than arrays


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"])
def test_what_onnxruntime_saves_runs_here(tmp_path: Path, level: str) -> None:
    """At every level of optimization, with channels in blocks."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model = tmp_path / "m.onnx"
    save_model(model_of(_CONV), model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(tmp_path / "out.ort")
    expected = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]).run(None, {"x": _X})[0]
    np.testing.assert_allclose(ort.InferenceSession(tmp_path / "out.ort").run(None, {"x": _X})[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "format_name", "is_ort"), [("a.onnx", "ORT", True), ("a.ort", "ONNX", False), ("a.ort", "", True)]
)
def test_a_config_entry_decides_about_the_format(tmp_path: Path, name: str, format_name: str, is_ort: bool) -> None:
    """`session.save_model_format`; where it is not set, the suffix does."""
    model = tmp_path / "m.onnx"
    save_model(model_of(_CONV), model)
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / name)
    if format_name:
        options.add_session_config_entry("session.save_model_format", format_name)
    ort.InferenceSession(model, options)
    assert ((tmp_path / name).read_bytes()[4:8] == b"ORTM") is is_ort


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """With the path; a format that nobody knows is one too."""
    with pytest.raises(ort.Fail, match="cannot be saved as .*none/m.ort"):
        save_model(model_of(_CONV), tmp_path / "none" / "m.ort")
    with pytest.raises(ort.InvalidArgument, match="there is no format 'NONE'"):
        save_model(model_of(_CONV), tmp_path / "m.ort", "NONE")


@pytest.mark.parametrize(
    ("opset", "operator"),
    [(18, "Mish(x)"), (14, "HardSwish(x)"), (24, "Swish(x)"), (19, "CastLike(x, x)"), (18, "ReduceLogSumExp(x)"), (13, "Elu(x)")],
)
def test_operators_that_onnxruntime_has_no_kernels_for_are_expanded(tmp_path: Path, opset: int, operator: str) -> None:
    """By the standard's function bodies, as it does before it saves; others stay."""
    model = model_of(f"graph(x: float[2, 3]) -> (y: float[?, ?]) {{\ny = {operator}\n}}", opset=opset)
    feed = {"x": np.random.default_rng(2).standard_normal((2, 3)).astype(np.float32)}
    expected = ort.InferenceSession(model).run(None, feed)[0]
    save_model(model, tmp_path / "m.ort")
    np.testing.assert_allclose(_peer(tmp_path / "m.ort", feed)[0], expected, atol=1e-5)  # type: ignore[index]  # onnxruntime gives more types than arrays
    assert ("Elu" in {node.op_type for node in load(tmp_path / "m.ort").graph}) is (operator == "Elu(x)")


def test_operators_that_others_do_not_know_are_said(tmp_path: Path) -> None:
    """In a file that others could read."""
    model = model_of("graph(x: float[2]) -> (y: float[2]) {\ny = own.Mine(x)\n}")
    assert [loss.where for loss in save_model(model, tmp_path / "m.onnx")] == ["1 of own.Mine"]


def test_nodes_of_other_operator_sets_are_said(tmp_path: Path) -> None:
    """A file has one version of each."""
    model = model_of("graph(x: float[2, 2]) -> (y: float[2, 2]) {\na = Softmax:11(x)\ny = Softmax(a)\n}")
    assert [loss.where for loss in save_model(model, tmp_path / "m.onnx")] == ["1 of Softmax of opset 11"]


def test_narrow_floats_are_wide_where_onnxruntime_computes(tmp_path: Path) -> None:
    """It has no kernels for them, and adds no casts to a file in its own format."""
    text = "graph(x: float16[2, 3]) -> (y: float[2, 3]) {\na = Sqrt(x)\nb = Neg(a)\ny = Cast(b) {to = 1}\n}"
    save_model(model_of(text), tmp_path / "m.ort")
    feed = {"x": np.ones((2, 3), np.float16)}
    assert _peer(tmp_path / "m.ort", feed)[0].tolist() == [[-1.0] * 3] * 2  # type: ignore[index]  # onnxruntime gives more types than arrays
