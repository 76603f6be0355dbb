"""Cases of onnx.backend.test, compiled ahead and loaded again: the same bits, and nothing is compiled."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
from support.backend_suite import SuiteCase, cases_of
from support.compare import difference

import sardonyx as ort

CPU = "CPUExecutionProvider"
EVERY = 30
"""One in so many cases is run; their names decide which."""
DRAWN = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"})


def _cases() -> list[SuiteCase]:
    found = [case for kind in ("node", "pytorch-operator", "simple") for case in cases_of(kind)]
    return [case for case in found if zlib.crc32(case.name.encode()) % EVERY == 1 and not case.operators & DRAWN]


def _results(session: ort.InferenceSession, case: SuiteCase) -> list[Any]:
    names = [item.name for item in session.get_inputs()]
    return [value for inputs, _ in case.data_sets for value in session.run(None, dict(zip(names, inputs, strict=False)))]


@pytest.mark.parametrize("embed", ["0", "1"])
def test_cases_that_are_compiled_ahead_give_the_same_results(embed: str, tmp_path: Path) -> None:
    """Whatever was in the model, and on as many threads as the session that loads it has."""
    wrong = []
    for case in _cases():
        path = tmp_path / f"{case.kind}_{case.name}.onnx"
        writing, reading = ort.SessionOptions(), ort.SessionOptions()
        entries = {"ep.context_enable": "1", "ep.context_file_path": str(path), "ep.context_embed_mode": embed}
        for key, text in entries.items():
            writing.add_session_config_entry(key, text)
        writing.intra_op_num_threads, reading.intra_op_num_threads = 1, 2
        reading.add_session_config_entry("session.disable_model_compile", "1")
        source = str(case.model) if isinstance(case.model, Path) else case.model
        expected = _results(ort.InferenceSession(source, writing, providers=[CPU]), case)
        found = _results(ort.InferenceSession(str(path), reading, providers=[CPU]), case)
        wrong += [case.name for one, other in zip(expected, found, strict=True) if difference(one, other, 0.0, 0.0) is not None]
    assert not wrong
    assert len(_cases()) >= 40
