"""The unmodified binary of onnxruntime-extensions: each operator as in onnxruntime."""

from __future__ import annotations

import os

import pytest
from support.custom_ops import session_of
from support.extension_cases import CASES
from support.extension_peer import expected_results, feed_of, model_of

_KEY = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"
_before = os.environ.get(_KEY)
extensions = pytest.importorskip("onnxruntime_extensions")
if _before is None:
    os.environ.pop(_KEY, None)  # which its import sets, for the processes of other tests too


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_as_in_onnxruntime(name: str) -> None:
    """Type, shape and every element are the same, in two runs of one session."""
    expected = expected_results()[name]
    session = session_of(model_of(CASES[name]), extensions.get_library_path())
    for _ in range(2):
        for result, wanted in zip(session.run(None, feed_of(CASES[name])), expected, strict=True):
            assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
            assert result.tolist() == wanted.tolist()
