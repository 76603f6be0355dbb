"""How an InferenceSession is made, end to end."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.session_models import IMAGES, MLP, VISION, VISION_ERROR, rows, session

import sardonyx as ort
from sardonyx.formats.onnx import save, to_bytes


def test_a_model_comes_from_a_path_bytes_or_a_file_object(tmp_path: Path) -> None:
    """All give the same results."""
    path = tmp_path / "m.onnx"
    save(model(MLP), path)
    sources: list[Any] = [path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes())]
    results = [ort.InferenceSession(source).run(None, rows(3))[0] for source in sources]
    assert all((result == results[0]).all() for result in results)


def test_an_initializer_that_is_an_input_has_a_default() -> None:
    """From IR version 4 on a feed may override it."""
    held = model("graph(x: float[2]) -> (y: float[2]) {\nk: float[2] = [1, 2]\ny = Add(x, k)\n}")
    held.graph.inputs.append(held.graph.initializers["k"])
    found = ort.InferenceSession(to_bytes(held))
    assert [item.name for item in found.get_overridable_initializers()] == ["k"]
    assert [item.name for item in found.get_inputs()] == ["x"]
    zeros = np.zeros(2, np.float32)
    assert found.run(None, {"x": zeros})[0].tolist() == [1, 2]
    assert found.run(None, {"x": zeros, "k": zeros})[0].tolist() == [0, 0]


def test_before_ir_version_4_an_initializer_among_the_inputs_is_a_constant() -> None:
    """It is no input of the session."""
    held = model("graph(x: float[2]) -> (y: float[2]) {\nk: float[2] = [1, 2]\ny = Add(x, k)\n}", opset=8)
    held.ir_version = 3
    held.graph.inputs.append(held.graph.initializers["k"])
    found = ort.InferenceSession(held)
    assert [item.name for item in found.get_inputs()] == ["x"]
    assert found.get_overridable_initializers() == []


def test_a_free_dimension_can_be_fixed() -> None:
    """The input then has that size."""
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    held = session(MLP, sess_options=options)
    assert held.get_inputs()[0].shape == [2, 4]
    with pytest.raises(ort.InvalidArgument, match="axis 0 must be 2, not 3"):
        held.run(None, rows(3))


def test_an_initializer_can_be_replaced() -> None:
    """By another of the same type and shape."""
    options = ort.SessionOptions()
    options.add_initializer("k", np.float32([10, 20]))
    text = "graph(x: float[2]) -> (y: float[2]) {\nk: float[2] = [1, 2]\ny = Add(x, k)\n}"
    assert session(text, sess_options=options).run(None, {"x": np.zeros(2, np.float32)})[0].tolist() == [10, 20]
    other = ort.SessionOptions()
    other.add_initializer("k", np.zeros(3))
    with pytest.raises(ort.InvalidArgument, match="which the model has as"):
        session(text, sess_options=other)


def test_the_optimized_model_can_be_written(tmp_path: Path) -> None:
    """It runs like the original."""
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    first = session(MLP, sess_options=options).run(None, rows(3))[0]
    second = ort.InferenceSession(tmp_path / "optimized.onnx").run(None, rows(3))[0]
    np.testing.assert_allclose(first, second, rtol=1e-6)


@pytest.mark.parametrize("level", list(ort.GraphOptimizationLevel))
def test_every_level_gives_the_same_results(level: ort.GraphOptimizationLevel) -> None:
    """Optimization changes no numbers beyond rounding."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    found, expected = (held.run(None, {"x": IMAGES})[0] for held in (session(VISION, sess_options=options), session(VISION)))
    np.testing.assert_allclose(found, expected, rtol=VISION_ERROR)


def test_an_unknown_argument_is_warned_of() -> None:
    """As in onnxruntime it has no effect; a misspelt option does not pass unseen."""
    with pytest.warns(UserWarning, match="no argument 'optimise'"):
        session(MLP, optimise=True)


def test_arguments_of_onnxruntime_without_effect_are_accepted() -> None:
    """One that asks for what is not done is warned of."""
    session(MLP, enable_fallback=1, read_config_from_model=0)


def test_an_unknown_operator_is_refused_when_the_session_is_made() -> None:
    """The message names model, node and operator."""
    with pytest.raises(ort.InvalidGraph, match=r'node "odd" \(Frobnicate, opset 21\).*unknown at opset 21'):
        session("graph(x: float[2]) -> (y: float[2]) {\ny = Frobnicate(x) @odd\n}")


def test_an_unknown_optimizer_name_is_refused() -> None:
    """A misspelt rule does not pass unseen."""
    with pytest.raises(ort.InvalidArgument, match="no_such_rule"):
        session(MLP, disabled_optimizers=["no_such_rule"])


def test_an_operator_of_a_custom_domain_that_nobody_runs_is_refused() -> None:
    """The message names the domain."""
    with pytest.raises(ort.InvalidGraph, match="the domain 'my.company' is unknown"):
        session("graph(x: float[2]) -> (y: float[2]) {\ny = my.company.Thing:1(x)\n}")


def test_types_that_do_not_fit_are_refused_when_the_session_is_made() -> None:
    """Add of float and int64."""
    with pytest.raises(ort.InvalidGraph, match="insert a Cast"):
        session("graph(x: float[2], i: int64[2]) -> (y: float[2]) {\ny = Add(x, i)\n}")


def test_options_of_the_model_are_read_on_request() -> None:
    """The attribute of that name says whether."""
    given = to_bytes(model(MLP))
    assert not ort.InferenceSession(given)._read_config_from_model
    assert ort.InferenceSession(given, read_config_from_model=1)._read_config_from_model
