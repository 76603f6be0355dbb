"""A part of a graph and who runs it."""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.provider import Partition, Provider

__all__ = ["Cut"]


@dataclasses.dataclass(frozen=True, slots=True)
class Cut:
    """A part of the graph and who runs it."""

    provider: Provider
    """Who runs it."""
    partition: Partition
    """The part."""
