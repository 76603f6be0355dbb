"""What options say, as values."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.sessions import options_of, settings_of

import sardonyx as ort
from sardonyx.errors import InvalidArgument
from sardonyx.session.options import ExecutionMode, GraphOptimizationLevel, SessionOptions
from sardonyx.session.settings.grammar import Limit
from sardonyx.session.settings.settings import read_settings


def test_options_that_say_nothing_are_the_defaults() -> None:
    """No file is written, nothing is placed, and one step follows the other."""
    settings = read_settings(SessionOptions())
    assert (settings.save.path, settings.context.writes, settings.placement.layout_folder) == ("", False, None)
    assert (settings.placement.measured, settings.placement.order, settings.memory.limits) == (False, (), ())
    assert (settings.execution.executor, settings.execution.profile_prefix) == ("sequential", None)
    assert (settings.optimize.level, settings.optimize.loops, settings.optimize.verify) == (99, 1, False)


def test_settings_cannot_be_changed() -> None:
    """Nor can their parts."""
    settings = read_settings(SessionOptions())
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.load = settings.load  # type: ignore[misc]  # that it cannot be assigned is the point
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.optimize.level = 0  # type: ignore[misc]  # nor this


def test_entries_say_what_properties_say() -> None:
    """Levels, names, paths and limits may be given as text; a property that was set wins."""
    options = options_of(
        session__graph_optimization_level="ORT_ENABLE_BASIC",
        session__optimized_model_filepath="m.onnx",
        optimization__disable_specified_optimizers="fuse_gelu;merge_casts",
        optimization__constant_folding_max_output_size_in_bytes="1000",
        optimization__constant_folding_max_seconds="0.5",
        session__optimized_model_external_initializers_file_name="m.bin",
        session__optimized_model_external_initializers_min_size_in_bytes="100",
        optimization__failure="skip",
        session__graph_optimizations_loop_level="2",
    )
    settings = read_settings(options, ["merge_reshapes"])
    found = settings.optimize
    assert (settings.save.path, settings.save.data_name, settings.save.data_least_bytes) == ("m.onnx", "m.bin", 100)
    assert found.disabled == {"fuse_gelu", "merge_casts", "merge_reshapes"}
    assert (found.level, found.fold_bytes, found.fold_seconds, found.continue_on_error, found.verify) == (1, 1000, 0.5, True, False)
    assert found.loops == 2
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    assert read_settings(options).optimize.level == 0


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("session.graph_optimization_level", "most", 'is 0, 1, 2, 3, 99 or one of "disable_all"'),
        ("optimization.constant_folding_max_output_size_in_bytes", "1 MB", "is a number of bytes, got '1 MB'"),
        ("optimization.constant_folding_max_seconds", "soon", "is a number of seconds, got 'soon'"),
        ("session.graph_optimizations_loop_level", "3", 'is "0", "1" or "2", got \'3\''),
        ("optimization.failure", "ignore", 'is "error" or "skip", got \'ignore\''),
        (
            "session.executor",
            "fast",
            'session.executor is "sequential", "dataflow", "parallel", or the name of an installed executor, got \'fast\'',
        ),
        ("session.execution_mode", "both", 'session.execution_mode is "sequential" or "parallel", got \'both\''),
        ("session.use_per_session_threads", "no", 'is "0" or "1", "false" or "true", got \'no\''),
        ("session.intra_op_num_threads", "-1", "session.intra_op_num_threads is a number of at least 0, got '-1'"),
    ],
)
def test_entries_that_say_nothing_are_refused(key: str, text: str, message: str) -> None:
    """A text that a key does not take is named."""
    options = SessionOptions()
    options.add_session_config_entry(key, text)
    with pytest.raises(InvalidArgument, match=message):
        read_settings(options)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("optimizer_failure", "ignore", 'optimizer_failure is "error" or "skip", got \'ignore\''),
        ("provider_failure", "ignore", 'provider_failure is "error" or "skip", got \'ignore\''),
        ("placement", "fast", "placement is one of priority, measured, got 'fast'"),
        ("placement", "measured", "needs a profile"),
    ],
)
def test_properties_that_say_nothing_are_refused(name: str, value: Any, message: str) -> None:
    """By name, with what there is."""
    options = SessionOptions()
    setattr(options, name, value)
    with pytest.raises(InvalidArgument, match=message):
        read_settings(options)


def test_levels_are_told_as_numbers_and_by_onnxruntimes_words() -> None:
    """In any case; the names of the enumeration are read too."""
    texts = {
        "2": 2,
        "enable_extended": 2,
        "ENABLE_Basic": 1,
        "disable_all": 0,
        "enable_layout": 3,
        "enable_all": 99,
        "ORT_ENABLE_ALL": 99,
    }
    for text, level in texts.items():
        assert read_settings(options_of(session__graph_optimization_level=text)).optimize.level == level


def test_modes_and_truths_are_told_by_onnxruntimes_words() -> None:
    """With or without a prefix, in any case."""
    assert _executor(ExecutionMode.ORT_SEQUENTIAL, session__execution_mode="ORT_PARALLEL") == "parallel"
    assert _executor(ExecutionMode.ORT_PARALLEL, session__execution_mode="ort_sequential") == "sequential"
    assert read_settings(options_of(session__use_per_session_threads="True")).execution.intra_op_threads == 0


def _executor(mode: ExecutionMode, **entries: str) -> str:
    options = options_of(**entries)
    options.execution_mode = mode
    return read_settings(options).execution.executor


def test_the_entry_of_the_executor_stands_above_the_mode() -> None:
    """And the text of the mode above the property."""
    assert _executor(ExecutionMode.ORT_SEQUENTIAL) == "sequential"
    assert _executor(ExecutionMode.ORT_PARALLEL) == "parallel"
    assert _executor(ExecutionMode.ORT_SEQUENTIAL, session__execution_mode="parallel") == "parallel"
    assert _executor(ExecutionMode.ORT_PARALLEL, session__executor="dataflow", session__execution_mode="sequential") == "dataflow"


def test_of_threads_the_property_counts_where_it_is_set() -> None:
    """Else the entry."""
    options = options_of(session__inter_op_num_threads="3")
    execution = read_settings(options).execution
    assert (execution.inter_op_threads, execution.intra_op_threads) == (3, 0)
    options.inter_op_num_threads = 2
    assert read_settings(options).execution.inter_op_threads == 2


def test_entries_win_over_the_file_and_calls_over_entries(tmp_path: Path) -> None:
    """For each operator by itself."""
    (tmp_path / "p.toml").write_text(
        'placement = "measured"\nprofile = "p.json"\norder = ["A"]\n[operators]\nConv = "A"\nRelu = "A"\n[memory]\nA = "1"\n'
    )
    options = options_of(
        session__placement_file=str(tmp_path / "p.toml"),
        session__place="Relu=B; Neg=B",
        session__placement="priority",
        session__placement_order="X;Y",
        session__memory_limits="A=2",
    )
    options.place("Neg", "C")
    settings = read_settings(options)
    assert settings.placement.pins.operators == {"Conv": "A", "Relu": "B", "Neg": "C"}
    assert (settings.placement.measured, settings.placement.order) == (False, ("X", "Y"))
    assert settings.memory.limits == (("A", Limit(1)), ("A", Limit(2)))


@pytest.mark.parametrize(("text", "folder"), [("", None), ("0", None), ("1", ""), ("steps", "steps")])
def test_the_steps_of_layouts_go_to_a_folder(text: str, folder: str | None) -> None:
    """A 1 is the working folder."""
    assert settings_of(session__debug_layout_transformation=text).placement.layout_folder == folder


def test_rules_and_passes_get_all_entries() -> None:
    """Those of packages ask for keys of their own; what this package asks for is checked."""
    given = {"session__x64quantprecision": "1", "mine__rule": "yes"}
    assert settings_of(**given).optimize.entries == {"session.x64quantprecision": "1", "mine.rule": "yes"}
    with pytest.raises(InvalidArgument, match='session.x64quantprecision is "0" or "1", got \'yes\''):
        settings_of(session__x64quantprecision="yes")


def test_settings_without_files_write_none() -> None:
    """Nothing else of them changes."""
    given = settings_of(
        session__optimized_model_filepath="m.onnx",
        session__debug_layout_transformation="1",
        ep__context_enable="1",
        ep__context_file_path="c",
    )
    quiet = given.without_files()
    assert (quiet.save.path, quiet.placement.layout_folder, quiet.context.writes) == ("", None, False)
    assert (quiet.context.path, quiet.optimize, quiet.load) == ("c", given.optimize, given.load)


def test_the_placement_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is made and run needs it no more."""
    from support.models import model

    from sardonyx.formats.onnx import to_bytes
    from sardonyx.session.settings import settings as module

    (tmp_path / "p.toml").write_text('[operators]\nRelu = "Reference"\n')
    read: list[Any] = []
    given = module.read_placement_file
    monkeypatch.setattr(module, "read_placement_file", lambda path: read.append(path) or given(path))
    options = SessionOptions()
    options.placement_file = str(tmp_path / "p.toml")
    content = to_bytes(model("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}"))
    session = ort.InferenceSession(content, options)
    assert [place.provider for place in session.explain()] == ["ReferenceExecutionProvider"]
    assert len(read) == 1


