"""Kernels and schemas of every operator, in the form in which onnxruntime's documentation tools read them."""

from __future__ import annotations

import dataclasses

from sardonyx.forks import without_fork
from sardonyx.ops.schema import OpSchema
from sardonyx.ops.schemas import all_schemas, find_schema

__all__ = ["KernelDef", "get_all_operator_schema", "get_all_opkernel_def", "get_registered_ep_kernel_defs"]

_LAST_VERSION = 2147483647
"""How onnxruntime writes an open end of versions."""


@dataclasses.dataclass(frozen=True, slots=True)
class KernelDef:
    """A meaning of an operator that a provider computes."""

    op_name: str
    """The operator."""
    domain: str
    """Its domain; "" is ai.onnx."""
    version_range: tuple[int, int]
    """The first and the last version that it serves; 2147483647 where there is no last."""
    provider: str
    """The provider."""
    type_constraints: dict[str, list[str]] = dataclasses.field(hash=False)
    """Type parameter -> the types that the operator's schema allows."""


def get_all_opkernel_def() -> list[KernelDef]:
    """Return the kernels of the reference provider, which has all, sorted."""
    with without_fork():
        from sardonyx.providers.reference.registry import kernels_of, registered_operators  # which load all kernels

    found: list[KernelDef] = []
    for domain, op_type in registered_operators():
        starts = [kernel.since for kernel in kernels_of(op_type) if kernel.domain == domain]
        ends = [*(start - 1 for start in starts[1:]), _LAST_VERSION]
        found += [_kernel_def(domain, op_type, start, end) for start, end in zip(starts, ends, strict=True)]
    return found


def _kernel_def(domain: str, op_type: str, start: int, end: int) -> KernelDef:
    schema = find_schema(domain, op_type, end)
    constraints = {} if schema is None else {name: sorted(item.types) for name, item in schema.type_constraints.items()}
    return KernelDef(op_type, domain, (start, end), "ReferenceExecutionProvider", constraints)


def get_registered_ep_kernel_defs(ep_name: str) -> list[KernelDef]:
    """Return the kernels of a provider."""
    return [kernel for kernel in get_all_opkernel_def() if kernel.provider == ep_name]


def get_all_operator_schema() -> list[OpSchema]:
    """Return the schema of every operator and version, sorted by domain, name and version."""
    return all_schemas()
