"""Every rewrite in the cases of onnx.backend.test is compared with what it replaces, and every pass on the whole model.

`benchmarks/verify_rewrites.py` does the same for any models. Cases of one node, which nothing rewrites, are sampled.
"""

from __future__ import annotations

import functools
import zlib
from pathlib import Path

import pytest
from support.backend_suite import SuiteCase, cases_of

from sardonyx.formats.onnx import load
from sardonyx.optimize.contract import Level
from sardonyx.optimize.helpers.quantized import INTEGER_OPERATORS
from sardonyx.optimize.pipeline import optimize
from sardonyx.optimize.target import Target
from sardonyx.providers.reference.provider import evaluate
from sardonyx.providers.reference.whole import run_model

INTEGERS = Target(frozenset(operator.op_type for operator in INTEGER_OPERATORS))
"""A provider with kernels for quantized operators, so that the rules which make these are compared too."""
LIGHT = ("test_squeezenet", "test_shufflenet", "test_resnet50")
PARTS = 8
EVERY = 10
"""One in so many of the cases of one node is taken."""


@functools.cache
def chosen() -> tuple[tuple[SuiteCase, ...], ...]:
    """The cases in parts."""
    found = [case for kind in ("node", "model", "pytorch-converted", "pytorch-operator") for case in cases_of(kind)]
    kept = [case for case in found if len(case.proto.graph.node) > 1 or zlib.crc32(case.name.encode()) % EVERY == 0]
    return tuple(tuple(kept[part::PARTS]) for part in range(PARTS))


def problems_of(case: SuiteCase) -> list[str]:
    """What changes results while a case is optimized, or cannot be compared although its inputs are tensors."""
    model = load(str(case.model) if isinstance(case.model, Path) else case.model)
    known = ["no random one can be drawn"]
    if any(node.op_type == "Bernoulli" for node in model.graph):
        known.append("the results differ from run to run")
    report = optimize(model, Level.ALL, evaluate=evaluate, target=INTEGERS, verify=run_model)
    odd = [f"{name}: {reason}" for name, reason in report.unverified.items() if not any(text in reason for text in known)]
    return [f"{case.name}: {text}" for text in [*map(str, report.problems), *odd]]


@pytest.mark.parametrize("part", range(PARTS))
def test_rewrites_in_the_cases_keep_results(part: int) -> None:
    """No rule and no pass changes what a case computes."""
    assert [text for case in chosen()[part] for text in problems_of(case)] == []


@pytest.mark.parametrize("name", LIGHT)
def test_rewrites_in_a_network_keep_results(name: str) -> None:
    """Nor what a network of the package computes."""
    assert [text for case in cases_of("light") if case.name == name for text in problems_of(case)] == []
