"""What makes sessions for libraries."""

from __future__ import annotations

import numpy as np
from support.models import model

import sardonyx as ort
from sardonyx.custom_ops.abi.entries.sessions import OwnOptions
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.library_sessions import SessionsOfLibraries


def test_a_session_has_what_the_library_said() -> None:
    """Numbers of enumerations, other properties and config entries."""
    said = OwnOptions(
        {"session.disable_prepacking": "1"}, [], {"graph_optimization_level": 1, "intra_op_num_threads": 1, "logid": "m"}
    )
    session = SessionsOfLibraries().open(to_bytes(model("graph(x: float[n]) -> (y: float[n]) {\ny = Neg(x)\n}")), said)
    options = session.get_session_options()
    assert options.graph_optimization_level is ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert (options.intra_op_num_threads, options.logid) == (1, "m")
    assert options.session_config_entries == {"session.disable_prepacking": "1"}
    x = np.array([1, -2], np.float32)
    np.testing.assert_array_equal(np.asarray(session.run(None, {"x": x}, SessionsOfLibraries().run_options())[0]), -x)
