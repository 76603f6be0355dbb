"""Run cases in the format of onnx.backend.test and print which pass.

    python benchmarks/conformance.py FOLDER ...            cases as files: model.onnx and test_data_set_*/*.pb, such as those in the
                                                           folder onnx/backend/test/data of an older wheel of onnx
    python benchmarks/conformance.py --today               all cases of the installed onnx
    python benchmarks/conformance.py --older-opsets        today's node cases, converted to every opset that onnx converts them to

Several folders are run as one: a case that is there twice with the same content counts once. `--set` chooses the providers (those
of the tests: reference, cpu, fusing, nhwc, device), `--level` the optimization (off, all), `--only` a part of the name.

Cases of Bernoulli draw numbers, and some older ones contradict the standard's present text: tests/conformance/older_cases.toml
lists them, each with the sentence that it breaks. They are told apart; the exit status is 1 where any other case failed.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import sys
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.backend_suite import KINDS, SuiteCase, cases_of, read_cases
from support.conformance import LEVELS, failure_of
from support.older_opsets import conversions, convertible
from support.provider_sets import SETS


def digest(case: SuiteCase) -> str:
    """A fingerprint of a case: its name, model and data."""
    data = "".join(f"{getattr(item, 'dtype', '')}{item!r}" for data_set in case.data_sets for part in data_set for item in part)
    return hashlib.sha256(case.name.encode() + case.proto.SerializeToString() + data.encode()).hexdigest()


def from_folders(folders: list[Path]) -> Iterator[SuiteCase]:
    """The cases below the folders, each content once."""
    seen: set[str] = set()
    for folder in folders:
        for case in read_cases(folder):
            mark = digest(case)
            if mark not in seen:
                seen.add(mark)
                yield case


def selected(arguments: argparse.Namespace) -> Iterator[SuiteCase]:
    """The cases that the command line asks for."""
    if arguments.today:
        yield from (case for kind in KINDS for case in cases_of(kind))
    if arguments.older_opsets:
        yield from (made for case in convertible() for made in conversions(case, range(1, 29)))
    yield from from_folders(arguments.folders)


LIST = Path(__file__).parent.parent / "tests" / "conformance" / "older_cases.toml"
LISTED = tomllib.loads(LIST.read_text(encoding="utf-8"))


def listed(name: str) -> str | None:
    """Why a case of this name may fail: it draws numbers, or breaks a sentence of the standard; None where it may not."""
    if any(fnmatch.fnmatch(name, pattern) for pattern in LISTED["drawn"]):
        return "draws numbers"
    for entry in LISTED["contradicting"]:
        if any(fnmatch.fnmatch(name, pattern) for pattern in entry["cases"]):
            return f'contradicts "{entry["says"]}"'
    return None


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--today", action="store_true")
    parser.add_argument("--older-opsets", action="store_true")
    parser.add_argument("--set", default="reference", choices=[item.name for item in SETS])
    parser.add_argument("--level", default="all", choices=list(LEVELS))
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    (providers,) = (item for item in SETS if item.name == arguments.set)
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    for case in selected(arguments):
        if arguments.only not in case.name:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = failure_of(case, providers.make(), LEVELS[arguments.level])
        why = listed(case.name) if text and not arguments.older_opsets else None
        counts["passed" if not text else "failed" if why is None else "listed"] += 1
        if text:
            print(f"{case.kind}/{case.name}: {f'{why}: ' if why else ''}{text}")
    seconds = time.perf_counter() - start
    where = f"on {arguments.set}, level {arguments.level}, in {seconds:.0f} s"
    print(f"{counts['passed']} of {sum(counts.values())} passed, {counts['listed']} are listed, {counts['failed']} failed {where}")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
