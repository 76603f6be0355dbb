"""Python processes of tests: surroundings that would upset the one that runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["SECONDS", "python_environment", "run_python"]

SECONDS = 60
"""How long a process may take before the test fails."""


def python_environment(**changes: str | None) -> dict[str, str]:
    """The environment of a process that finds sardonyx and the tests' support; None takes a variable out."""
    import sardonyx

    folders = [str(Path(sardonyx.__file__).parents[1]), str(Path(__file__).parents[1])]
    found: dict[str, str | None] = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), **changes}
    return {name: text for name, text in found.items() if text is not None}


def run_python(
    source: str,
    *arguments: str,
    flags: Sequence[str] = (),
    changes: Mapping[str, str | None] | None = None,
    seconds: float = SECONDS,
) -> str:
    """What a process that runs `source` prints; raises where it fails or takes longer."""
    command = [sys.executable, *flags, "-c", source, *arguments]
    environment = python_environment(**(changes or {}))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr[-3000:]}"
    return done.stdout
