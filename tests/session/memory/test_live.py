"""How much memory sessions take, against what the system says, and how it is given back."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest
from support.session_models import session

import sardonyx as ort
from sardonyx.session.memory.live import live_sessions

_LAYERS = 5
_SIDE = 2560

_GROWTH = f"""
import gc
import numpy as np, onnx, sardonyx as ort
from onnx import TensorProto, helper, numpy_helper
from sardonyx.process import resident_bytes

def made(side, layers, name):
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((side, side), np.float32), f"w{{i}}") for i in range(layers)]
    nodes = [helper.make_node("MatMul", [f"x{{i}}", f"w{{i}}"], [f"x{{i + 1}}"]) for i in range(layers)]
    ends = [helper.make_tensor_value_info(f"x{{i}}", TensorProto.FLOAT, ["n", side]) for i in (0, layers)]
    graph = helper.make_graph(nodes, name, ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), name)

def runs(name, side, count):
    session = ort.InferenceSession(name, providers=PROVIDERS)
    for _ in range(count):
        session.run(None, {{"x0": np.ones((64, side), np.float32)}})
    return session

made(8, 2, "small.onnx")
made({_SIDE}, {_LAYERS}, "large.onnx")
small = runs("small.onnx", 8, 3)
gc.collect()
ort.trim()
before, known = resident_bytes(), ort.memory_report().total_bytes
large = runs("large.onnx", {_SIDE}, 3)
gc.collect()
from sardonyx.process import release_free_memory
release_free_memory()
print(resident_bytes() - before, ort.memory_report().total_bytes - known)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
def test_the_total_is_what_the_process_grows_by(provider: str, tmp_path: object) -> None:
    """On 131 MB of weights: within 10 % of the growth of resident memory, or 12 MB, which modules loaded meanwhile take."""
    program = f"PROVIDERS = [{provider!r}]\n{_GROWTH}"
    done = subprocess.run([sys.executable, "-c", program], cwd=str(tmp_path), capture_output=True, text=True, check=True)
    growth, reported = map(int, done.stdout.split())
    assert reported >= _LAYERS * _SIDE * _SIDE * 4
    assert abs(growth - reported) < max(0.1 * reported, 12e6)


def test_a_session_reports_its_weights_by_kind() -> None:
    """A packed matrix counts as packed; one that the reference provider reads counts as it is."""
    made = session("graph(x: float[n, 64]) -> (y: float[n, 64]) {\nw: float[64, 64] = ... 1\ny = MatMul(x, w)\n}")
    report = made.memory_report()
    assert report.packed_bytes >= 64 * 64 * 4
    assert report.code_bytes > 0
    assert report.label in str(report)


def test_arenas_and_shapes_are_given_back() -> None:
    """What runs left in arenas, and for shapes, is gone after `trim`, also inside bodies of loops; results stay the same."""
    text = """graph(x: float[9000], count: int64[]) -> (y: float[9000]) {
        go: bool[] = [1]
        y = Loop(count, go, x) {body = graph(i: int64[], c: bool[], a: float[9000]) -> (d: bool[], b: float[9000]) {
            d = Identity(c)
            s = Softmax(a)
            b = Softmax(s)
        }}
    }"""
    made = session(text)
    feed = {"x": np.arange(9000, dtype=np.float32), "count": np.int64(3)}
    first = made.run(None, feed)[0]
    assert made.memory_report().bindings > 0
    made.trim()
    report = made.memory_report()
    assert (report.arena_bytes, report.cache_bytes, report.bindings) == (0, 0, 0)
    np.testing.assert_array_equal(made.run(None, feed)[0], first)


def test_the_process_trims_all_its_sessions() -> None:
    """`sardonyx.trim` reaches each session; a session that is gone is not counted."""
    made = session("graph(x: float[n]) -> (y: float[n]) {\na = Softmax(x)\ny = Softmax(a)\n}")
    made.run(None, {"x": np.zeros(100_000, np.float32)})
    assert made.memory_report().arena_bytes > 0
    assert ort.trim() > 0
    assert made.memory_report().arena_bytes == 0
    assert any(other is made for other in live_sessions())
    count = len(live_sessions())
    del made
    gc.collect()
    assert len(live_sessions()) < count


def test_kernels_of_two_sessions_are_shared() -> None:
    """Two sessions of one model share their machine code, which counts once for the process."""
    text = "graph(x: float[n]) -> (y: float[n]) {\ny = Softmax(x)\n}"
    first, second = session(text), session(text)
    report = second.memory_report()
    assert report.shared_bytes == report.code_bytes > 0
    assert ort.memory_report().shared_bytes >= first.memory_report().code_bytes


def test_outputs_are_named_besides() -> None:
    """They are the caller's: the total does not count them."""
    made = session("graph(x: float[n]) -> (y: float[n]) {\ny = Relu(x)\n}")
    made.run(None, {"x": np.zeros(100_000, np.float32)})
    report = made.memory_report()
    assert report.output_bytes == 400_000
    assert report.total_bytes < 400_000
