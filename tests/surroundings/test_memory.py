"""What a process with little memory gets: a session, or one clear error."""

from __future__ import annotations

import pytest
from support.processes import run_python

ENLARGED = """
import resource
import numpy as np
import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from support.models import model

session = ort.InferenceSession(to_bytes(model({text!r})), providers=[{provider!r}])
session.run(None, {{"x": np.ones((2, 2), np.float32)}})
large = {{"x": np.ones((2400, 2400), np.float32)}}
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 20), resource.RLIM_INFINITY))
try:
    session.run(None, large)
except ort.SardonyxError as error:
    print(type(error).__name__, error)
y = session.run(None, {{"x": np.ones((2, 2), np.float32)}})[0]
print(y.shape)
"""
SEVERAL = "graph(x: float[n, m]) -> (y, z) {\na = Softmax(x)\ny = Softmax(a) {axis = 0}\nz = Softmax(y)\n}"


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
def test_a_run_beyond_the_memory_is_an_error_that_says_what_to_do(provider: str) -> None:
    """It names the bytes, and the session runs smaller inputs afterwards."""
    said = run_python(ENLARGED.format(text=SEVERAL, provider=provider)).splitlines()
    assert said[0].startswith("RuntimeException model main: ")
    assert "not enough memory for" in said[0]
    assert said[1] == "(2, 2)"
