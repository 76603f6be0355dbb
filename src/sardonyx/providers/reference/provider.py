"""The reference provider: claims every node that has a NumPy kernel, and is asked last."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.forks import without_fork
from sardonyx.formats.plain_graph import KeptProgram, NoPlainForm, Place, PlainReader, PlainWriter
from sardonyx.ir import Dim, Graph, Node, Tensor
from sardonyx.option import FLAG, Option
from sardonyx.provider import HOST, Body, Capability, Claims, GraphView, Layout, Memory, Partition

if TYPE_CHECKING:
    from sardonyx.providers.reference.program import ReferenceProgram

__all__ = ["NAME", "OPTIONS", "ReferenceProvider", "create", "evaluate"]

NAME = "ReferenceExecutionProvider"
"""The provider's name."""
_DENORMALS = Option(
    "set_denormal_as_zero",
    FLAG,
    False,
    "compute with zeros for denormal numbers; `session.set_denormal_as_zero` says it for a session",
)
_MOST_KEPT_NODES, _MOST_KEPT_BYTES = 32, 1 << 16
"""The largest programs that are kept for later processes: what stands around a model, such as ZipMap."""
OPTIONS: tuple[Option[object], ...] = (_DENORMALS,)
"""Its options."""


class ReferenceProvider:
    """Runs each node by its NumPy kernel, in order, on the host."""

    name = NAME
    preferred_layout = Layout.NCHW
    memory: Memory = HOST

    def __init__(self, *, flushes_denormals: bool = False) -> None:
        """Make a provider, which may take denormal numbers as zero."""
        self._flushes_denormals = flushes_denormals

    def capabilities(self, view: GraphView) -> Claims:
        """Claim every node with a kernel for its version."""
        claims, declined = [], {}
        for node in view.nodes:
            reason = _reason(node)
            if reason is None:
                claims.append(Capability((node,)))
            else:
                declined[node] = reason
        return Claims(claims, declined)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> ReferenceProgram:
        """Look up the kernels and decode the attributes of `partition`."""
        made = _program()(partition.nodes, partition.inputs, partition.constants, partition.outputs, bodies)
        made.flushes_denormals = self._flushes_denormals
        made.kept = _kept(partition)
        return made

    def keep(self, program: ReferenceProgram) -> KeptProgram | None:
        """Return what a program is made of, for later processes; None where that is much, or has subgraphs."""
        return program.kept

    def restore(self, kept: KeptProgram) -> ReferenceProgram:
        """Return the program that was kept; raises LookupError, TypeError or ValueError where it is not as it was written."""
        plain, *values = kept.plain
        reader = PlainReader(_no_tensor)
        nodes = tuple(reader.graph(plain))
        inputs, constants, outputs = map(reader.of, values)
        made = _program()(nodes, inputs, constants, outputs, _no_bodies)
        made.flushes_denormals = self._flushes_denormals
        return made

    def decision_key(self) -> str:
        """Return how denormal numbers are taken."""
        return str(self._flushes_denormals)

    def decision_facts(self) -> tuple[str, ...]:
        """Return nothing."""
        return ()

    def take_facts(self, facts: tuple[str, ...]) -> None:
        """Take nothing."""

    def note(self, claim: Capability) -> None:
        """Return nothing: all follows from the node."""

    def claim_again(self, claim: Capability, noted: tuple[tuple[Dim, ...], ...] | None) -> Capability:
        """Return the claim."""
        return claim


def create(options: Mapping[str, str]) -> ReferenceProvider:
    """Make the provider from the options of `OPTIONS`; raises InvalidArgument for a value that is none."""
    return ReferenceProvider(flushes_denormals=_DENORMALS.read(options))


def evaluate(node: Node, inputs: Sequence[Array | None]) -> list[OnnxValue]:
    """Compute the outputs of one node without subgraphs, as constant folding does.

    Raises:
        NotImplemented: there is no kernel for the node.
        SardonyxError: the kernel refuses the inputs.
    """
    reads = {value: None for value in node.inputs if value is not None}
    given = {value: array for value, array in zip(node.inputs, inputs, strict=True) if value is not None}
    program = _program()((node,), tuple(reads), (), node.outputs, _no_bodies)
    return program.run(None, [given[value] for value in reads], (), None)


def _program() -> type[ReferenceProgram]:
    """Return the class of programs, which a session whose nodes others run does without."""
    with without_fork():
        from sardonyx.providers.reference.program import ReferenceProgram

    return ReferenceProgram


def _kept(partition: Partition) -> KeptProgram | None:
    """Return what the program of a few nodes is made of; None for others."""
    if len(partition.nodes) > _MOST_KEPT_NODES or any(node.subgraphs for node in partition.nodes):
        return None
    writer = PlainWriter({}, _MOST_KEPT_BYTES)
    values = partition.inputs, partition.constants, partition.outputs
    try:
        return KeptProgram(
            (writer.nodes(partition.graph.name, partition.nodes, itertools.chain(*values)), *map(writer.numbers, values)), ()
        )
    except NoPlainForm:
        return None


def _no_tensor(dtype: DataType, shape: tuple[int, ...], number: Place) -> Tensor:
    raise ValueError(f"tensor {number} lies in no file")


def _reason(node: Node) -> str | None:
    """Return why the provider does not run a node; None where it does."""
    with without_fork():
        from sardonyx.providers.reference.expressions import kernel_of

    kernel = kernel_of(node)
    if kernel is None:
        return f"no kernel for {node.domain or 'ai.onnx'}.{node.op_type} at version {node.version}"
    return kernel.problem()


def _no_bodies(graph: Graph) -> Body:
    raise ValueError(f"a node with the subgraph {graph.name!r} cannot be evaluated by itself")
