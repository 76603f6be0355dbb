"""Buffers and their views."""

from sardonyx.dtypes import DataType
from sardonyx.ir import symbol
from sardonyx.providers.cpu.steps import Buffer

_N = symbol("n")


def test_views_lie_in_their_root() -> None:
    """A view of a view has the root of both."""
    root = Buffer(DataType.FLOAT, (_N, 4))
    view = Buffer(DataType.FLOAT, (_N * 2, 2), base=root)
    inner = Buffer(DataType.FLOAT, (2,), base=view, offset=2)
    assert root.root is root
    assert inner.root is root


def test_whole_views_cover_their_root() -> None:
    """As many elements as the root, whatever lies between."""
    root = Buffer(DataType.FLOAT, (_N, 4))
    part = Buffer(DataType.FLOAT, (_N, 2), base=root)
    assert root.is_whole
    assert Buffer(DataType.FLOAT, (2, _N * 2), base=root).is_whole
    assert not part.is_whole
    assert not Buffer(DataType.FLOAT, (_N * 2,), base=part).is_whole


def test_buffers_are_compared_by_identity() -> None:
    """Two that look alike are two places."""
    assert Buffer(DataType.FLOAT, (2,)) != Buffer(DataType.FLOAT, (2,))
