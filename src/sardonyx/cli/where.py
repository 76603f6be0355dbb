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
from sardonyx.cli.completions import complete_operators
from sardonyx.cli.console import fail, json_option, print_json, print_pairs, readable_errors
from sardonyx.ops.fact import shape_functions_of
from sardonyx.ops.families import FAMILIES, family_of
from sardonyx.ops.schemas import find_schema
from sardonyx.providers.reference.registry import kernels_of
from sardonyx.spelling import nearest

_SCHEMA = "schema"
_ANY = 1 << 30
"""A version beyond all that are known."""
_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft")


@click.command(short_help="Show file and line of everything that defines OPERATOR.")
@click.argument("operator", shell_complete=complete_operators)
@json_option
def where(operator: str, as_json: bool) -> None:
    """Show file and line of OPERATOR's schema, shape functions, rules, passes and kernels of every provider.

    OPERATOR may be in any case, with its domain (ai.onnx.ml.ZipMap) and a version of the operator set (Conv-16), which leaves what
    that version reads.
    """
    with readable_errors():
        domain, name, version = resolve(operator)
        rows = locate(name, domain, version) if name else []
    if not name:
        fail("name an operator, such as Conv or com.microsoft.FusedConv; docs/operators.md lists them all")
    if not rows:
        close = ", ".join(_alike(name, domain))
        fail(f"unknown operator {operator!r}" + (f"; did you mean {close}?" if close else ""))
    if version is not None and not any(what.startswith(_SCHEMA) for what, _ in rows):
        fail(f"there is no {name} in version {version}; without -{version} all that defines {name} is shown")
    if as_json:
        print_json([{"what": what, "where": place} for what, place in rows])
    else:
        shown = (name if domain is None else f"{domain or 'ai.onnx'}.{name}") + ("" if version is None else f"-{version}")
        click.secho(f"{shown} (family {family_of(name) or '?'})", bold=True)
        print_pairs([_shown_pair(what, place) for what, place in rows])


def _shown_pair(what: str, place: str) -> tuple[str, str]:
    """Return what a place is and the place; a name that the file has already is not said twice."""
    kind, _, detail = what.partition(", ")
    if detail:
        return kind, f"{place}  {detail}"
    kind, _, name = what.partition(" ")
    return kind, place if not name or Path(place.partition(":")[0]).stem == name else f"{place}  {name}"


def resolve(text: str) -> tuple[str | None, str, int | None]:
    """Return of a text in any case the domain and the version, None where they are left out, and the name as it is spelt."""
    text, _, version = re.sub(r"-(\d{1,9})$", r"@\1", text.strip()).partition("@")
    domain, _, name = text.rpartition(".")
    spelt = {known.lower(): known for known in known_operators()}
    where = None if not domain else "" if domain.lower() == "ai.onnx" else domain.lower()
    return where, spelt.get(name.lower(), name), int(version) if version else None


def known_operators() -> list[str]:
    """Return the names of all operators, of every domain."""
    return sorted(name for names in FAMILIES.values() for name in names.split())


def _alike(name: str, domain: str | None) -> list[str]:
    """Return operators whose names are like one, in any case; of a domain like the one given, where there are some."""
    spelt = {known.lower(): known for known in known_operators()}
    near = [spelt[found] for found in difflib.get_close_matches(name.lower(), spelt, 3)]
    close = nearest(domain, [known for known in _DOMAINS if known]) if domain else ""
    return [f"{close}.{found}" for found in near if close and find_schema(close, found, _ANY) is not None] or near


def locate(operator: str, domain: str | None = None, version: int | None = None) -> list[tuple[str, str]]:
    """Return (what, file:line) for everything that names `operator`; empty where nothing does.

    Args:
        operator: the name.
        domain: of which domain only; "" is ai.onnx, None all.
        version: of schemas, shape functions and kernels only those by which this version of the operator set is read.
    """
    defined = [*_schema(operator, domain, version), *_functions(operator, domain, version)]
    if domain is not None and not defined:
        return []
    rows = [*defined, *_mentions(operator)]
    family = Path(family_of(operator) or "")
    return [*rows, ("tests", f"tests/**/{family.with_name(f'test_{family.name}.py')}")] if rows and family.name else rows


def _schema(operator: str, only: str | None, version: int | None) -> Iterator[tuple[str, str]]:
    for domain in _DOMAINS if only is None else (only,):
        schema = find_schema(domain, operator, _ANY if version is None else version)
        if schema is not None:
            yield f"{_SCHEMA}, {domain or 'ai.onnx'}", f"the onnx package: {operator}-{schema.since_version}"


def _functions(operator: str, only: str | None, version: int | None) -> Iterator[tuple[str, str]]:
    shapes = [(domain, entry.since, entry.function) for domain, entry in shape_functions_of(operator)]
    kernels = [(kernel.domain, kernel.since, kernel.function) for kernel in kernels_of(operator)]
    for what, entries in (("shape function", shapes), ("reference kernel", kernels)):
        for domain, since, function in entries:
            later = [other for place, other, _ in entries if place == domain and version is not None and since < other <= version]
            if (only is None or domain == only) and (version is None or since <= version) and not later:
                yield f"{what}, {domain or 'ai.onnx'} since {since}", _place(function)


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
