"""What onnxruntime computes for all cases of onnxruntime-extensions, in a process of its own.

The library keeps the runtime that it met first in a variable of which a process has one, even for two copies of the file.
"""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.custom_ops import custom_model
from support.extension_cases import CASES, ExtensionCase

__all__ = ["expected_results", "feed_of", "model_of"]


def model_of(case: ExtensionCase) -> bytes:
    """The model of a case."""
    return custom_model(case.op_type, case.inputs, case.outputs, domain=case.domain, **case.attributes)


def feed_of(case: ExtensionCase) -> dict[str, Any]:
    """The feed of a case."""
    return {f"x{index}": np.asarray(item) for index, item in enumerate(case.inputs) if item is not None}


@functools.cache
def expected_results() -> dict[str, list[Any]]:
    """Case -> what onnxruntime gives; the test is skipped where that is not installed."""
    pytest.importorskip("onnxruntime")
    folder = str(Path(__file__).parent.parent)
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {folder!r}); import support.extension_peer as peer; peer.main()",
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    results: dict[str, list[Any]] = pickle.loads(done.stdout[done.stdout.index(b"RESULTS") + 7 :])
    return results


def main() -> None:
    """Run all cases and write the results, pickled, behind a mark."""
    import onnxruntime
    import onnxruntime_extensions

    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
    results = {
        name: onnxruntime.InferenceSession(model_of(case), options, providers=["CPUExecutionProvider"]).run(None, feed_of(case))
        for name, case in CASES.items()
    }
    sys.stdout.buffer.write(b"RESULTS" + pickle.dumps(results))
