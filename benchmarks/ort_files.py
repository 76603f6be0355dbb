"""Files of ONNX Runtime's format: those that it saves run here, those that are saved here run there.

    python benchmarks/ort_files.py                                      models that the script makes
    python benchmarks/ort_files.py --zoo FOLDER [NAME …]                of a zoo (see zoo.py)

For each model and each level of optimization a line has two figures: how far the results here of the file that ONNX Runtime saved
are from the results here of the ONNX file, and how far ONNX Runtime's results of the file that is saved here are from its own of
the ONNX file. Both are the largest error of an element over the largest element of the output; of outputs that are no floats, the
share that differs. The exit status is the number of files that do not load, or whose figure is above the bar. Where a model ends in
a choice between boxes that are nearly equal, or in steps of 8 bits, the optimizer's rounding decides about them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from zoo import OWN, Zoo, add_options

import sardonyx

LEVELS = {"disabled": 0, "basic": 1, "extended": 2, "layout": 3, "all": 99}


def error(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return the largest error of an output; infinity where they differ in number or shape."""
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        if not isinstance(other, np.ndarray):
            worst = max(worst, 0.0 if _rounded(one) == _rounded(other) else 1.0)
        elif one.shape != other.shape:
            return float("inf")
        elif other.dtype.kind == "f" and other.size:
            difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
            worst = max(worst, float(np.nanmax(difference)) / max(float(np.nanmax(np.abs(other))), 1e-6))
        elif other.size:
            worst = max(worst, float(np.mean(one != other)))
    return worst


def _rounded(value: Any) -> Any:
    """Return a sequence or a map with its floats cut to four digits."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return f"{value:.3g}" if isinstance(value, float) else value


def session(engine: Any, path: Path, level: int = 99, saved: Path | None = None) -> Any:
    """Return a session of an engine with one thread, which saves the optimized model where that is asked for."""
    options = engine.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = engine.GraphOptimizationLevel(level)
    if saved is not None:
        options.optimized_model_filepath = str(saved)
    return engine.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def compare(path: Path, feed: Any, level: int, folder: Path) -> tuple[float, float]:
    """Return the two figures of a model at a level."""
    theirs, ours = folder / "theirs.ort", folder / "ours.ort"
    expected = session(onnxruntime, path, level, theirs).run(None, feed)
    session(sardonyx, path, level, ours)
    here = error(session(sardonyx, theirs).run(None, feed), session(sardonyx, path).run(None, feed))
    theirs.unlink()
    there = error(session(onnxruntime, ours).run(None, feed), expected)
    ours.unlink()
    return here, there


def main() -> int:
    """Print the table; the number of files above the bar is the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--bar", type=float, default=1e-3)
    arguments = parser.parse_args()
    zoo = Zoo(arguments.zoo, arguments.cache)
    failed = 0
    print(f"{'model':28} {'level':9} {'theirs here':>12} {'ours there':>12}")
    for name in arguments.models or OWN:
        path, feed = zoo.path(name), zoo.feed(name)
        for label, level in LEVELS.items():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    figures = compare(Path(path), feed, level, Path(folder))
                except Exception as reason:  # noqa: BLE001  a line for each model, whatever went wrong
                    print(f"{name:28} {label:9} {type(reason).__name__}: {reason!s:.300}", flush=True)
                    failed += 1
                    continue
            failed += sum(figure > arguments.bar for figure in figures)
            print(f"{name:28} {label:9} {figures[0]:12.1e} {figures[1]:12.1e}", flush=True)
    print(f"{failed} files above the bar")
    return min(failed, 100)


if __name__ == "__main__":
    raise SystemExit(main())
