"""What symbolic dimensions are in one binding."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from sardonyx.codegen.float_words import float_word
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Expr, Shape
from sardonyx.ir.shape import evaluate, symbols_in

__all__ = ["Sizes", "first_alike", "solvable_symbols", "solve"]


class Sizes:
    """Call it with a dimension to get its value; each expression is evaluated once."""

    __slots__ = ("_known", "_symbols")

    def __init__(self, symbols: dict[str, int]) -> None:
        """Make sizes from the value of each symbol."""
        self._symbols = symbols
        self._known: dict[Expr, int] = {}

    @property
    def symbols(self) -> dict[str, int]:
        """The value of each symbol."""
        return self._symbols

    def __call__(self, dim: Dim) -> int:
        """Return the value of `dim`."""
        if type(dim) is int or not isinstance(dim, Expr):
            return dim
        found = self._known.get(dim)
        if found is None:
            found = self._known[dim] = evaluate(dim, self._symbols)
        return found

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """Return the value of each dimension."""
        return tuple([dim if type(dim) is int else self(dim) for dim in shape])

    def float_word(self, dim: Dim) -> int:
        """Return the value of `dim` as a parameter of a kernel that is a float64."""
        return float_word(self(dim))

    def product(self, dims: Sequence[Dim]) -> int:
        """Return the product of the values of `dims`."""
        result = 1
        for dim in dims:
            result *= dim if type(dim) is int else self(dim)
        return result


def first_alike(items: Sequence[Hashable]) -> list[int]:
    """Return for each item the place of the first one that equals it."""
    places: dict[Hashable, int] = {}
    return [places.setdefault(item, place) for place, item in enumerate(items)]


def solvable_symbols(shapes: Sequence[Shape]) -> set[str]:
    """Return the symbols that the sizes of tensors of these shapes decide: those that stand alone as a dimension."""
    return {dim.name for shape in shapes for dim in shape if isinstance(dim, Expr) and dim.name is not None}


def solve(
    names: Sequence[str],
    declared: Sequence[Shape],
    given: Sequence[tuple[int, ...] | None],
    known: Mapping[str, int] | None = None,
    alike: Sequence[int] | None = None,
) -> Sizes:
    """Find the symbols from the shapes that inputs have.

    Args:
        names: the inputs' names, for messages.
        declared: their shapes as compiled.
        given: their shapes now.
        known: symbols that no input shows.
        alike: what `first_alike` gives for `declared`, where that is known.

    Raises:
        InvalidArgument: a rank or a size contradicts what was compiled, or two inputs contradict one another.
    """
    symbols: dict[str, int] = dict(known or {})
    checks: list[tuple[str, Expr, int]] = []
    for name, shape, sizes, first in zip(names, declared, given, alike or range(len(names)), strict=True):
        if sizes is not given[first] and sizes == given[first] and sizes is not None:
            continue
        if sizes is None or len(sizes) != len(shape):
            raise InvalidArgument(f"{name} was compiled with shape {_shown(shape)}, got {sizes}")
        for dim, size in zip(shape, sizes, strict=True):
            if not isinstance(dim, Expr):
                if dim != size:
                    raise InvalidArgument(f"{name} was compiled with shape {_shown(shape)}, got {sizes}")
            elif dim.name is not None and dim.name not in symbols:
                symbols[dim.name] = size
            else:
                checks.append((name, dim, size))
    result = Sizes(symbols)
    for name, dim, size in checks:
        if symbols_in(dim) <= symbols.keys() and result(dim) != size:
            found = _solve_by_elements(names, declared, given, known)
            if found is None:
                raise InvalidArgument(f"{name} has a dimension {size} where the other inputs' sizes make {dim} = {result(dim)}")
            return found
    return result


def _solve_by_elements(
    names: Sequence[str],
    declared: Sequence[Shape],
    given: Sequence[tuple[int, ...] | None],
    known: Mapping[str, int] | None,
) -> Sizes | None:
    """Return the symbols by the inputs that have elements; None where one without any would have some by them.

    The scan outputs of a Loop without iterations are 0 along each axis that is no number, as in ONNX Runtime.
    """
    empty = [place for place, sizes in enumerate(given) if sizes is not None and 0 in sizes]
    if not empty:
        return None
    full = [place for place in range(len(given)) if place not in empty]
    solved = solve([names[place] for place in full], [declared[place] for place in full], [given[place] for place in full], known)
    symbols, shown = solved.symbols, set(solved.symbols)
    pairs = [pair for place in empty for pair in zip(declared[place], given[place] or (), strict=True)]
    for dim, size in pairs:
        if isinstance(dim, Expr) and dim.name is not None and dim.name not in shown:
            symbols[dim.name] = max(size, symbols.get(dim.name, 0))
    for dim, size in pairs:
        if not symbols_in(dim) <= symbols.keys() or size not in (0, solved(dim)):
            return None
    return None if any(solved.product(declared[place]) for place in empty) else solved


def _shown(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))})"
