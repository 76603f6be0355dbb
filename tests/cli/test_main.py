"""The command and its verbs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import Result

from sardonyx.cli.main import cli
from sardonyx.version import __version__


def test_every_verb_has_help_and_json(invoke: Callable[..., Result]) -> None:
    """`--json` is on each that prints something of its own; `exec` runs another command."""
    verbs = {"run", "inspect", "explain", "optimize", "compile", "profile", "providers", "where", "demo"}
    assert set(cli.commands) == {*verbs, "exec"}
    for verb in verbs:
        assert "--json" in invoke(verb, "--help").output


def test_the_version_is_printed(invoke: Callable[..., Result]) -> None:
    """As `sardonyx --version`."""
    assert __version__ in invoke("--version").output


def test_the_module_can_be_run() -> None:
    """`python -m sardonyx` is the command."""
    done = subprocess.run([sys.executable, "-m", "sardonyx", "--version"], capture_output=True, text=True, check=True)
    assert __version__ in done.stdout


@pytest.mark.parametrize("module", ["onnx", "llvmlite", "rich", "click"])
def test_importing_sardonyx_loads_none_of_the_slow_packages(module: str) -> None:
    """They are imported where first needed."""
    code = f"import sys, sardonyx; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
