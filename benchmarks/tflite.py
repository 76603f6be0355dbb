"""TensorFlow Lite models here, in LiteRT (XNNPACK) and in onert: how far results are apart, and times in turns.

    python benchmarks/tflite_models.py FOLDER; python benchmarks/tflite.py FOLDER [--runs 30] [NAME …]

Needs ai_edge_litert; onert where it is installed and loads the file. One thread each. Of each file a line has: the least times of
a run, in milliseconds of the processor; ours over the faster of the others; the time to make a session with a warm cache over that
of making an interpreter; how far results are from those of LiteRT's reference kernels (which have the file's arithmetic), from
XNNPACK's, and these from one another: the largest error of a float over the largest of its output, the largest difference of
integers in steps with the share of exact ones. Below are geometric means by form.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import sardonyx

Run = Callable[[], list[Any]]
_BACKENDS = "cpu;ruy;xnnpack"


def drawn(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return random elements of an input."""
    rng = np.random.default_rng(5)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return rng.normal(0, 1, shape).astype(kind)
    return rng.integers(0, 1000, shape).astype(kind) if kind.itemsize >= 4 else rng.integers(-100, 100, shape).astype(kind)


def theirs(path: Path, resolver: Any) -> tuple[Run, list[Any]]:
    """Return a run of LiteRT with fixed inputs, and these inputs."""
    interpreter = Interpreter(str(path), num_threads=1, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.reset_all_variables()
    inputs = [drawn(tuple(detail["shape"]), detail["dtype"]) for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def run() -> list[Any]:
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]

    return run, inputs


def ours(path: Path, inputs: list[Any]) -> Run:
    """Return a run here."""
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    session = sardonyx.InferenceSession(str(path), options)
    feed = {value.name: array for value, array in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: list(session.run(None, feed))


def survives(code: str) -> bool:
    """Return whether a process ends well that runs Python code."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def reference(path: Path) -> Run | None:
    """Return a run of LiteRT's reference kernels; None where they end the process, as they do for some files of 8 bits."""
    made = f"Interpreter({str(path)!r}, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)"
    trial = f"from ai_edge_litert.interpreter import *; found = {made}; found.allocate_tensors(); found.invoke()"
    return theirs(path, OpResolverType.BUILTIN_REF)[0] if survives(trial) else None


def onert(path: Path, inputs: list[Any]) -> Run | None:
    """Return a run of onert; None where it is not installed or does not take the file, of which some end its process."""
    if not survives(f"from onert import infer; infer.session({str(path)!r}, backends={_BACKENDS!r})"):
        return None
    try:
        from onert import infer

        session = infer.session(str(path), backends=_BACKENDS)
        session.infer(inputs)
        return lambda: list(session.infer(inputs))
    except Exception:  # noqa: BLE001  a missing package, or an operator that it lacks
        return None


def error(found: list[Any], expected: list[Any]) -> str:
    """Return how far results are apart."""
    worst, steps, exact, count = 0.0, 0, 0, 0
    for one, other in zip(found, expected, strict=True):
        if one.shape != other.shape:
            return f"{one.shape} for {other.shape}"
        if other.dtype.kind == "f":
            worst = max(worst, float(np.abs(one - other).max(initial=0)) / max(float(np.abs(other).max(initial=0)), 1e-6))
        else:
            apart = np.abs(one.astype(np.int64) - other.astype(np.int64))
            steps, exact, count = max(steps, int(apart.max(initial=0))), exact + int((apart == 0).sum()), count + apart.size
    parts = [f"{worst:.1e}"] if any(other.dtype.kind == "f" for other in expected) else []
    return " ".join(parts + ([f"{steps} steps, {exact / count:.1%} exact"] if count else []))


def in_turns(runs: list[Run], count: int) -> list[float]:
    """Return the least time of each in milliseconds of the processor, where they run in turns.

    Other processes hardly change it, and with one thread it is the time on the clock of an idle machine.
    """
    best = [math.inf] * len(runs)
    for _ in range(count):
        for index, run in enumerate(runs):
            start = time.process_time()
            run()
            best[index] = min(best[index], 1e3 * (time.process_time() - start))
    return best


def creation(path: Path, inputs: list[Any]) -> float:
    """Return the time to make a session over that to make an interpreter."""

    def interpreter() -> None:
        Interpreter(str(path), num_threads=1).allocate_tensors()

    here, there = in_turns([lambda: [ours(path, inputs)], lambda: [interpreter()]], 3)
    return here / there


def main() -> int:
    """Print the table; the exit status is the number of files that do not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="beginnings of the names of files")
    parser.add_argument("--runs", type=int, default=30)
    arguments = parser.parse_intermixed_args()
    ratios: dict[str, list[float]] = {}
    failed = 0
    for path in sorted(arguments.folder.glob("*.tflite")):
        if arguments.names and not any(path.name.startswith(name) for name in arguments.names):
            continue
        try:
            plain, (fast, inputs) = reference(path), theirs(path, OpResolverType.AUTO)
            mine, other = ours(path, inputs), onert(path, inputs)
            found, quick = mine(), fast()
            apart = f"XNNPACK {error(found, quick)}"
            if plain is not None:
                expected = plain()
                apart += f"; reference {error(found, expected)}; they {error(quick, expected)}"
            apart += f"; onert {error(found, other())}" if other is not None else ""
            best = in_turns([mine, fast, *([other] if other is not None else [])], arguments.runs)
            ratio, made = best[0] / min(best[1:]), creation(path, inputs)
        except Exception as reason:  # noqa: BLE001  a line for each model, whatever went wrong
            print(f"{path.stem:28} {type(reason).__name__}: {reason!s:.300}", flush=True)
            failed += 1
            continue
        ratios.setdefault(path.stem.rpartition(".")[2], []).append(ratio)
        times = " ".join(f"{value:8.2f}" for value in best)
        print(f"{path.stem:28} {times} ms  {ratio:5.2f}  creation {made:5.2f}  {apart}", flush=True)
    for form, found_ratios in ratios.items():
        print(f"{form}: geometric mean {math.prod(found_ratios) ** (1 / len(found_ratios)):.2f}, most {max(found_ratios):.2f}")
    return min(failed, 100)


if __name__ == "__main__":
    raise SystemExit(main())
