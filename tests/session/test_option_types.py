"""Properties of options have the types that onnxruntime's have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.session.enums import GraphOptimizationLevel
from sardonyx.session.option_types import PROPERTIES, typed
from sardonyx.session.options import SessionOptions
from sardonyx.session.run_options import RunOptions


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("intra_op_num_threads", np.int64(3), 3),
        ("intra_op_num_threads", True, 1),
        ("enable_profiling", 1, True),
        ("enable_profiling", None, False),
        ("logid", b"a", "a"),
        ("optimized_model_filepath", Path("a"), "a"),
        ("graph_optimization_level", GraphOptimizationLevel.ORT_ENABLE_BASIC, GraphOptimizationLevel.ORT_ENABLE_BASIC),
        ("intra_op_num_threads", np.float32(2), 2),
        ("intra_op_num_threads", np.bool_(True), 1),
        ("enable_profiling", np.bool_(True), True),
        ("placement", 3, 3),
    ],
)
def test_a_value_becomes_the_propertys_type(name: str, value: Any, kept: Any) -> None:
    """What converts without a loss passes."""
    found = typed("SessionOptions", name, value)
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("graph_optimization_level", 2),
        ("execution_mode", 1),
        ("execution_order", 1),
        ("intra_op_num_threads", 1.0),
        ("intra_op_num_threads", "1"),
        ("intra_op_num_threads", 2**40),
        ("intra_op_num_threads", np.float32(1.5)),
        ("intra_op_num_threads", np.float64(1)),
        ("enable_profiling", [1]),
        ("load_timeout_ms", -1),
        ("load_timeout_ms", "5"),
        ("load_timeout_ms", float("nan")),
        ("enable_profiling", "no"),
        ("logid", 3),
        ("profile_file_prefix", None),
    ],
)
def test_another_type_is_refused(name: str, value: Any) -> None:
    """By name, with what it takes."""
    with pytest.raises(TypeError, match=re.escape(f"SessionOptions.{name} takes {PROPERTIES[name][0]}, got {value!r}")):
        setattr(SessionOptions(), name, value)


def test_options_of_runs_are_checked_too() -> None:
    """A flag is a flag."""
    options = RunOptions()
    options.terminate = 1  # type: ignore[assignment]
    assert options.terminate is True
    options.timeout_ms = 5
    assert (options.timeout_ms, type(options.timeout_ms)) == (5.0, float)
    with pytest.raises(TypeError, match="RunOptions.logid takes a text, got 5"):
        options.logid = 5  # type: ignore[assignment]
