"""Run cases of the suite through sessions and say how they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.backend_suite import SuiteCase
from support.compare import difference

import sardonyx as ort
from sardonyx.errors import SardonyxError

__all__ = ["LEVELS", "failure_of", "open_session", "run_case"]

LEVELS = {"off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL, "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL}
"""Optimization off and at its highest."""


def open_session(case: SuiteCase, providers: Any, level: ort.GraphOptimizationLevel) -> ort.InferenceSession:
    """A session of the case's model; `providers` is what a session takes, hence Any."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    source = str(case.model) if isinstance(case.model, Path) else case.model
    return ort.InferenceSession(source, options, providers=providers)


def run_case(case: SuiteCase, providers: Any, level: ort.GraphOptimizationLevel) -> list[list[Any]]:
    """The outputs of a case for each of its data sets, by their ONNX type."""
    session = open_session(case, providers, level)
    names = [item.name for item in session.get_inputs()]
    return [session.run(None, dict(zip(names, inputs, strict=False))) for inputs, _ in case.data_sets]


def failure_of(case: SuiteCase, providers: Any, level: ort.GraphOptimizationLevel) -> str | None:
    """In which way a case fails, or None where it passes. Errors that are not sardonyx's own pass through: they are never right."""
    try:
        results = run_case(case, providers, level)
    except SardonyxError as error:
        return f"{type(error).__name__}: {error}"
    for number, (found, (_, expected)) in enumerate(zip(results, case.data_sets, strict=True)):
        if len(found) < len(expected):
            return f"data set {number}: {len(found)} outputs, expected {len(expected)}"
        for index, (item, other) in enumerate(zip(expected, found, strict=False)):
            text = difference(item, other, case.rtol, case.atol)
            if text is not None:
                return f"data set {number}, output {index}: {text}"
    return None
