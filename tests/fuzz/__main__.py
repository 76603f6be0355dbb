"""Search for models that break the CPU provider: `PYTHONPATH=src:tests python -m fuzz COUNT [--seed N] [--all] [--only pad]`.

Prints each finding, made small, as a model in the text form; exits with 1 where there was one. `--all` also prints cases that only
one of the two providers computes.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys

ENVIRONMENT = {"SARDONYX_GUARD": "1", "SARDONYX_COMPILE": "inline", "SARDONYX_MAX_TENSOR_BYTES": str(1 << 24)}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="", help="a part of the name of what makes the nodes, or moving")
    arguments = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    from fuzz.harness import BROKEN, search, warm_up  # reads the environment
    from fuzz.operators import MOVING, OPERATORS

    named = [operator for operator in OPERATORS if arguments.only in operator.__name__]
    operators = MOVING if arguments.only == "moving" else named
    warm_up()

    kinds = (*BROKEN, "accepts", "refuses") if arguments.all else BROKEN
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        found = search(seed, kinds=kinds, operators=operators)
        if found is not None:
            finding, case = found
            counts[finding.partition(":")[0]] += 1
            print(f"seed {seed}: {finding}\n{case}\n", flush=True)  # noqa: T201
    print(f"{arguments.count} cases, {dict(counts) or 'nothing found'}")  # noqa: T201
    return 1 if any(counts[kind] for kind in BROKEN) else 0


if __name__ == "__main__":
    sys.exit(main())
