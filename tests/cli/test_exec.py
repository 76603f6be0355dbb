"""`sardonyx exec`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import Result

from sardonyx.version import ONNXRUNTIME_API


def _exec(*command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sardonyx", "exec", "--", *command], capture_output=True, text=True, check=False, cwd=folder
    )


def test_a_command_finds_sardonyx_as_onnxruntime() -> None:
    """Its names, its sub-packages and its version."""
    code = (
        "import importlib.metadata, onnxruntime, onnxruntime.capi.onnxruntime_pybind11_state as state;"
        "print(onnxruntime.InferenceSession.__module__, importlib.metadata.version('onnxruntime'), state.SessionOptions.__module__)"
    )
    done = _exec(sys.executable, "-c", code)
    assert done.stdout.split() == ["sardonyx.session.inference_session", ONNXRUNTIME_API, "sardonyx.session.options"], done.stderr


def test_the_commands_status_is_that_of_exec() -> None:
    """Its arguments are its own, also those that begin with a dash."""
    assert _exec(sys.executable, "-c", "import sys; raise SystemExit(int(sys.argv[1] == '--json') + 6)", "--json").returncode == 7


def test_an_installed_onnxruntime_stays_as_it_is() -> None:
    """Another process imports it as before."""
    pytest.importorskip("onnxruntime")
    before = version("onnxruntime")
    _exec(sys.executable, "-c", "import onnxruntime")
    code = "import onnxruntime; print(onnxruntime.__version__, onnxruntime.InferenceSession.__module__.partition('.')[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [before, "onnxruntime"]


def test_other_folders_may_have_more_of_the_package(tmp_path: Path) -> None:
    """A sub-package of that name on sys.path is found."""
    (tmp_path / "onnxruntime" / "extra").mkdir(parents=True)
    (tmp_path / "onnxruntime" / "__init__.py").write_text("")
    (tmp_path / "onnxruntime" / "extra" / "__init__.py").write_text("answer = 42\n")
    code = f"import sys; sys.path.append({str(tmp_path)!r}); import onnxruntime.extra; print(onnxruntime.extra.answer)"
    assert _exec(sys.executable, "-c", code).stdout.strip() == "42"


def test_a_command_that_is_not_there_is_told(invoke: Callable[..., Result]) -> None:
    """In one line."""
    result = invoke("exec", "--", "no-such-command-here")
    assert result.exit_code == 1
    assert "no-such-command-here: No such file" in result.stderr
