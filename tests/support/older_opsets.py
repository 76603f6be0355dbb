"""Today's node cases under other opsets, as onnx.version_converter makes them."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import onnx
from onnx import version_converter
from support.backend_suite import SuiteCase, cases_of

__all__ = ["conversions", "convertible", "meanings_of"]

_WRONGLY_CONVERTED = (
    (r"test_averagepool.*_dilations.*", range(1, 19), "keeps `dilations`, which AveragePool has from opset 19 on"),
    (r"test_(log)?softmax_axis_[01]", range(1, 13), "keeps `axis`, which cuts the shape in two before opset 13"),
    (r"test_prelu_broadcast", range(1, 7), "keeps a slope that is broadcast, as PRelu does from opset 7 on"),
    (r"test_scan9_.*", range(1, 9), "keeps inputs without the batch that Scan has at opset 8"),
    (r"test_scan_sum", range(9, 99), "keeps inputs with the batch that Scan has at opset 8 only"),
    (r"test_flexattention_.*", range(1, 7), "leaves the nodes of subgraphs as they are"),
)
"""Cases, opsets and what the converter does wrong there, so that the model means something else or is invalid."""
_DRAWN = re.compile(r"test_bernoulli.*")


def convertible() -> list[SuiteCase]:
    """The node cases of operators of ai.onnx whose results are not drawn, function bodies written out excepted."""
    return [
        case
        for case in cases_of("node")
        if "_expanded" not in case.name and not _DRAWN.fullmatch(case.name) and _version(case.model) is not None
    ]


def conversions(case: SuiteCase, versions: Iterable[int]) -> Iterator[SuiteCase]:
    """The case under each of `versions` that onnx converts it to rightly."""
    own = _version(case.model)
    for version in versions:
        if version == own or _is_wrong(case.name, version):
            continue
        try:
            model = version_converter.convert_version(case.model, version)
        except (RuntimeError, ValueError):
            continue
        yield dataclasses.replace(case, name=f"{case.name}@{version}", model=model)


def meanings_of(case: SuiteCase) -> Sequence[int]:
    """The opsets, other than the case's own, with which a version of its first operator begins."""
    node = case.model.graph.node[0]
    return sorted(_history().get((node.domain, node.op_type), set()) - {_version(case.model)})


@functools.cache
def _history() -> dict[tuple[str, str], set[int]]:
    """(domain, operator) -> the opsets with which its versions begin."""
    found: dict[tuple[str, str], set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        found.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    return found


def _version(model: Any) -> int | None:
    return next((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), None)


def _is_wrong(name: str, version: int) -> bool:
    return any(re.fullmatch(pattern, name) and version in versions for pattern, versions, _ in _WRONGLY_CONVERTED)
