"""Sizes for the symbolic dimensions of a model's inputs, such that its operators fit one another.

    past, sequence, total         a mask over `total` keys is added to scores over `past + sequence` of them, so
                                  total = past + sequence

Inference finds the shapes of all values as expressions of these symbols. Where an operator needs two of them to be equal, one
symbol is replaced by what the others make of it. The symbols that are left get a size, 1 if possible; sizes under which inference
finds no contradiction and no empty tensor are taken. What inference cannot see a run may still refuse.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from sardonyx.errors import SardonyxError
from sardonyx.ir import Dim, Model, OptionalType, SequenceType, Shape, SparseTensorType, TensorType, Value, ValueType
from sardonyx.ir.shape import at_least_zero, substitute, symbol, symbols_in
from sardonyx.ir.walk import all_nodes
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import infer_graph
from sardonyx.session.draw.equalities import equal_dims

__all__ = ["Sizes", "shape_of", "solve_sizes"]

Sizes: TypeAlias = Mapping[str, Dim]
"""Symbol -> its size."""

_ROUNDS = 12
"""How often equalities are looked for; each round replaces at least one symbol."""
_GUESSES = (1, 2, 8, 16, 32, 64, 28, 128, 224, 256, 299, 384, 512, 640, 1024, 4096, 16_000)
"""Sizes that are tried, one for all symbols but that of the batch: what networks take as the sides of images and lengths."""
_MOST_SUMMED = 2
"""The largest of these at which sums are tried."""
_MOST_SYMBOLS = 5
"""How many symbols may be the sum of two others."""


def solve_sizes(model: Model, inputs: Iterable[Value], fixed: Mapping[str, int]) -> tuple[Sizes, dict[Value, Fact]]:
    """Find sizes for all symbols in the shapes of `inputs`.

    Args:
        model: the model; nothing of it is changed.
        inputs: those of its inputs that a feed needs.
        fixed: symbol -> size, where that is given.

    Returns:
        The sizes, and the facts of all values for them.
    """
    values = list(inputs)
    names = list(dict.fromkeys(name for value in values for dim in shape_of(value.type) or () for name in sorted(symbols_in(dim))))
    bound = _bindings(model, values, names, fixed)
    if any(size > _MOST_SUMMED for size in fixed.values()):
        bound = _with_equation(bound, _hidden_sum(model, values, names), names)
    first: tuple[Sizes, dict[Value, Fact]] | None = None
    for sizes, _ in _candidates(values, names, bound, fixed):
        facts = _facts(model, values, sizes)
        if facts is not None and not _has_empty(facts, sizes):
            return sizes, facts
        first = first or ((sizes, facts) if facts is not None else None)
    sizes = {name: fixed.get(name, 1) for name in names}
    return first or (sizes, {value: Fact(_replaced(value.type, sizes)) for value in values})


def shape_of(kind: ValueType | None) -> Shape | None:
    """Return the shape of a tensor, or of the tensors in an optional or a sequence; None where there is none."""
    while isinstance(kind, (OptionalType, SequenceType)):
        kind = kind.element
    return kind.shape if isinstance(kind, (TensorType, SparseTensorType)) else None


def _bindings(model: Model, values: list[Value], names: list[str], fixed: Mapping[str, int]) -> dict[str, Dim]:
    """Return symbol -> what the others, or a constant, make of it."""
    bound: dict[str, Dim] = dict(fixed)
    for _ in range(_ROUNDS if len(names) > len(fixed) else 0):
        facts = _facts(model, values, bound)
        found = None if facts is None else _equation(model, facts, [name for name in names if name not in bound])
        if found is None:
            break
        bound = _with_binding(bound, *found)
    return bound


def _with_binding(bound: Mapping[str, Dim], name: str, solution: Dim) -> dict[str, Dim]:
    return {other: substitute(dim, {name: solution}) for other, dim in bound.items()} | {name: solution}


def _with_equation(bound: dict[str, Dim], difference: Dim, names: list[str]) -> dict[str, Dim]:
    """Return the bindings with that of a symbol which makes `difference` 0, where one does."""
    found = _solved(substitute(difference, bound), [name for name in names if name not in bound])
    return bound if found is None else _with_binding(bound, *found)


def _hidden_sum(model: Model, values: list[Value], names: list[str]) -> Dim:
    """Return the difference of a symbol and the sum of two others that it has to be; 0 where there is none.

    It is looked for with small sizes, where inference knows the elements of indices.
    """
    for sizes, sums in _candidates(values, names, _bindings(model, values, names, {}), {}):
        if any(isinstance(size, int) and size > _MOST_SUMMED for size in sizes.values()) and not sums:
            break
        facts = _facts(model, values, sizes)
        if facts is not None and not _has_empty(facts, sizes):
            return next((symbol(name) - dim for name, dim in sums.items()), 0)
    return 0


def _equation(model: Model, facts: Mapping[Value, Fact], free: list[str]) -> tuple[str, Dim] | None:
    for node in all_nodes(model):
        for left, right in equal_dims(node, facts):
            found = _solved(left - right, free)
            if found is not None:
                return found
    return None


def _solved(difference: Dim, free: list[str]) -> tuple[str, Dim] | None:
    """Return a symbol for which `difference` = 0 can be solved, and its solution: the last of `free` that is never negative."""
    if not symbols_in(difference) <= set(free):
        return None
    solutions = [(name, _solution(difference, name)) for name in reversed(free) if name in symbols_in(difference)]
    solvable = [(name, solution) for name, solution in solutions if solution is not None and solution != 0]
    return next((pair for pair in solvable if at_least_zero(pair[1])), next(iter(solvable), None))


def _solution(difference: Dim, name: str) -> Dim | None:
    at_0, at_1, at_2 = (substitute(difference, {name: size}) for size in (0, 1, 2))
    factor = at_1 - at_0
    return -at_0 * factor if factor in (1, -1) and at_2 - at_1 == factor else None


def _candidates(
    values: list[Value], names: list[str], bound: Mapping[str, Dim], fixed: Mapping[str, int]
) -> Iterator[tuple[Sizes, dict[str, Dim]]]:
    """Yield sizes for all names, and which of them are taken to be sums of others."""
    batch = next(iter(symbols_in((shape_of(values[0].type) or (0,))[0])), "") if values else ""
    free = [name for name in names if name not in bound]
    lengths = [name for name in free if name != batch]
    no_sums: dict[str, Dim] = {}
    for size in _GUESSES if free else (1,):
        for sums in (no_sums, *(_sums(lengths) if size <= _MOST_SUMMED else ())):
            chosen = {name: 1 if name == batch and len(free) > 1 else size for name in free if name not in sums}
            bindings = {**bound, **sums}
            yield chosen | {name: substitute(substitute(dim, sums), chosen) for name, dim in bindings.items()}, sums
    if len(bound) > len(fixed):
        yield from _candidates(values, names, fixed, fixed)


def _sums(names: list[str]) -> Iterator[dict[str, Dim]]:
    """Yield each way in which one symbol may be the sum of two others, the last ones first."""
    for name in reversed(names[-_MOST_SYMBOLS:]):
        others = [other for other in names[-_MOST_SYMBOLS:] if other != name]
        yield from ({name: symbol(left) + symbol(right)} for left, right in itertools.combinations(others, 2))


def _facts(model: Model, values: list[Value], sizes: Sizes) -> dict[Value, Fact] | None:
    """Return the facts of all values where the symbols have these sizes; None where they contradict one another."""
    overrides = {value: Fact(_replaced(value.type, sizes)) for value in values}
    try:
        return infer_graph(model, overrides=overrides)
    except SardonyxError:
        return None


def _replaced(kind: ValueType | None, sizes: Sizes) -> ValueType | None:
    if isinstance(kind, TensorType) and kind.shape is not None:
        return TensorType(kind.dtype, tuple(substitute(dim, sizes) for dim in kind.shape))
    if isinstance(kind, OptionalType):
        return OptionalType(_replaced(kind.element, sizes))
    return SequenceType(_replaced(kind.element, sizes)) if isinstance(kind, SequenceType) else kind


def _has_empty(facts: Mapping[Value, Fact], sizes: Sizes) -> bool:
    """Return whether a value that is computed has no elements though every size is above 0."""
    if any(size == 0 for size in sizes.values()):
        return False
    return any(_is_empty(fact.shape) for value, fact in facts.items() if value.producer is not None)


def _is_empty(shape: Shape | None) -> bool:
    return bool(shape) and len(shape or ()) > 1 and any(isinstance(dim, int) and dim == 0 for dim in shape or ())
