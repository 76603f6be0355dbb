"""Write docs/operators.md: every operator, and what there is of it.

python docs/generate_operators.py            writes the page
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx

import sardonyx.ops.shapes
import sardonyx.providers.cpu.kernels
import sardonyx.providers.reference.kernels  # noqa: F401  registers the kernels, as the two above do theirs
from sardonyx.ops.fact import shape_functions_of
from sardonyx.ops.families import family_of
from sardonyx.ops.schemas import find_schema
from sardonyx.ops.schemas_contrib import CONTRIB_SCHEMAS
from sardonyx.partition.layout import NHWC_DOMAIN
from sardonyx.providers.cpu.claims import find_claim
from sardonyx.providers.reference.registry import kernels_of

PAGE = Path(__file__).with_name("operators.md")
HEAD = """# Operators

Written by `docs/generate_operators.py` from the registries and from onnx {version}; do not edit.

- **schema**: the opsets with which a version of the operator begins; in brackets where the standard has dropped it.
- **shapes**, **reference**: the opsets with which a meaning begins for the shape function and for the NumPy kernel; a meaning lasts
  until the next. *body*: the operator runs through the function body that the standard gives. *derivative*: a pass puts the
  derivative's operators in its place.
- **CPU**: whether the CPU provider compiles it; for which types and shapes, `session.explain()` shows.
- **cases**: how many node cases of onnx's backend test it has, all of which run in `tests/conformance/`; **tests** names the
  family, whose tests are `tests/**/test_<family>.py`.
"""
COLUMNS = ("operator", "schema", "shapes", "reference", "CPU", "cases", "tests")
EXPANDED = {("ai.onnx.preview.training", "Gradient")}
"""Operators that a pass replaces before anything runs."""


def operators() -> dict[tuple[str, str], list[int]]:
    """(domain, operator) -> the opsets with which its versions begin; negative for one that drops it."""
    found: dict[tuple[str, str], list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        since = -schema.since_version if schema.deprecated else schema.since_version
        found.setdefault((schema.domain, schema.name), []).append(since)
    for (domain, name), own in CONTRIB_SCHEMAS.items():
        found.setdefault((domain, name), []).append(own.since_version)
    return {key: sorted(set(versions), key=abs) for key, versions in sorted(found.items())}


def case_counts() -> Counter[tuple[str, str]]:
    """(domain, operator) -> how many node cases begin with it, function bodies written out excepted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    first = [case.model.graph.node[0] for case in cases if "_expanded" not in case.name]
    return Counter((node.domain, node.op_type) for node in first)


def rows() -> Iterator[tuple[str, tuple[str, ...]]]:
    """(domain, cells) for each operator."""
    counts = case_counts()
    for (domain, name), versions in operators().items():
        schemas = ", ".join(f"({-version})" if version < 0 else str(version) for version in versions)
        shapes = ", ".join(str(entry.since) for where, entry in shape_functions_of(name) if where == domain)
        homes = (domain, NHWC_DOMAIN) if domain == "" else (domain,)
        cpu = "yes" if any(find_claim(home, name) is not None for home in homes) else ""
        count = str(counts[domain, name] or "")
        yield domain, (name, schemas, shapes, _reference(domain, name), cpu, count, family_of(name) or "")


def _reference(domain: str, name: str) -> str:
    kernels = ", ".join(str(kernel.since) for kernel in kernels_of(name) if kernel.domain == domain)
    schema = find_schema(domain, name, 1 << 30)
    if kernels or (domain, name) in EXPANDED:
        return kernels or "*derivative*"
    return "*body*" if schema is not None and schema.has_function else ""


def page() -> str:
    """The whole page."""
    by_domain: dict[str, list[tuple[str, ...]]] = {}
    for domain, cells in rows():
        by_domain.setdefault(domain, []).append(cells)
    text = [HEAD.format(version=onnx.__version__)]
    for domain, table in by_domain.items():
        without = [cells[0] for cells in table if not cells[3] and not cells[1].startswith("(")]
        text.append(f"\n## {domain or 'ai.onnx'}\n\n{len(table)} operators, {len(table) - len(without)} of which run.\n\n")
        text.append("\n".join(f"| {' | '.join(cells)} |" for cells in (COLUMNS, ("---",) * len(COLUMNS), *table)) + "\n")
    return "".join(text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
