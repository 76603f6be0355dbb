"""The openvino package is imported without its reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.processes import run_python

pytest.importorskip("openvino")

PROVIDER = """
import sys
import numpy as np
import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from support.models import model

held = to_bytes(model("graph(x: float[2]) -> (y) {\\ny = Relu(x)\\n}"))
session = ort.InferenceSession(held, providers=["OpenVINOExecutionProvider"])
session.run(None, {"x": np.ones(2, np.float32)})
print(session.get_providers()[0], sys.modules.get("openvino_telemetry", "absent"))
"""


def test_a_session_reports_nothing_to_the_vendor(tmp_path: Path) -> None:
    """The package that would is not imported, and nothing is written in the user's folder."""
    said = run_python(PROVIDER, changes={"HOME": str(tmp_path), "SARDONYX_CACHE_DIR": "", "CI": None, "BUILD_NUMBER": None})
    assert said.split() == ["OpenVINOExecutionProvider", "absent"]
    assert list(tmp_path.iterdir()) == []


def test_what_the_program_imported_itself_stays() -> None:
    """Its own choice is not ours."""
    said = run_python(
        "import sys, types\n"
        "own = sys.modules['openvino_telemetry'] = types.ModuleType('openvino_telemetry')\n"
        "from sardonyx.providers.openvino.package import openvino_package\n"
        "openvino_package().Core()\n"
        "print(sys.modules['openvino_telemetry'] is own)"
    )
    assert said.split() == ["True"]
