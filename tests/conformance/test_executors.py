"""Cases of onnx.backend.test, cut into many steps, on every executor: the same bits as from the sequential one."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
from support.backend_suite import SuiteCase, cases_of
from support.compare import difference
from support.provider_sets import SETS

import sardonyx as ort
from sardonyx.runtime.executor import EXECUTORS

MIXED = [item for item in SETS if item.name in ("device", "fusing")]
EVERY = 12
"""One in so many of the cases with branches is run; their names decide which."""
FEWEST_NODES = 6


def _cases() -> list[SuiteCase]:
    """Cases of more than a few nodes: function bodies written out, and small networks."""
    found = [case for kind in ("node", "pytorch-operator", "simple") for case in cases_of(kind)]
    drawn = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}
    return [
        case
        for case in found
        if zlib.crc32(case.name.encode()) % EVERY == 0 and len(case.proto.graph.node) >= FEWEST_NODES and not case.operators & drawn
    ]


def _results(case: SuiteCase, providers: Any, executor: str) -> list[list[Any]]:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.executor", executor)
    options.inter_op_num_threads = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = str(case.model) if isinstance(case.model, Path) else case.model
    session = ort.InferenceSession(source, options, providers=providers)
    names = [item.name for item in session.get_inputs()]
    return [session.run(None, dict(zip(names, inputs, strict=False))) for inputs, _ in case.data_sets]


@pytest.mark.parametrize("providers", MIXED, ids=lambda item: item.name)
@pytest.mark.parametrize("executor", [name for name in EXECUTORS if name != "sequential"])
def test_results_are_those_of_the_sequential_executor(executor: str, providers: Any) -> None:
    """Whatever runs first."""
    wrong = []
    for case in _cases():
        expected, found = _results(case, providers.make(), "sequential"), _results(case, providers.make(), executor)
        pairs = [pair for left, right in zip(expected, found, strict=True) for pair in zip(left, right, strict=True)]
        wrong += [case.name for left, right in pairs if difference(left, right, 0.0, 0.0) is not None]
    assert not wrong


def test_there_are_cases() -> None:
    """Enough of them, and of several kinds."""
    assert len(_cases()) >= 20
