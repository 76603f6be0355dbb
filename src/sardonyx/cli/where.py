"""`sardonyx where OPERATOR`: the lines that define it, in every package."""

from __future__ import annotations

import difflib
import inspect as python_inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click

import sardonyx
import sardonyx.ops.shapes
import sardonyx.providers.reference.kernels  # registers the kernels
from sardonyx.cli.console import fail, json_option, print_json, print_table, readable_errors
from sardonyx.ops.fact import shape_functions_of
from sardonyx.ops.families import FAMILIES, family_of
from sardonyx.ops.schemas import find_schema
from sardonyx.providers.reference.registry import kernels_of


@click.command()
@click.argument("operator")
@json_option
def where(operator: str, as_json: bool) -> None:
    """Show file and line of OPERATOR's schema, shape functions, rules, passes and kernels of every provider."""
    with readable_errors():
        rows = locate(operator)
    if not rows:
        known = sorted(name for names in FAMILIES.values() for name in names.split())
        close = ", ".join(difflib.get_close_matches(operator, known, 3))
        fail(f"unknown operator {operator!r}" + (f"; did you mean {close}?" if close else ""))
    if as_json:
        print_json([{"what": what, "where": place} for what, place in rows])
    else:
        print_table(f"{operator} (family {family_of(operator) or '?'})", ("what", "where"), rows)


def locate(operator: str) -> list[tuple[str, str]]:
    """Return (what, file:line) for everything that names `operator`; empty where nothing does."""
    rows = [*_schema(operator), *_functions(operator), *_mentions(operator)]
    family = Path(family_of(operator) or "")
    return [*rows, ("tests", f"tests/**/{family.with_name(f'test_{family.name}.py')}")] if rows and family.name else rows


def _schema(operator: str) -> Iterator[tuple[str, str]]:
    for domain in ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft"):
        schema = find_schema(domain, operator, 1 << 30)
        if schema is not None:
            yield f"schema, {domain or 'ai.onnx'}", f"the onnx package: {operator}-{schema.since_version}"


def _functions(operator: str) -> Iterator[tuple[str, str]]:
    for domain, entry in shape_functions_of(operator):
        yield f"shape function, {domain or 'ai.onnx'} since {entry.since}", _place(entry.function)
    for kernel in kernels_of(operator):
        yield f"reference kernel, {kernel.domain or 'ai.onnx'} since {kernel.since}", _place(kernel.function)


def _place(function: Callable[..., object]) -> str:
    function = python_inspect.unwrap(function)
    path = Path(python_inspect.getsourcefile(function) or "?")
    return f"{_shown(path)}:{python_inspect.getsourcelines(function)[1]}"


def _mentions(operator: str) -> Iterator[tuple[str, str]]:
    """Yield where rules, passes and other providers name `operator` literally: `"Conv"`, or `op.Conv(` in a pattern."""
    root = Path(sardonyx.__file__).parent
    wanted = re.compile(rf"""["']{re.escape(operator)}["']|\bop\.{re.escape(operator)}\(""")
    packages = {
        "rule": root / "optimize" / "rules",
        "pass": root / "optimize" / "passes",
        "provider": root / "providers",
        "partition": root / "partition",
    }
    for what, folder in packages.items():
        for path in sorted(folder.rglob("*.py")):
            if "reference" in path.parts:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if wanted.search(line):
                    yield f"{what} {path.stem}", f"{_shown(path)}:{number}"
                    break


def _shown(path: Path) -> str:
    root = Path(sardonyx.__file__).parent.parent
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
