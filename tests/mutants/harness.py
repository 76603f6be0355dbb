"""A temporary copy of the package, in which changes are tried out one after another."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from mutants.mutation import ROOT, SOURCE, Mutation, mutate

__all__ = ["Tree", "Verdict"]

_LEAST_SECONDS, _TIMES_BASELINE = 60.0, 5.0
"""How long tests may run after a change: so many times what they take without it, and at least so long."""
_LONGEST_SECONDS = 1800.0
"""How long tests may run without a change."""
_PYTEST = ("-m", "pytest", "-n", "0", "-x", "-p", "no:cacheprovider", "--tb=no", "-q", "-rfE")
_PASSED, _NONE_RAN = 0, (4, 5)


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """How the tests of a change went."""

    outcome: str
    """killed, survived, or broken where the tests fail without the change too, or its old text is not in the source."""
    detail: str
    """The test that failed, or why there is none."""
    seconds: float
    """How long the tests took."""

    @property
    def is_killed(self) -> bool:
        """Whether a test noticed the change."""
        return self.outcome == "killed"


class Tree:
    """A copy of the package, for use in a `with` statement; the package itself is only read."""

    def __enter__(self) -> Self:
        """Make the copy."""
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        self._package = self._folder / "src" / SOURCE.name
        shutil.copytree(SOURCE, self._package, ignore=shutil.ignore_patterns("__pycache__"))
        self._baselines: dict[tuple[str, ...], Verdict] = {}
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the copy."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def try_out(self, mutation: Mutation) -> Verdict:
        """Run the tests nearest to `mutation` without it, where that was not done before, and with it."""
        baseline = self._baselines.get(mutation.tests)
        if baseline is None:
            baseline = self._baselines[mutation.tests] = self._run(mutation.tests, _LONGEST_SECONDS)
        if baseline.is_killed:
            return Verdict("broken", f"without the change: {baseline.detail}", baseline.seconds)
        path = self._package / mutation.file
        text = path.read_text(encoding="utf-8")
        try:
            changed = mutate(mutation, text)
        except ValueError as error:
            return Verdict("broken", str(error), 0.0)
        self._write(path, changed)
        try:
            return self._run(mutation.tests, max(_LEAST_SECONDS, _TIMES_BASELINE * baseline.seconds))
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        """Write a module, and remove its bytecode: times of files are too coarse to show that it is out of date."""
        path.write_text(text, encoding="utf-8")
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

    def _run(self, tests: Sequence[str], limit_seconds: float) -> Verdict:
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, *_PYTEST, *tests],
            cwd=ROOT,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Verdict("killed", f"not done after {limit_seconds:.0f} s", time.monotonic() - start)
        seconds = time.monotonic() - start
        if process.returncode in _NONE_RAN:
            raise RuntimeError(f"no test ran of {', '.join(tests)}: {output.strip()}")
        if process.returncode == _PASSED:
            return Verdict("survived", "", seconds)
        return Verdict("killed", _first_failure(output) or f"exit status {process.returncode}", seconds)

    def _environment(self) -> dict[str, str]:
        """Return the environment of the tests: the copied package comes first, and nothing is kept from run to run but bytecode."""
        kept = tempfile.mkdtemp(dir=self._folder, prefix="run-")
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(self._package.parent), str(ROOT / "tests"))),
            "SARDONYX_CACHE_DIR": str(Path(kept) / "cache"),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(kept) / "hypothesis"),
        }


def _first_failure(output: str) -> str:
    """The first test that pytest's summary lists, "" where it lists none."""
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.partition(" ")[2].partition(" - ")[0].removeprefix("tests/")
    return ""
