"""The sets of providers that the conformance suite runs on."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from support.providers import DeviceProvider, FusingProvider, NhwcProvider

import sardonyx.providers.reference.kernels  # noqa: F401  registers the kernels, some of which are claimed
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.provider import Claims, GraphView
from sardonyx.providers.reference.registry import find_kernel, registered_operators
from sardonyx.session.providers import REFERENCE, get_available_providers

__all__ = ["SETS", "ProviderSet"]

_CPU = "CPUExecutionProvider"
_OPENVINO = "OpenVINOExecutionProvider"
_FIRST_WITH_BROADCASTING = 7


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderSet:
    """Providers that take part in a session, before the reference provider."""

    name: str
    """What tests call it."""
    make: Callable[[], Sequence[Any]]
    """Makes the session's `providers`, new ones each time."""
    claims: Callable[[str], bool]
    """Whether a provider of the set may run this operator in its own way; else a case is the reference provider's alone."""


class _Fusing(FusingProvider):
    """Fuses connected nodes of every other operator, of all domains, that has a reference kernel."""

    def capabilities(self, view: GraphView) -> Claims:
        nodes = tuple(node for node in view.nodes if find_kernel(node.domain, node.op_type, node.version) is not None)
        return FusingProvider.capabilities(self, dataclasses.replace(view, nodes=nodes))


class _Nhwc(NhwcProvider):
    """Takes nodes of the versions and types that it can run."""

    def capabilities(self, view: GraphView) -> Claims:
        found = NhwcProvider.capabilities(self, view)
        return Claims([item for item in found.capabilities if all(_is_plain(node) for node in item.nodes)])


class _Device(DeviceProvider):
    """Takes nodes of float tensors that broadcast as NumPy does."""

    def capabilities(self, view: GraphView) -> Claims:
        found = DeviceProvider.capabilities(self, view)
        return Claims([item for item in found.capabilities if all(_is_plain(node) for node in item.nodes)])


def _is_plain(node: Node) -> bool:
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    is_new = node.domain != "" or node.version >= _FIRST_WITH_BROADCASTING
    return is_new and all(value.dtype is DataType.FLOAT for value in values)


_FUSED = frozenset(name for _, name in registered_operators() if zlib.crc32(name.encode()) % 2)
_NHWC = frozenset({"Relu", "Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "Transpose"})
_DEVICE = frozenset({"Relu", "Neg", "Add", "Mul"})
_SAMPLED = frozenset(name for _, name in registered_operators() if zlib.crc32(name.encode()) % 8 == 0)
_NEEDED = {"cpu": _CPU, "openvino": _OPENVINO}

_ALL = (
    ProviderSet("reference", lambda: [REFERENCE], lambda name: True),
    ProviderSet("cpu", lambda: [_CPU], lambda name: True),
    ProviderSet("fusing", lambda: [_Fusing(_FUSED)], _FUSED.__contains__),
    ProviderSet("nhwc", lambda: [_Nhwc()], _NHWC.__contains__),
    ProviderSet("device", lambda: [_Device()], _DEVICE.__contains__),
    ProviderSet("openvino", lambda: [(_OPENVINO, {"num_of_threads": "1"})], _SAMPLED.__contains__),
)
SETS = tuple(item for item in _ALL if _NEEDED.get(item.name, _CPU) in get_available_providers())
"""The sets that this machine has."""