def test_sessions_may_take_the_process_s_numbers_of_threads() -> None:
    """Where they give up their own; after the process's are set, all sessions must."""
    code = """
import sardonyx as ort
from sardonyx.session.settings.settings import read_settings
options = ort.SessionOptions()
options.intra_op_num_threads = 1
options.use_per_session_threads = False
ort.set_global_thread_pool_sizes(3, 0)
execution = read_settings(options).execution
assert (execution.intra_op_threads, execution.inter_op_threads) == (3, 0)
try:
    read_settings(ort.SessionOptions())
except ort.Fail as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "use_per_session_threads must be false" in found.stdout


def test_a_negative_number_of_threads_leaves_it_open() -> None:
    """As onnxruntime treats it."""
    options = SessionOptions()
    options.inter_op_num_threads = -1
    options.intra_op_num_threads = -1
    found, plain = read_settings(options), read_settings(SessionOptions())
    assert found == plain


def test_sessions_of_equal_plain_options_have_the_same_settings() -> None:
    """So that nothing is read of them twice; with another number of threads, or an entry, they are others."""
    first, second = (settings_of() for _ in range(2))
    assert first is second
    options = SessionOptions()
    options.intra_op_num_threads = 3
    assert read_settings(options).execution.intra_op_threads == 3
    assert read_settings(options) is read_settings(options.copy())
    options.add_session_config_entry("session.executor", "dataflow")
    assert read_settings(options).execution.executor == "dataflow"
    assert read_settings(SessionOptions(), verify=True).optimize.verify
