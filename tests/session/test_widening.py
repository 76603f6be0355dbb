"""Sessions whose narrow floats run in float32."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.providers import get_available_providers

TEXT = """graph(x: float16[3, 3], n: int64[]) -> (y: float16[3, 3]) {
    w: float16[3, 3] = ... 1
    go: bool[] = 1
    y = Loop(n, go, x) {body = graph body(i: int64[], c: bool[], s: float16[3, 3]) -> (d: bool[], t: float16[3, 3]) {
        d = Identity(c)
        m = MatMul(s, w)
        t = Softmax(m)
    }}
}"""

needs_cpu = pytest.mark.skipif("CPUExecutionProvider" not in get_available_providers(), reason="the CPU provider is not here")


def _session(**entries: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(key.replace("__", "."), value)
    return ort.InferenceSession(to_bytes(model(TEXT)), options, providers=["CPUExecutionProvider"])


def _provider_of(session: ort.InferenceSession, operator: str) -> list[str]:
    return [place.provider for place in session.explain() if place.op_type == operator]


@needs_cpu
def test_a_body_in_float16_is_widened() -> None:
    """A Loop's body has casts of its own; its results are those of the reference provider but for rounding."""
    session = _session()
    assert _provider_of(session, "MatMul") == ["CPUExecutionProvider"]
    x, n = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float16), np.array(3, np.int64)
    expected = ort.InferenceSession(to_bytes(model(TEXT)), providers=["ReferenceExecutionProvider"]).run(None, {"x": x, "n": n})[0]
    found = session.run(None, {"x": x, "n": n})[0]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=2e-3)


@needs_cpu
def test_it_can_be_turned_off() -> None:
    """The reference provider computes in float16 then."""
    assert _provider_of(_session(session__keep_narrow_floats="1"), "MatMul") == ["ReferenceExecutionProvider"]
