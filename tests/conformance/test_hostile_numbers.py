"""What a hostile number in a small file gets: words that name the node, at once, and no memory in proportion to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
import warnings

import pytest
from support.hostile_numbers import CASES, HostileCase

import sardonyx as ort
from sardonyx import errors
from sardonyx.errors import InvalidArgument, InvalidGraph, SardonyxError
from sardonyx.session.providers import REFERENCE

PROVIDERS = {"reference": REFERENCE, "cpu": "CPUExecutionProvider"}
LIMIT_S = 10
LIMIT_BYTES = 64 << 20
"""What a vector of 2^20 elements and a few like it may take."""


def attempt(case: HostileCase, provider: str, *, constant: bool) -> SardonyxError | None:
    """Run a case; the error that it gets, or None where it is valid."""
    feed = {name: array for name, array in case.arrays().items() if not constant or array.dtype == object}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ort.InferenceSession(case.model(constant=constant), providers=[provider]).run(None, feed)
        except SardonyxError as error:
            return error
    return None


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("where", ["fed", "constant"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_hostile_number_is_refused_or_costs_nothing(number: int, where: str, provider: str) -> None:
    """Fed or in the file, on either provider, within ten seconds of processor time and 64 MiB."""
    case = CASES[number]
    tracemalloc.start()
    start = time.process_time()
    error = attempt(case, PROVIDERS[provider], constant=where == "constant")
    spent, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert spent < LIMIT_S, str(case)
    assert peak < LIMIT_BYTES, str(case)
    if error is not None:
        assert isinstance(error, (InvalidArgument, InvalidGraph, errors.NotImplemented)), f"{case}: {error!r}"
        assert "the node" in str(error), f"{case}: {error}"
        assert "documentation" not in str(error), f"{case}: {error}"


LOOPS = {
    "scan outputs": ("w = Identity(v) u = Neg(v)", "w, u", "SARDONYX_MAX_TENSOR_BYTES"),
    "iterations": ("w = Neg(v)", "w", "SARDONYX_MAX_ITERATIONS"),
    "growth": ("w = Concat(v, v) {axis = 0}", "w", "SARDONYX_MAX_TENSOR_BYTES"),
    "outer products": (
        "s: int64[2] = [-1, 1] t: int64[2] = [1, -1] l = Reshape(v, s) r = Reshape(v, t) m = MatMul(l, r) "
        "f: int64[1] = [-1] w = Reshape(m, f)",
        "w",
        "SARDONYX_MAX_TENSOR_BYTES",
    ),
    "text": ("w = StringConcat(v, v)", "w", "SARDONYX_MAX_TENSOR_BYTES"),
}
"""What a loop without end does, what it makes, and the limit that ends it."""
PROGRAM = """
import sys, numpy, sardonyx
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model
array = numpy.array(["a"] * 1000, object) if "string" in sys.argv[1] else numpy.ones(1000, numpy.float32)
session = sardonyx.InferenceSession(to_bytes(parse_model(sys.argv[1])), providers=[sys.argv[2]])
try:
    session.run(None, {"x": array})
except sardonyx.errors.InvalidArgument as error:
    print(error)
"""


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_without_end_meets_a_limit(name: str, provider: str) -> None:
    """Limits of 16 MiB and 10,000 iterations, in a process of its own: the message names the loop and the limit."""
    nodes, made, limit = LOOPS[name]
    kind = "string" if name == "text" else "float"
    body = f"graph body(i: int64[], c: bool[], v: {kind}[K]) -> (d: bool[], {made}) {{ d = Identity(c) {nodes} }}"
    results = "y, z" if "u" in made else "y"
    text = f"""ir_version 8 opset 21 graph main(x: {kind}[1000]) -> ({results}) {{
        n: int64[] = [9223372036854775807]
        t: bool[] = [true]
        {results} = Loop(n, t, x) {{body = {body}}}
    }}"""
    limits = {"SARDONYX_MAX_TENSOR_BYTES": str(1 << 24), "SARDONYX_MAX_ITERATIONS": "10000"}
    command = [sys.executable, "-c", PROGRAM, text, PROVIDERS[provider]]
    done = subprocess.run(command, env=os.environ | limits, capture_output=True, text=True, timeout=60, check=True)
    assert limit in done.stdout, done.stdout + done.stderr
