"""The unmodified binary of onnxruntime-extensions: each operator as in onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.custom_ops import custom_model, peer_session, session_of
from support.extension_cases import CASES

extensions = pytest.importorskip("onnxruntime_extensions")


def _outcome(make_session: Any, model: bytes, feed: dict[str, Any]) -> list[Any]:
    results: list[Any] = make_session(model, extensions.get_library_path()).run(None, feed)
    return results


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_as_in_onnxruntime(name: str) -> None:
    """Type, shape and every element are the same, in two runs of one session."""
    case = CASES[name]
    model = custom_model(case.op_type, case.inputs, case.outputs, domain=case.domain, **case.attributes)
    feed = {f"x{index}": np.asarray(item) for index, item in enumerate(case.inputs) if item is not None}
    expected = _outcome(peer_session, model, feed)
    session = session_of(model, extensions.get_library_path())
    for _ in range(2):
        for result, wanted in zip(session.run(None, feed), expected, strict=True):
            assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
            assert result.tolist() == wanted.tolist()
