"""Search for models, feeds and files that break sardonyx.

    PYTHONPATH=src:tests python -m fuzz COUNT [--seed N] [--seconds S] [--peer] [--all] [--drawn] [--only pad] [--zoo FOLDER] [--keep FOLDER]

Cases are the standard's own, windows of the models of a folder, and drawn ones, with changes of structure, bytes, feeds and compiled
files; `--drawn` leaves the changes out. Prints each finding at once, then made small, as a model in text form; exits with 1 where
there was one. `--keep` writes models and feeds of findings into a folder.
`--peer` compares with onnxruntime too, and `--all` prints cases that only one of the two providers computes: neither is a defect.
"""

from __future__ import annotations

import argparse
import collections
import os
import signal
import sys
import time
from pathlib import Path

ENVIRONMENT = {"SARDONYX_GUARD": "1", "SARDONYX_COMPILE": "inline", "SARDONYX_MAX_TENSOR_BYTES": str(1 << 24)}


def main() -> int:
    """Run the command line."""
    arguments = _parser().parse_args()
    os.environ.update(ENVIRONMENT | {"SARDONYX_MAX_ITERATIONS": "10000"})
    from fuzz.findings import Findings  # reads the environment
    from fuzz.harness import BROKEN, case_maker, kind_of, warm_up
    from fuzz.mutants import make_mutant
    from fuzz.operators import MOVING, OPERATORS
    from fuzz.seeds import standard_seeds, windows
    from fuzz.server import run_seeds

    named = [operator for operator in OPERATORS if arguments.only in operator.__name__]
    make = case_maker(MOVING if arguments.only == "moving" else named)
    if not arguments.drawn and not arguments.only:
        seeds = (*standard_seeds(), *windows(arguments.zoo))
        make = lambda draw: make_mutant(draw, seeds)  # type: ignore[assignment,return-value]  # noqa: E731  one of two ways to draw
    warm_up()

    kinds = (*BROKEN, "peer", *(("accepts", "refuses") if arguments.all else ()))
    findings = Findings(make, kinds, arguments.keep)
    counts: collections.Counter[str] = collections.Counter()
    done, start = 0, time.monotonic()
    is_over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: is_over.append(number))
    for seed, finding, peer in run_seeds(arguments.seed, arguments.count, make, asks_peer=arguments.peer):
        done += 1
        counts.update(kind_of(text) for text in (finding, peer) if text)
        findings.add(seed, finding, _say)
        findings.add(seed, peer, _say)
        if is_over or (arguments.seconds and time.monotonic() - start > arguments.seconds):
            break
    broken = {kind: count for kind, count in counts.items() if kind in BROKEN}
    rate = done / max(time.monotonic() - start, 1e-9)
    print(f"{done} cases, {broken or 'nothing found'}; {rate:.1f} a second; all {dict(counts)}")  # noqa: T201  what a search is run for
    return 1 if broken else 0


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  what a search is run for


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="stop after so many")
    parser.add_argument("--peer", action="store_true", help="compare with onnxruntime")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--drawn", action="store_true", help="only drawn models, unchanged")
    parser.add_argument("--only", default="", help="a part of the name of what draws the nodes, or moving")
    parser.add_argument("--keep", type=Path, help="a folder for the models and feeds of findings")
    zoo = Path(__file__).resolve().parents[2].parent / "shared" / "zoo" / "light"
    parser.add_argument("--zoo", type=Path, default=zoo, help="a folder of models of which windows are taken")
    return parser


if __name__ == "__main__":
    sys.exit(main())
