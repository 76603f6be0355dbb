"""`sardonyx exec`: run a command whose `import onnxruntime` finds sardonyx."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

import sardonyx
from sardonyx import config
from sardonyx.cli.console import fail, readable_errors
from sardonyx.version import ONNXRUNTIME_API

__all__ = ["execute"]

_INTERRUPTED = 130
"""The status of a command that Ctrl-C ended, as shells give it."""
_PACKAGE = '''"""The names of onnxruntime, which sardonyx has."""

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)

try:
    import sardonyx.as_onnxruntime
except ModuleNotFoundError:
    import sys

    sys.path.append({sources!r})
    import sardonyx.as_onnxruntime
'''


@click.command(
    name="exec",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run COMMAND with sardonyx in the place of onnxruntime.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def execute(command: Sequence[str]) -> None:
    """Run COMMAND with an `import onnxruntime` that finds sardonyx; an installed onnxruntime stays as it is.

    For example: sardonyx exec -- python serve.py
    """
    with readable_errors(), tempfile.TemporaryDirectory(prefix="sardonyx-exec-") as folder:
        _write_package(Path(folder))
        status = _INTERRUPTED
        with contextlib.suppress(KeyboardInterrupt):
            status = _run(command, config.environment_with(Path(folder)))
    raise SystemExit(status)


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a command to its end and return its exit status, 128 and the number of the signal where one ended it."""
    try:
        status = subprocess.run(command, env=environment, check=False).returncode
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")
    return status if status >= 0 else 128 - status


def _write_package(folder: Path) -> None:
    """Write what a child process finds first: the module, and the record of a distribution."""
    package, record = folder / "onnxruntime", folder / f"onnxruntime-{ONNXRUNTIME_API}.dist-info"
    package.mkdir()
    record.mkdir()
    sources = str(Path(sardonyx.__file__).parents[1])
    (package / "__init__.py").write_text(_PACKAGE.format(sources=sources), encoding="utf-8")
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {ONNXRUNTIME_API}\n", encoding="utf-8")
