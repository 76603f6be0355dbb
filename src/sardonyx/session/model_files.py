"""What a session does so that the files of its model may change, or go, once it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sardonyx.errors import Fail
from sardonyx.formats.files import FileStamp, stamp_of
from sardonyx.ir import Attribute, AttributeKind, Graph, SparseTensor, Tensor
from sardonyx.ir.walk import nested_graphs

__all__ = ["check_unchanged", "read_attributes"]


def read_attributes(main: Graph) -> None:
    """Read those tensors among the attributes of nodes that are still in a file: programs may ask for them in any run."""
    for graph in nested_graphs(main):
        for node in graph:
            for attribute in node.attributes.values():
                for tensor in _tensors(attribute):
                    tensor.detach()


_WITH_TENSORS = (AttributeKind.TENSOR, AttributeKind.SPARSE_TENSOR, AttributeKind.TENSORS, AttributeKind.SPARSE_TENSORS)


def _tensors(attribute: Attribute) -> Iterator[Tensor]:
    """Yield the tensors that an attribute consists of; other lists may be long, and are not walked."""
    if attribute.kind not in _WITH_TENSORS:
        return
    value = attribute.value
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, Tensor):
            yield item
        elif isinstance(item, SparseTensor):
            yield item.values
            yield item.indices


def check_unchanged(stamps: Mapping[Path, FileStamp]) -> None:
    """Raise Fail where one of the files is not what it was when the session was made."""
    for path, stamp in stamps.items():
        now = _stamp_now(path)
        if now != stamp:
            raise Fail(
                f"the session has to read its model again to do what this run asks for, but {str(path)!r} "
                f"{'is gone' if now is None else 'was replaced or written to'} since the session was made; make a new session, or "
                "give sessions the bytes of a model where its file does not last"
            )


def _stamp_now(path: Path) -> FileStamp | None:
    """Return what tells a file from others; None for one that is gone."""
    try:
        return stamp_of(path.stat())
    except OSError:
        return None
