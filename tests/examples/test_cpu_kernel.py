"""The kernel of `examples/cpu_kernel`, by the command line's `--load` and in a session."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from sardonyx import InferenceSession, SessionOptions
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

FILE = Path(__file__).parent.parent.parent / "examples" / "cpu_kernel" / "running_sum.py"


def _session(type: str) -> InferenceSession:
    options = SessionOptions()
    options.add_operator(runpy.run_path(str(FILE))["running_sum"])
    text = f"ir_version 10\nopset 21, my.domain 1\ngraph main(x: {type}) -> (y: {type}) {{\ny = my.domain.RunningSum(x)\n}}"
    return InferenceSession(to_bytes(parse_model(text)), options)


@pytest.mark.parametrize("shape", [(3, 17), (0, 4), (4, 0), (1, 1), (2, 3)])
def test_the_kernel_adds_up_each_row(shape: tuple[int, int]) -> None:
    """Small whole numbers add up without rounding, so each element is exact."""
    session = _session("float[n, m]")
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.cumsum(x, -1))
    assert [place.provider for place in session.explain()] == ["CPUExecutionProvider"]


def test_other_types_are_left_to_its_function() -> None:
    """With the reason that its claim gives."""
    session = _session("double[n]")
    assert session.explain()[0].declined["CPUExecutionProvider"] == "elements of type double"
    assert session.run(None, {"x": np.float64([1, 2, 3])})[0].tolist() == [1, 3, 6]
