"""Dimensions: integers, and symbolic expressions with the arithmetic that shape functions need.

    batch = symbol("batch")
    (2 * batch + 6) // 2        ->  batch + 3
    shape = (batch, 3, 224)     a shape is a tuple of dimensions; None stands for an unknown rank

An `Expr` is a polynomial with integer coefficients over atoms; an atom is a named symbol or one of floordiv, mod, max, min of two
dimensions, or mul of two whose product has too many terms to write it out. The polynomial form is canonical, so equal polynomials
compare equal whatever the order of the operations that made them, as long as none is too long. Symbols stand for sizes: they are
at least 0, and a quotient such as x // x assumes x > 0. Arithmetic that ends in a constant returns an `int`. A dimension about
which nothing is known is an anonymous symbol, different from every other.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

__all__ = [
    "FUNCTIONS",
    "Dim",
    "Expr",
    "Shape",
    "anonymous",
    "at_least_zero",
    "at_most",
    "ceil_div",
    "evaluate",
    "is_anonymous",
    "maximum",
    "minimum",
    "product",
    "substitute",
    "symbol",
    "symbols_in",
]


class _Atom:
    """A symbol (`kind` is "symbol"), or floordiv, mod, max, min, mul of two dimensions; equal ones may be two objects."""

    __slots__ = ("_hash", "key", "kind", "left", "name", "right", "weight")

    def __init__(self, kind: str, name: str, left: Dim, right: Dim) -> None:
        self.kind, self.name, self.left, self.right = kind, name, left, right
        self.key = name if kind == "symbol" else f"{kind}({left}, {right})"
        self.weight = 1 if kind == "symbol" else 1 + _weight_of(left) + _weight_of(right)
        self._hash = hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Atom) and self.key == other.key

    def __lt__(self, other: _Atom) -> bool:
        return self.key < other.key


_Monomial: TypeAlias = tuple[tuple[_Atom, int], ...]
_Terms: TypeAlias = dict[_Monomial, int]
_MOST_WRITTEN = 2048
"""Weight of a product that is written out: k sums of n symbols have n to the power of k terms."""


class _Unknown:
    """What has not been found out yet."""

    __slots__ = ()


_UNKNOWN = _Unknown()


class Expr:
    """A polynomial over symbols; immutable, hashable, and closed under + - * // % with `int` and `Expr`."""

    __slots__ = ("_hash", "_name", "_terms", "_weight")

    def __init__(self, terms: _Terms) -> None:
        self._terms = terms
        self._weight = 0
        self._name: str | _Unknown | None = _UNKNOWN
        self._hash = hash(frozenset(terms.items()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self._terms == other._terms

    def __add__(self, other: Dim) -> Dim:
        terms = dict(self._terms)
        for monomial, factor in _terms_of(other).items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return _dim(terms)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return _dim({monomial: -factor for monomial, factor in self._terms.items()})

    def __sub__(self, other: Dim) -> Dim:
        return self + (-other)

    def __rsub__(self, other: int) -> Dim:
        return -self + other

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            return self if other == 1 else _dim({monomial: factor * other for monomial, factor in self._terms.items()})
        factors = _terms_of(other)
        if self.weight * len(factors) + _weight_of(other) * len(self._terms) > _MOST_WRITTEN:
            return _atom_dim("mul", *sorted((self, other), key=str))
        terms: _Terms = {}
        for (left, a), (right, b) in itertools.product(self._terms.items(), factors.items()):
            monomial = _multiply(left, right)
            terms[monomial] = terms.get(monomial, 0) + a * b
        return _dim(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return _floor_div(self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return _floor_div(other, self)

    def __mod__(self, other: Dim) -> Dim:
        return _mod(self, other)

    def __rmod__(self, other: int) -> Dim:
        return _mod(other, self)

    def __str__(self) -> str:
        ordered = sorted(self._terms.items(), key=lambda item: (not item[0], [(atom.key, power) for atom, power in item[0]]))
        text = ""
        for monomial, factor in ordered:
            body = "*".join(atom.key if power == 1 else f"{atom.key}^{power}" for atom, power in monomial)
            size = abs(factor)
            piece = str(size) if not body else body if size == 1 else f"{size}*{body}"
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {piece}" if text else piece if factor > 0 else f"-{piece}"
        return text

    __repr__ = __str__

    @property
    def terms(self) -> Iterable[tuple[_Monomial, int]]:
        """The polynomial: products of atoms with their powers, and the factor of each."""
        return self._terms.items()

    @property
    def weight(self) -> int:
        """How much it takes to write the expression: the symbols and operations in it, powers counted out."""
        if not self._weight:
            self._weight = sum(sum(atom.weight * power for atom, power in monomial) or 1 for monomial in self._terms)
        return self._weight

    @property
    def name(self) -> str | None:
        """The symbol's name where the expression is a single symbol, else None."""
        if isinstance(self._name, _Unknown):
            self._name = _name_of(self._terms)
        return self._name


Dim: TypeAlias = int | Expr
"""One dimension."""
Shape: TypeAlias = tuple[Dim, ...]
"""The dimensions of a tensor whose rank is known."""

_ANONYMOUS = itertools.count()


def symbol(name: str) -> Expr:
    """Return the dimension called `name`, any text but one that begins with "?" (those are anonymous)."""
    return _new_symbol(name) if name.startswith("?") else _known_symbol(name)


def anonymous() -> Expr:
    """Return a dimension about which nothing is known, different from every other."""
    return _new_symbol(f"?{next(_ANONYMOUS)}")


def _new_symbol(name: str) -> Expr:
    return Expr({((_Atom("symbol", name, 0, 0), 1),): 1})


_known_symbol = functools.lru_cache(maxsize=4096)(_new_symbol)  # anonymous ones never come again, and would fill it


def is_anonymous(dim: Dim) -> bool:
    """Return whether `dim` is, or contains, a dimension about which nothing is known."""
    return isinstance(dim, Expr) and any(name.startswith("?") for name in symbols_in(dim))


def symbols_in(dim: Dim) -> set[str]:
    """Return the names of all symbols in `dim`."""
    if not isinstance(dim, Expr):
        return set()
    names = set()
    for atom in _atoms(dim):
        names |= {atom.name} if atom.kind == "symbol" else symbols_in(atom.left) | symbols_in(atom.right)
    return names


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of `dims`; 1 for none."""
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def ceil_div(dividend: Dim, divisor: Dim) -> Dim:
    """Return `dividend / divisor`, rounded up."""
    return -((-dividend) // divisor)


def maximum(left: Dim, right: Dim) -> Dim:
    """Return the larger of two dimensions."""
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    difference = left - right
    if at_least_zero(difference):
        return left
    if at_least_zero(-difference):
        return right
    return _atom_dim("max", *sorted((left, right), key=str))


def minimum(left: Dim, right: Dim) -> Dim:
    """Return the smaller of two dimensions."""
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right)
    difference = left - right
    if at_least_zero(difference):
        return right
    if at_least_zero(-difference):
        return left
    return _atom_dim("min", *sorted((left, right), key=str))


def at_least_zero(dim: Dim) -> bool:
    """Return whether `dim` is at least 0 for all sizes, as far as the signs of its coefficients show."""
    if isinstance(dim, int):
        return dim >= 0
    return all(factor >= 0 for factor in dim._terms.values()) and all(
        atom.kind == "symbol"
        or (atom.kind == "max" and (at_least_zero(atom.left) or at_least_zero(atom.right)))
        or (atom.kind in ("min", "floordiv", "mod", "mul") and at_least_zero(atom.left) and at_least_zero(atom.right))
        for atom in _atoms(dim)
    )


def at_most(left: Dim, right: Dim) -> bool:
    """Return whether `left <= right` for all sizes, as far as signs and a minimum on the left show."""
    if at_least_zero(right - left):
        return True
    if not isinstance(left, Expr) or len(left._terms) != 1:
        return False
    ((monomial, factor),) = left._terms.items()
    if factor != 1 or len(monomial) != 1 or monomial[0][1] != 1 or monomial[0][0].kind != "min":
        return False
    atom = monomial[0][0]
    return at_most(atom.left, right) or at_most(atom.right, right)


def substitute(dim: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """Return `dim` with each symbol that `sizes` names replaced; simplified again."""
    if not isinstance(dim, Expr):
        return dim
    total: Dim = 0
    for monomial, factor in dim._terms.items():
        term: Dim = factor
        for atom, power in monomial:
            replaced = _replace_atom(atom, sizes)
            for _ in range(power):
                term = term * replaced
        total = total + term
    return total


def evaluate(dim: Dim, sizes: Mapping[str, int]) -> int:
    """Return the value of `dim`; raises KeyError naming the first symbol that `sizes` lacks."""
    if not isinstance(dim, Expr):
        return dim
    with contextlib.suppress(KeyError):
        return _value(dim, sizes)
    result = substitute(dim, sizes)
    if isinstance(result, Expr):
        raise KeyError(min(symbols_in(result)))
    return result


def _value(dim: Dim, sizes: Mapping[str, int]) -> int:
    """Return the value of `dim`; raises KeyError where `sizes` lacks a symbol that may not count."""
    if not isinstance(dim, Expr):
        return dim
    total = 0
    for monomial, factor in dim._terms.items():
        for atom, power in monomial:
            if atom.kind == "symbol":
                factor *= sizes[atom.name] ** power
            else:
                factor *= _value_of_atom(atom, sizes) ** power
        total += factor
    return total


def _value_of_atom(atom: _Atom, sizes: Mapping[str, int]) -> int:
    left, right = _value(atom.left, sizes), _value(atom.right, sizes)
    if atom.kind in ("max", "min"):
        return max(left, right) if atom.kind == "max" else min(left, right)
    if atom.kind == "mul":
        return left * right
    if right == 0:
        return 0
    return left // right if atom.kind == "floordiv" else left % right


def _name_of(terms: _Terms) -> str | None:
    """Return the name of a polynomial that is a symbol alone."""
    if len(terms) != 1:
        return None
    ((monomial, factor),) = terms.items()
    if factor != 1 or len(monomial) != 1 or monomial[0][1] != 1 or monomial[0][0].kind != "symbol":
        return None
    return monomial[0][0].name


def _weight_of(dim: Dim) -> int:
    return dim.weight if isinstance(dim, Expr) else 1


def _terms_of(dim: Dim) -> _Terms:
    if isinstance(dim, Expr):
        return dim._terms
    return {(): int(dim)} if dim else {}


def _dim(terms: _Terms) -> Dim:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Expr(kept)


def _atoms(dim: Expr) -> Iterator[_Atom]:
    return (atom for monomial in dim._terms for atom, _ in monomial)


def _atom_dim(kind: str, left: Dim, right: Dim) -> Expr:
    return Expr({((_Atom(kind, "", left, right), 1),): 1})


def _multiply(left: _Monomial, right: _Monomial) -> _Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].key))


def _divide_monomial(monomial: _Monomial, divisor: _Monomial) -> _Monomial | None:
    powers = dict(monomial)
    for atom, power in divisor:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, power) for atom, power in powers.items() if power)


def _exact_quotient(dividend: _Terms, divisor: _Terms) -> _Terms | None:
    """Return the polynomial quotient where it is exact, found by division in a fixed monomial order."""
    lead = max(divisor, key=_order)
    rest = dict(dividend)
    quotient: _Terms = {}
    while rest:
        top = max(rest, key=_order)
        monomial = _divide_monomial(top, lead)
        if monomial is None or rest[top] % divisor[lead]:
            return None
        factor = rest[top] // divisor[lead]
        quotient[monomial] = factor
        for other, other_factor in divisor.items():
            target = _multiply(monomial, other)
            left = rest.get(target, 0) - factor * other_factor
            rest[target] = left
            if not left:
                del rest[target]
    return quotient


def _order(monomial: _Monomial) -> tuple[int, list[tuple[str, int]]]:
    """Return the graded lexicographic order of monomials, the last atom the most significant, which division needs."""
    return sum(power for _, power in monomial), [(atom.key, power) for atom, power in reversed(monomial)]


def _floor_div(dividend: Dim, divisor: Dim) -> Dim:
    if divisor == 0:
        raise ZeroDivisionError(f"the dimension {dividend} is divided by 0")
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor
    terms = _terms_of(dividend)
    if not terms:
        return 0
    quotient = _exact_quotient(terms, _terms_of(divisor))
    if quotient is not None:
        return _dim(quotient)
    if isinstance(divisor, Expr):
        return _atom_dim("floordiv", dividend, divisor)
    whole = {monomial: factor // divisor for monomial, factor in terms.items() if factor % divisor == 0}
    whole[()] = whole.get((), 0) or terms.get((), 0) // divisor
    rest = dict(terms)
    for monomial, factor in whole.items():
        rest[monomial] = rest.get(monomial, 0) - factor * divisor
    left = _dim(rest)
    if isinstance(left, int):
        return _dim(whole) + left // divisor
    common = math.gcd(divisor, *_terms_of(left).values())
    left = _dim({monomial: factor // common for monomial, factor in _terms_of(left).items()})
    return _dim(whole) + _floor_div_again(left, divisor // common)


def _floor_div_again(dividend: Dim, divisor: int) -> Dim:
    """Simplify floordiv(floordiv(a, b) + c, d) to floordiv(a + b * c, b * d), for numbers b and d above 0."""
    terms = _terms_of(dividend)
    inner = [monomial for monomial in terms if monomial]
    if divisor > 0 and len(inner) == 1 and terms[inner[0]] == 1 and len(inner[0]) == 1:
        ((atom, power),) = inner[0]
        if atom.kind == "floordiv" and power == 1 and isinstance(atom.right, int) and atom.right > 0:
            return _floor_div(atom.left + atom.right * terms.get((), 0), atom.right * divisor)
    return _atom_dim("floordiv", dividend, divisor)


def _mod(dividend: Dim, divisor: Dim) -> Dim:
    if divisor == 0:
        raise ZeroDivisionError(f"the dimension {dividend} is taken modulo 0")
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend % divisor
    if _exact_quotient(_terms_of(dividend), _terms_of(divisor)) is not None:
        return 0
    if isinstance(divisor, int):
        dividend = _dim({monomial: factor % divisor for monomial, factor in _terms_of(dividend).items()})
        if isinstance(dividend, int):
            return dividend % divisor
    return _atom_dim("mod", dividend, divisor)


FUNCTIONS: Mapping[str, Callable[[Dim, Dim], Dim]] = {
    "floordiv": lambda left, right: left // right,
    "mod": lambda left, right: left % right,
    "mul": lambda left, right: left * right,
    "max": maximum,
    "min": minimum,
}
"""What an atom that is no symbol makes of two dimensions, by its kind: the name that it has in texts and files."""


def _replace_atom(atom: _Atom, sizes: Mapping[str, Dim]) -> Dim:
    if atom.kind == "symbol":
        return sizes.get(atom.name, symbol(atom.name))
    left, right = substitute(atom.left, sizes), substitute(atom.right, sizes)
    if right == 0 and atom.kind in ("floordiv", "mod"):
        return 0
    return FUNCTIONS[atom.kind](left, right)
