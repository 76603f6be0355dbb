"""Whether every rewrite of given models keeps their results.

    python benchmarks/verify_rewrites.py MODEL.onnx ... [--level 99] [--rules-only] [--floats] [--save FOLDER]

Each rewrite is compared on random inputs with what it replaces, and each pass on the whole model, by the reference kernels: seconds
for small models, minutes for large ones; `--rules-only` leaves out the passes. `--floats` takes the rules by which
quantized models run in floats, instead of those that make quantized operators. Listed are how many changes agree, what could not
be compared and why, and what changes results; with that, the exit status is 1, and `--save` keeps the models that show it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from sardonyx.errors import SardonyxError
from sardonyx.formats.onnx import load, save
from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.report import Problem, Report
from sardonyx.optimize.target import Target
from sardonyx.providers.reference.provider import evaluate
from sardonyx.providers.reference.whole import run_model


def prove(path: Path, level: int, *, rules_only: bool, floats: bool) -> Report:
    """Optimize the model of a file with every change compared."""
    target = Target() if floats else Target.file(keeps_opset=False)
    return optimize(load(path), level, evaluate=evaluate, target=target, verify=run_model, verifies_passes=not rules_only)


def keep(problem: Problem, folder: Path, source: Path) -> None:
    """Save the models that show a problem."""
    folder.mkdir(parents=True, exist_ok=True)
    for model, name in ((problem.before, "before"), (problem.after, "after")):
        if model is not None:
            save(model, folder / f"{source.stem}.{problem.optimization}.{name}.onnx")


def main() -> None:
    """Prove the rewrites of the models that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--level", type=int, default=99)
    parser.add_argument("--rules-only", action="store_true")
    parser.add_argument("--floats", action="store_true")
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    failed = False
    for path in arguments.models:
        start = time.perf_counter()
        try:
            report = prove(path, arguments.level, rules_only=arguments.rules_only, floats=arguments.floats)
        except SardonyxError as error:
            failed = True
            print(f"{path.name}: {error}")
            continue
        failed |= bool(report.problems)
        print(f"{path.name}: {report.verified.total()} changes agree, {time.perf_counter() - start:.1f} s", flush=True)
        for name, reason in report.unverified.items():
            print(f"    not compared: {name}: {reason[:160]}")
        for problem in report.problems:
            print(f"    WRONG: {problem}")
            if arguments.save is not None:
                keep(problem, arguments.save, path)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
