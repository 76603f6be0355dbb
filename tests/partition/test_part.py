"""A part of a graph and who runs it."""

from support.models import graph

from sardonyx.partition.part import Cut
from sardonyx.provider import Partition
from sardonyx.providers.reference.provider import ReferenceProvider


def test_a_part_names_its_provider() -> None:
    """Both are kept as they were given."""
    held = graph("graph(x: float[2]) -> (y) { y = Relu(x) }")
    partition = Partition("p", held, tuple(held), (), tuple(held.inputs), (), held.outputs)
    provider = ReferenceProvider()
    part = Cut(provider, partition)
    assert (part.provider, part.partition) == (provider, partition)
