"""Small changes of the source that tests must notice: `PYTHONPATH=src:tests python -m mutants [NAME …] [--list]`.

Makes each change of the table whose name has one of the NAMEs in it, or every change, in a temporary copy of the package, and runs
the tests nearest to it. Prints whether they failed (killed) or passed (survived); exits with 1 where any change survived.
"""

from __future__ import annotations

import argparse
import sys

from mutants.harness import Tree
from mutants.table import MUTATIONS


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of changes")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    arguments = parser.parse_args()
    chosen = [item for item in MUTATIONS if not arguments.names or any(part in item.name for part in arguments.names)]
    if arguments.list:
        print("\n".join(item.name for item in chosen))  # noqa: T201  a program of the command line
        return 0
    survivors = []
    with Tree() as tree:
        for mutation in chosen:
            verdict = tree.try_out(mutation)
            print(f"{verdict.outcome:8} {mutation.name:44} {verdict.seconds:6.1f} s  {verdict.detail}", flush=True)  # noqa: T201  a program of the command line
            if not verdict.is_killed:
                survivors.append(mutation.name)
    print(f"{len(chosen)} changes, {len(survivors)} not killed{': ' if survivors else ''}{', '.join(survivors)}")  # noqa: T201  a program of the command line
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
