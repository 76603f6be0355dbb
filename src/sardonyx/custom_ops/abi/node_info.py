"""What OrtKernelInfo stands for: the node that a kernel is made for."""

from __future__ import annotations

from typing import Any

from sardonyx.custom_ops.abi.values import HostValue, make_value
from sardonyx.custom_ops.definition import Site
from sardonyx.errors import Fail
from sardonyx.ir import AttributeKind

__all__ = ["NodeInfo"]


class NodeInfo:
    """A node as the library sees it; it lives as long as the kernel, or a copy that the library made of its handle."""

    def __init__(self, site: Site, since: int) -> None:
        """Describe the node of `site`, whose operator exists since this version."""
        self.site = site
        self.since = since
        self._constants: dict[int, HostValue] = {}

    def attribute(self, name: str, kind: AttributeKind) -> Any:
        """Return the value of an attribute (Any: its kind decides); raises Fail where there is none of this kind."""
        found = self.site.attributes.get(name)
        if found is None:
            raise Fail(f"no attribute with name: '{name}' is defined")
        if found.kind is not kind:
            if kind in _EMPTY_LISTS and found.kind in _EMPTY_LISTS and not found.value:
                return ()
            raise Fail(f"the attribute {name!r} has type {found.kind.name}, the library asks for {kind.name}")
        return found.value

    def constant(self, index: int) -> HostValue | None:
        """Return an input that is constant, as a value that lives as long as this; None for another."""
        array = self.site.constants.get(index)
        if array is None:
            return None
        if index not in self._constants:
            self._constants[index] = make_value(array if array.flags.c_contiguous else array.copy())
        return self._constants[index]

    def close(self) -> None:
        """Make the addresses of constant inputs unknown."""
        for value in self._constants.values():
            value.forget()
        self._constants.clear()


_EMPTY_LISTS = (AttributeKind.FLOATS, AttributeKind.INTS, AttributeKind.STRINGS)
