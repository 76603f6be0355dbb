"""Warnings of config entries without effect."""

from __future__ import annotations

import warnings

import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("session.executer", "no session config entry 'session.executer', .* did you mean 'session.executor'"),
        ("session.made_up", "no session config entry 'session.made_up', so it has no effect; docs/options.md lists"),
        ("session.intra_op.allow_spinnin", "did you mean 'session.intra_op.allow_spinning'"),
        ("ep.contextenable", "did you mean 'ep.context_enable'"),
        ("session.set_denormal_as_zeros", "did you mean 'session.set_denormal_as_zero'"),
    ],
)
def test_an_unknown_key_is_warned_of(key: str, message: str) -> None:
    """With the nearest that there is, in the line that sets it; as in onnxruntime it is no error."""
    options = ort.SessionOptions()
    with pytest.warns(UserWarning, match=message) as caught:
        options.add_session_config_entry(key, "1")
    assert caught[0].filename == __file__
    assert options.get_session_config_entry(key) == "1"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("session.executor", "parallel"),
        ("mine.own", "1"),
        ("ep.someprovider.option", "1"),
        ("session.intra_op.allow_spinning", "0"),
        ("mlas.use_lut_gemm", "1"),
        ("session.set_denormal_as_zero", "0"),
        ("session.load_model_format", "ONNX"),
    ],
)
def test_others_are_not(key: str, text: str) -> None:
    """Known ones, those of providers, and those of onnxruntime's that change no result."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ort.SessionOptions().add_session_config_entry(key, text)


@pytest.mark.parametrize(("key", "text"), [("session.enable_moe_expert_counting", "1")])
def test_what_is_not_done_here_is_warned_of(key: str, text: str) -> None:
    """With the reason."""
    with pytest.warns(UserWarning, match=f"the session config entry {key} = '{text}' has no effect: "):
        ort.SessionOptions().add_session_config_entry(key, text)


def test_entries_of_runs_are_checked_too() -> None:
    """One of sessions has no effect there."""
    options = ort.RunOptions()
    options.add_run_config_entry("gpu_graph_id", "1")
    options.add_run_config_entry("mine.own", "1")
    with pytest.warns(UserWarning, match="'session.executor' is an entry of sessions"):
        options.add_run_config_entry("session.executor", "parallel")
    with pytest.warns(UserWarning, match="did you mean 'memory.enable_memory_arena_shrinkage'"):
        options.add_run_config_entry("memory.enable_memory_arena_shrinking", "cpu:0")


def test_the_order_of_execution_has_no_effect() -> None:
    """The session says so, in the line that makes it."""
    options = ort.SessionOptions()
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    content = to_bytes(model("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}"))
    with pytest.warns(UserWarning, match="execution_order has no effect") as caught:
        ort.InferenceSession(content, options)
    assert caught[0].filename == __file__
