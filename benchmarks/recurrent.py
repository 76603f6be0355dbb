"""How fast are LSTM, GRU and RNN, against ONNX Runtime running the same nodes?

    python benchmarks/recurrent.py [--threads N] [--rounds R] [--level LEVEL] [CASE ...]

Each model is one node with constant weights, made here. A round times sardonyx and ONNX Runtime in turns, processor time on one
thread, as others may use the machine; printed are the least times, their ratio, and how far the results differ. Without onnxruntime
only our times are printed. CASE picks the cases whose name contains it.
"""

import argparse
import functools
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx.numpy_helper

import sardonyx
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import Array
from sardonyx.providers.cpu.provider import CpuProvider

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@dataclass(frozen=True)
class Case:
    """One node."""

    op_type: str
    T: int
    N: int
    features: int
    H: int
    attributes: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def directions(self) -> int:
        """How many directions there are."""
        return 2 if self.attributes.get("direction") == "bidirectional" else 1

    def model(self) -> bytes:
        """The node with its weights as initializers."""
        rng, rows = np.random.default_rng(0), GATES[self.op_type] * self.H
        shapes = {
            "w": (self.directions, rows, self.features),
            "r": (self.directions, rows, self.H),
            "b": (self.directions, 2 * rows),
        }
        drawn = {name: rng.standard_normal(shape) / math.sqrt(self.H) for name, shape in shapes.items()}
        weights = [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in drawn.items()]
        x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["t", "n", self.features])
        y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
        node = onnx.helper.make_node(self.op_type, ["x", "w", "r", "b"], ["y"], hidden_size=self.H, **self.attributes)
        graph = onnx.helper.make_graph([node], "recurrent", [x], [y], weights)
        made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 14)], ir_version=8)
        return bytes(made.SerializeToString())

    def feeds(self) -> dict[str, Array]:
        """Random inputs."""
        return {"x": np.random.default_rng(1).standard_normal((self.T, self.N, self.features)).astype(np.float32)}


BOTH: dict[str, int | str] = {"direction": "bidirectional"}
LINEAR: dict[str, int | str] = {"linear_before_reset": 1}
CASES = {
    "lstm 64, 10 steps": Case("LSTM", 10, 1, 64, 64),
    "lstm 64, 1000 steps": Case("LSTM", 1000, 1, 64, 64),
    "lstm 128, 100 steps": Case("LSTM", 100, 1, 128, 128),
    "lstm 256, 100 steps": Case("LSTM", 100, 1, 256, 256),
    "lstm 256, 1 step": Case("LSTM", 1, 1, 256, 256),
    "lstm 512, 100 steps": Case("LSTM", 100, 1, 512, 512),
    "lstm 256, both": Case("LSTM", 100, 1, 256, 256, BOTH),
    "lstm 128, both, batch 8": Case("LSTM", 50, 8, 128, 128, BOTH),
    "lstm 256, batch 16": Case("LSTM", 250, 16, 256, 256),
    "lstm 512, batch 32": Case("LSTM", 50, 32, 512, 512),
    "gru 64, 10 steps": Case("GRU", 10, 1, 64, 64),
    "gru 128, 100 steps": Case("GRU", 100, 1, 128, 128),
    "gru 256, 100 steps": Case("GRU", 100, 1, 256, 256),
    "gru 256, linear": Case("GRU", 100, 1, 256, 256, LINEAR),
    "gru 256, both, linear": Case("GRU", 100, 1, 256, 256, LINEAR | BOTH),
    "gru 512, batch 32": Case("GRU", 50, 32, 512, 512),
    "gru 512, batch 32, linear": Case("GRU", 50, 32, 512, 512, LINEAR),
    "rnn 64, 10 steps": Case("RNN", 10, 1, 64, 64),
    "rnn 256, 100 steps": Case("RNN", 100, 1, 256, 256),
    "rnn 512, batch 32": Case("RNN", 50, 32, 512, 512),
}
Run = Callable[[Mapping[str, Array]], list[Array]]


def ours(proto: bytes, level: str | None, threads: int) -> Run:
    """A session of this package on its compiler alone."""
    session = sardonyx.InferenceSession(proto, providers=[CpuProvider(host_target(level), threads)])
    left = [placement.declined for placement in session.explain() if placement.provider != "CPUExecutionProvider"]
    if left:
        raise SystemExit(f"not compiled: {left}")
    return lambda given: session.run(None, given)


def theirs(proto: bytes, threads: int) -> Run | None:
    """A session of ONNX Runtime, None where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
    return lambda given: session.run(None, given)


def seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """Time per call, over enough calls to last 2 ms."""
    calls, elapsed = 1, 0.0
    while elapsed < 2e-3:
        start = clock()
        for _ in range(calls):
            call()
        elapsed = clock() - start
        calls *= 2
    return elapsed / (calls // 2)


def report(names: list[str], level: str | None, threads: int, rounds: int) -> None:
    """Print the table."""
    print(f"{host_target(level).isa:>26} {'sardonyx':>12} {'per step':>10} {'onnxruntime':>12} {'ratio':>7} {'difference':>11}")
    ratios, clock = [], time.process_time if threads == 1 else time.perf_counter
    for name in names:
        case = CASES[name]
        proto, given = case.model(), case.feeds()
        runs = [run for run in (ours(proto, level, threads), theirs(proto, threads)) if run is not None]
        results = [run(given)[0] for run in runs]
        times: list[list[float]] = [[] for _ in runs]
        for _ in range(rounds):
            for run, found in zip(runs, times, strict=True):
                found.append(seconds(functools.partial(run, given), clock))
        one = min(times[0])
        line = f"{name:>26} {one * 1e6:9.0f} us {one / case.T * 1e6:7.2f} us"
        if len(runs) == 2:
            ratio = one / min(times[1])
            ratios.append(ratio)
            difference = float(np.abs(results[0] - results[1]).max())
            line += f" {min(times[1]) * 1e6:9.0f} us {ratio:7.2f} {difference:11.1e}"
        print(line, flush=True)
    if ratios:
        print(f"{'geometric mean':>26} {'':23} {'':12} {statistics.geometric_mean(ratios):10.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--level")
    given = parser.parse_args()
    report([n for n in CASES if not given.cases or any(c in n for c in given.cases)], given.level, given.threads, given.rounds)
