"""Partitions that were compiled before: an EPContext node holds one, and goes back to the provider that made it.

x ─► EPContext {source: "CPUExecutionProvider", ep_cache_context: …} ─► y
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sardonyx import errors
from sardonyx.dtypes import OnnxValue
from sardonyx.ir import Node, TensorType, Value
from sardonyx.provider import HOST, Bound, Capability, DeviceBuffer, KeepsPrograms, Partition, Program, Provider

__all__ = ["CONTEXT_DOMAIN", "CONTEXT_OPERATOR", "check_signature", "context_claim", "fit_program", "is_context"]

CONTEXT_DOMAIN, CONTEXT_OPERATOR = "com.microsoft", "EPContext"
"""The operator, as onnxruntime has it."""


_ADVICE = "it is the program of another partition; make the context anew"


def is_context(node: Node) -> bool:
    """Return whether `node` stands for a partition that was compiled before."""
    return node.op_type == CONTEXT_OPERATOR and node.domain == CONTEXT_DOMAIN


def context_claim(node: Node, providers: Sequence[Provider]) -> tuple[Provider, Capability]:
    """Return who runs an EPContext node, and its claim.

    Raises:
        NotImplemented: the session lacks the provider that compiled it, or that one keeps no programs.
    """
    source = node.text("source", "")
    provider = next((item for item in providers if item.name == source), None)
    if provider is None or not isinstance(provider, KeepsPrograms):
        raise errors.NotImplemented(
            f"EPContext node {node.name!r} was compiled by {source or 'an unnamed provider'} and cannot be loaded by "
            f"{_names(providers)}; give the session that provider, or the model that the node was made from"
        )
    return provider, Capability((node,), fused=True, name=CONTEXT_OPERATOR, alone=True)


def check_signature(partition: Partition, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    """Compare the EPContext node of `partition` with the inputs and outputs of what it holds.

    Raises:
        EPFail: their numbers, types or sizes differ: it holds a program of another partition.
    """
    (node,) = partition.nodes
    for what, stated, held in (("input", node.inputs, inputs), ("output", node.outputs, outputs)):
        if len(stated) != len(held):
            raise errors.EPFail(f"it has {len(stated)} {what}s, but the program that it holds has {len(held)}; {_ADVICE}")
        for index, (value, other) in enumerate(zip(stated, held, strict=True)):
            if value is None or not _agree(value, other):
                found = "left out" if value is None else _described(value)
                raise errors.EPFail(f"{what} {index} is {found}, but {_described(other)} in the program that it holds; {_ADVICE}")


def fit_program(program: Program, partition: Partition) -> Program:
    """Return a program of the EPContext node of `partition` as one of the partition, which may have fewer inputs and outputs.

    Values that the node reads may have been found equal, or constant, and some that it makes may be read by nobody any more.
    """
    (node,) = partition.nodes
    if node.inputs == partition.inputs and node.outputs == partition.outputs:
        return program
    return _Fitted(program, node, partition)


class _Fitted:
    """Gives a program all its inputs, and of its outputs those that are wanted."""

    makes_outputs = True

    def __init__(self, program: Program, node: Node, partition: Partition) -> None:
        self._program = program
        constants = {value: value.constant.numpy() for value in partition.constants if value.constant is not None}
        places = {value: index for index, value in enumerate(partition.inputs)}
        self._sources = [places.get(value) if value in places else constants[value] for value in node.inputs if value is not None]
        self._wanted = [node.outputs.index(value) for value in partition.outputs]

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return Bound((None,) * len(self._wanted))

    def run(
        self, bound: Bound, inputs: Sequence[OnnxValue], outputs: Sequence[OnnxValue], scratch: DeviceBuffer
    ) -> list[OnnxValue]:
        given = [inputs[source] if isinstance(source, int) else source for source in self._sources]
        inner = self._program.bind(tuple(getattr(value, "shape", None) for value in given))
        made = [None if spec is None else np.empty(spec.shape, spec.dtype.numpy) for spec in inner.outputs]
        memory = HOST.allocate(inner.scratch_bytes) if inner.scratch_bytes else None
        results = self._program.run(inner, given, made, memory)
        return [results[index] for index in self._wanted]


def _agree(value: Value, other: Value) -> bool:
    if not isinstance(value.type, TensorType) or not isinstance(other.type, TensorType) or value.dtype != other.dtype:
        return False
    if value.shape is None or other.shape is None:
        return True
    pairs = zip(value.shape, other.shape, strict=False)
    fits = all(one == two or not (isinstance(one, int) and isinstance(two, int)) for one, two in pairs)
    return len(value.shape) == len(other.shape) and fits


def _described(value: Value) -> str:
    shape = "" if value.shape is None else f"[{', '.join(map(str, value.shape))}]"
    return f"{value.type}{shape}" if value.type is not None else "of no known type"


def _names(providers: Iterable[Provider]) -> str:
    return ", ".join(provider.name for provider in providers) or "no provider"
