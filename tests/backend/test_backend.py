"""The interface of onnx.backend."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from support.models import model

import sardonyx as ort
import sardonyx.backend as backend
from sardonyx.formats.onnx import to_bytes

BYTES = to_bytes(model("graph(x: float[n]) -> (y) {\ny = Exp(x)\n}"))


def test_a_model_is_prepared_from_anything() -> None:
    """Bytes, a proto, a session; what is prepared stays as it is."""
    ready = backend.prepare(BYTES)
    for given in (onnx.load_from_string(BYTES), ort.InferenceSession(BYTES), ready):
        assert backend.prepare(given, "CPU").run([np.zeros(2, np.float32)])[0].tolist() == [1, 1]
    assert backend.prepare(ready) is ready


def test_a_model_is_run_at_once() -> None:
    """With attributes of RunOptions."""
    assert backend.run(BYTES, [np.zeros(2, np.float32)], log_severity_level=2)[0].tolist() == [1, 1]


@pytest.mark.parametrize(("device", "known"), [("CPU", True), ("CPU:0", True), ("CUDA", False)])
def test_devices_are_those_of_the_build(device: str, known: bool) -> None:
    """Another one is refused when a model is prepared."""
    assert backend.supports_device(device) is known
    assert backend.is_compatible(BYTES, device) is known
    if not known:
        with pytest.raises(ort.NotImplemented, match="Incompatible device"):
            backend.prepare(BYTES, device)


def test_options_that_write_files_are_refused() -> None:
    """Of sessions, also through `run`."""
    for call in (lambda: backend.prepare(BYTES, enable_profiling=True), lambda: backend.run(BYTES, [], enable_profiling=True)):
        with pytest.raises(ort.InvalidArgument, match="'enable_profiling' is not permitted here"):
            call()


def test_options_of_sessions_and_of_runs_go_to_run() -> None:
    """Names of neither have no effect, as in onnxruntime."""
    level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    given = backend.run(BYTES, [np.zeros(2, np.float32)], graph_optimization_level=level, only_execute_path_to_fetches=True, foo=1)
    assert given[0].tolist() == [1, 1]


def test_single_nodes_are_not_run() -> None:
    """A model of the node is."""
    with pytest.raises(ort.NotImplemented, match="model of the node"):
        backend.SardonyxBackend.run_node(None, [])


def test_the_classes_have_the_names_that_onnxruntime_gives_them() -> None:
    """Code imports them from the modules."""
    from sardonyx.backend.backend_rep import OnnxRuntimeBackendRep

    assert backend.OnnxRuntimeBackend is backend.SardonyxBackend
    assert isinstance(backend.prepare(BYTES), OnnxRuntimeBackendRep)
