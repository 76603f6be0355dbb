"""Rewrite rules, passes and operators of other packages, by entry point.

    [project.entry-points."sardonyx.rules"]           [project.entry-points."sardonyx.passes"]
    ours = "our_package.rules:RULES"                  ours = "our_package.passes:MERGE_THINGS"

    [project.entry-points."sardonyx.operators"]
    ours = "our_package.operators:OPERATORS"

An entry point of rules names a Rule or several; one of passes names a pass or several, one of operators an operator or several.
They take part in every session; each rule and pass can be disabled by its name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sardonyx.custom_ops.definition import OperatorSource
from sardonyx.errors import OptimizationError, describe
from sardonyx.forks import without_fork
from sardonyx.installed import installed_points, search_path
from sardonyx.spelling import nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["installed_operators", "installed_passes", "installed_rules", "usable_passes", "usable_rules"]

_NEWEST = 1 << 30
"""A version above every operator set."""
OnError = Callable[[str], None]
"""Told what is wrong with an entry point; it may raise."""

_RULES, _PASSES, _OPERATORS = "sardonyx.rules", "sardonyx.passes", "sardonyx.operators"
_NEEDED = {_RULES: ("name", "replace"), _PASSES: ("name", "run"), _OPERATORS: ("definitions",)}
"""Group -> what its objects have."""


def installed_rules(on_error: OnError) -> tuple[object, ...]:
    """Return the rules of installed packages: what `usable_rules` finds usable is a Rule."""
    return _installed(_RULES, on_error)


def installed_passes(on_error: OnError) -> tuple[object, ...]:
    """Return the passes of installed packages."""
    return _installed(_PASSES, on_error)


def installed_operators(on_error: OnError) -> tuple[OperatorSource, ...]:
    """Return the operators of installed packages."""
    return _installed(_OPERATORS, on_error)


def usable_rules(rules: Iterable[object], on_error: OnError) -> list[Any]:
    """Return those of `rules`, which may be anything, that can take part; others are reported."""
    return [rule for rule in rules if _is_usable(rule, "rule", _problem_of_rule, on_error)]


def usable_passes(passes: Iterable[object], on_error: OnError) -> list[Any]:
    """Return those of `passes`, which may be anything, that can take part; others are reported."""
    return [item for item in passes if _is_usable(item, "pass", _problem_of_pass, on_error)]


def _is_usable(item: object, kind: str, problem_of: Callable[[object], str | None], on_error: OnError) -> bool:
    try:
        problem = problem_of(item)
    except Exception as error:  # noqa: BLE001  a plug-in's object may do anything
        problem = f"raises when its attributes are read: {describe(error)}"
    if problem is not None:
        on_error(f"the {kind} {getattr(item, 'name', item)!r:.200} {problem}")
    return problem is None


def _problem_of_rule(rule: Any) -> str | None:
    with without_fork():
        from sardonyx.ops.schema_table import table
        from sardonyx.ops.schemas import find_schema, known_domains, unknown_operator
        from sardonyx.optimize.contract import Level
        from sardonyx.optimize.pattern import compile_pattern, operators_of

    problem = _problem_of_pass(rule, ("pattern", "replace", "check"))
    if problem is None and not isinstance(rule.level, Level):
        return f"has the level {rule.level!r}; expected one of sardonyx.optimize.contract.Level"
    if problem is not None:
        return problem
    for (domain, op_type), attributes in sorted(operators_of(compile_pattern(rule.pattern)).items()):
        if domain not in known_domains():
            continue
        newest = find_schema(domain, op_type, _NEWEST)
        if newest is None:
            return f"can never match: {unknown_operator(domain, op_type, table().newest(domain))}"
        older = [table().find(domain, op_type, version) for version in table().versions(domain, op_type)]
        schemas = [newest, *(schema for schema in older if schema is not None)]
        known = sorted({name for schema in schemas for name in schema.attributes})
        unknown = sorted(attributes - set(known))
        if unknown and not any(schema.is_open for schema in schemas):
            return f"can never match: {op_type} has no attribute {unknown[0]}; {_which_of(known, unknown[0])}"
    return None


def _which_of(known: Sequence[str], misspelt: str) -> str:
    """Say which attributes there are, the one that is probably meant where there is one."""
    meant = nearest(misspelt, known)
    if meant:
        return f"did you mean {meant}?"
    return f"it has {', '.join(known)}" if known else "it has none"


def _problem_of_pass(item: Any, functions: Sequence[str] = ("run",)) -> str | None:
    with without_fork():
        from sardonyx.optimize.pipeline import known_names

    if not isinstance(item.name, str) or not item.name:
        return "has no name; reports list it by that, and users switch it off"
    if item.name in known_names():
        return "has the name of a built-in rule or pass; give it one of its own"
    missing = [name for name in functions if not callable(getattr(item, name, None))]
    if missing:
        return f"has no function {', '.join(missing)}"
    tolerance = getattr(item, "tolerance", 0.0)
    return None if isinstance(tolerance, (int, float)) else f"has the tolerance {tolerance!r}; expected a number"


def _installed(group: str, on_error: OnError) -> tuple[Any, ...]:
    items, errors = _loaded(group, search_path())
    for message in errors:
        on_error(message)
    return items


@functools.lru_cache(maxsize=8)
def _loaded(group: str, path: tuple[str, ...]) -> tuple[tuple[object, ...], tuple[str, ...]]:
    """Return what the packages on `path`, the `search_path`, name in a group, and what is wrong.

    A change of the path is a new search.
    """
    items: list[object] = []
    errors: list[str] = []
    for point in installed_points(group, path):
        try:
            items += _load(group, point)
        except OptimizationError as error:
            errors.append(str(error))
    return tuple(items), tuple(errors)


def _load(group: str, point: EntryPoint) -> list[object]:
    package = point.dist.name if point.dist is not None else "an installed package"
    named = f"{point.value}, which {package} names as {point.name!r} of {group}"
    try:
        with without_fork():
            loaded = point.load()
    except Exception as error:
        text = f"{named}, cannot be loaded: {describe(error)}; repair or uninstall the package"
        raise OptimizationError(text) from error
    items = list(loaded) if isinstance(loaded, (list, tuple)) else [loaded]
    for item in items:
        if not all(hasattr(item, name) for name in _NEEDED[group]) or not isinstance(getattr(item, "name", ""), str):
            raise OptimizationError(f"{named}, holds {item!r}, which is none; repair or uninstall the package")
    return items
