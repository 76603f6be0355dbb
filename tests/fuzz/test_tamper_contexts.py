"""A compiled model of which any byte was changed is refused, or computes what it did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).with_name("tamper_contexts.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize("flags", [[], ["--repair"], ["--trust"], ["--check"]])
def test_a_changed_byte_is_refused_or_makes_no_difference(flags: list[str], tmp_path: Path) -> None:
    """Some bytes of the model and of its file; with digests written anew, without the seal, and with all weights compared."""
    command = [sys.executable, str(_SCRIPT), "--every", "511", "--seed", str(len(flags)), "--folder", str(tmp_path), *flags]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if ".bin: " in line or ".onnx: " in line]
    assert len(lines) == (2 if "--repair" in flags else 5)
    assert not any("refused 0," in line for line in lines)
