"""The reference provider against ONNX Runtime, operator by operator, at about a million elements.

    taskset -c 0 python benchmarks/operators.py [OPERATOR ...]

One node each (`operator_instances.py`), one thread each; medians over rounds in which the engines take turns, of processor time, as
others may use the machine. Prints the ratios in order, then the worst 20. Fails above 20, and where an operator that both
have a kernel for has no instance.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.update(ORT_DISABLE_TELEMETRY="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state
from operator_draws import Instance
from operator_instances import INSTANCES, LOOPS_AROUND_MODELS

import sardonyx
import sardonyx.providers.reference.kernels
from sardonyx.providers.reference.registry import registered_operators
from sardonyx.session.providers import REFERENCE

BAR = 20.0
ROUNDS = 5
ROUND_S = 0.05
"""Calls of one engine go on for this long in a round."""


def shared_operators() -> set[tuple[str, str]]:
    """(domain, operator) of every reference kernel that ONNX Runtime's CPU provider has, too."""
    kernels = onnxruntime_pybind11_state.get_all_opkernel_def()
    theirs = {(kernel.domain, kernel.op_name) for kernel in kernels if kernel.provider == "CPUExecutionProvider"}
    return {(domain, name) for domain, name in theirs & set(registered_operators()) if name not in LOOPS_AROUND_MODELS}


def engines(instance: Instance) -> list[Callable[[], Any]]:
    """This package and ONNX Runtime, on the same node and feed."""
    model = instance.model().SerializeToString()
    feed = instance.feed()
    ours = sardonyx.InferenceSession(model, providers=[REFERENCE])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    theirs = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    if instance.shared:
        return [lambda: ours.run(None, feed), in_place(theirs, feed, instance.shared)]
    return [lambda: ours.run(None, feed), lambda: theirs.run(None, feed)]


def in_place(session: Any, feed: dict[str, Any], shared: dict[str, str]) -> Callable[[], Any]:
    """ONNX Runtime's run of an operator that writes to some of its inputs and takes them only so; `shared` maps them to outputs."""
    binding = session.io_binding()
    for name, array in feed.items():
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_input(name, value)
        if name in shared:
            binding.bind_ortvalue_output(shared[name], value)
    binding.bind_output("y0")

    def run() -> Any:
        session.run_with_iobinding(binding)
        return [binding.get_outputs()[-1].numpy(), *(feed[name] for name in shared)]

    return run


def seconds(run: Callable[[], Any], round_s: float = ROUND_S) -> float:
    """Processor time of one call, over as many as a round of `round_s` seconds holds."""
    count, spent = 0, 0.0
    while spent < round_s:
        start = time.process_time()
        run()
        spent += time.process_time() - start
        count += 1
    return spent / count


def measure(instance: Instance) -> tuple[float, float]:
    """Median seconds of a call, ours and theirs."""
    runs = engines(instance)
    first, second = (run() for run in runs)
    for one, other in zip(first, second, strict=True):
        if isinstance(one, np.ndarray) and one.shape != other.shape:
            raise SystemExit(f"{name_of(instance)}: shapes {one.shape} and {other.shape}")
    rounds = [[seconds(run) for run in runs] for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    return ours, theirs


def name_of(instance: Instance) -> str:
    """Domain and operator, with what tells this instance from others."""
    short = {name: value for name, value in instance.attributes.items() if isinstance(value, (int, str)) and name not in ("K", "N")}
    rest = ", ".join(f"{name}={value}" for name, value in list(short.items())[:2])
    domain = f"{instance.domain}." if instance.domain else ""
    shapes = " ".join("x".join(map(str, item.shape)) for item in instance.inputs[:1] if item is not None)
    return f"{domain}{instance.op_type} {shapes} {rest}".rstrip()


def line(name: str, ours: float, theirs: float) -> str:
    """One row of the table."""
    return f"{name:64}{ours * 1e3:10.3f}{theirs * 1e3:12.3f}{ours / theirs:9.2f}"


def main() -> None:
    """Print the ratios in order and the worst."""
    wanted = set(sys.argv[1:])
    missing = shared_operators() - {(item.domain, item.op_type) for item in INSTANCES}
    rows = [(name_of(item), *measure(item)) for item in INSTANCES if not wanted or item.op_type in wanted]
    rows.sort(key=lambda row: row[1] / row[2])
    print(f"{'':64}{'ours ms':>10}{'theirs ms':>12}{'ratio':>9}")
    for row in rows:
        print(line(*row))
    ratios = [ours / theirs for _, ours, theirs in rows]
    print(f"{len(rows)} instances, median {statistics.median(ratios):.2f}, geometric mean {statistics.geometric_mean(ratios):.2f}")
    print("the worst 20:")
    for row in rows[-20:][::-1]:
        print(line(*row))
    if missing:
        raise SystemExit(f"no instance of {sorted(missing)}")
    if max(ratios) > BAR:
        raise SystemExit(f"{sum(ratio > BAR for ratio in ratios)} instances are above {BAR}")


if __name__ == "__main__":
    main()
