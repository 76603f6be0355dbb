"""Nodes that are claimed as the sizes that they make; `size_values` finds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Dim
from sardonyx.ir.shape import symbols_in
from sardonyx.provider import Capability

__all__ = ["Elements", "SizesClaim", "symbols_of"]

Elements: TypeAlias = tuple[Dim, ...]
"""The elements of one tensor in order."""


@dataclasses.dataclass(frozen=True, slots=True)
class SizesClaim(Capability):
    """A node that is claimed as the sizes that it makes."""

    elements: tuple[Elements, ...] = ()
    """For each output its elements."""


def symbols_of(elements: Iterable[Elements]) -> list[str]:
    """Return the symbols that elements depend on, each once."""
    return list(dict.fromkeys(name for item in elements for dim in item for name in sorted(symbols_in(dim))))
