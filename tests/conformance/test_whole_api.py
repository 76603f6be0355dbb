"""A program that uses the whole API, which mypy reads strictly, does what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from support import whole_api
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import save


def test_a_program_that_uses_everything_runs(tmp_path: Path) -> None:
    """Every way of running gives one result."""
    path = tmp_path / "model.onnx"
    save(model("graph(x: float[n]) -> (y: float[n]) {\ny = Neg(x)\n}"), path)
    session = ort.InferenceSession(path, whole_api.make_options(path))
    assert whole_api.describe(session)[:2] == ["x tensor(float) ['n']", "y tensor(float) ['n']"]
    x = np.arange(3, dtype=np.float32)
    for found in whole_api.run_in_every_way(session, x):
        np.testing.assert_array_equal(np.asarray(found), -x)
    assert whole_api.use_values()[:2] == ["tensor(float)", "tensor(bfloat16)"]
    assert ort.__version__ in whole_api.use_process()
    assert whole_api.use_adapters(tmp_path) == ["x"]
    assert whole_api.use_packages(path, tmp_path / "package") == ["only", "cpu", "y"]
    assert whole_api.catch_errors(session) == ["InvalidArgument", "NoSuchFile"]
