"""What a custom operator is, wherever it comes from: a compiled library, or anything else that makes these objects.

    OperatorDefinition ── create(Site) ──► Kernel ── compute(inputs) ──► outputs
      domain, name, versions,                once per node               once per run, from any thread
      inputs, outputs, infer

A definition is immutable and holds no state of a session; what `create` returns belongs to one node of one session.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, DataType
from sardonyx.ir import Attribute, Node, TensorType
from sardonyx.ops.fact import Fact
from sardonyx.providers.expressions import ElementwiseExpression
from sardonyx.providers.user_kernels import CpuKernel

__all__ = ["NEWEST", "Arity", "Kernel", "OperatorDefinition", "OperatorSource", "Parameter", "Site"]

NEWEST = 1 << 30
"""The last version of an operator that has none."""


class Arity(enum.IntEnum):
    """How many values a parameter takes; the numbers are those of OrtCustomOpInputOutputCharacteristic."""

    REQUIRED = 0
    OPTIONAL = 1
    VARIADIC = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """A formal input or output."""

    dtype: DataType
    """Its element type; UNDEFINED for any."""
    arity: Arity = Arity.REQUIRED
    """Whether it may be left out or repeated; only the last may be variadic."""
    is_homogeneous: bool = True
    """For a variadic parameter: whether all its values have one type."""
    min_arity: int = 1
    """For a variadic parameter: how many values there must be."""


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """The node that a kernel is made for."""

    name: str
    """The node's name."""
    domain: str
    """The operator's domain."""
    op_type: str
    """The operator."""
    version: int
    """The opset version of the domain under which the node is read."""
    attributes: Mapping[str, Attribute]
    """Its attributes as the model has them."""
    input_names: tuple[str, ...]
    """The names of its inputs; "" for one that is left out."""
    output_names: tuple[str, ...]
    """The names of its outputs; "" for one that is left out."""
    input_types: tuple[TensorType | None, ...]
    """What is known of the inputs' types."""
    output_types: tuple[TensorType | None, ...]
    """What is known of the outputs' types."""
    constants: Mapping[int, Array]
    """Index -> elements of the inputs that are constant."""
    config: Mapping[str, str]
    """The session's config entries."""
    stream: object = None
    """The stream of the device that it runs on, which is its provider's attribute `stream`; None on the host."""


class Kernel(Protocol):
    """A custom operator made ready for one node; any number of threads may call it."""

    def compute(self, inputs: Sequence[Array | None]) -> Sequence[Array | None]:
        """Compute.

        Args:
            inputs: for each input of the node its array (strings: object arrays of str), None for one left out; read-only.

        Returns:
            For each output of the node an array of the kernel's own making, None where it makes none.

        Raises:
            SardonyxError: the operator failed.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class OperatorDefinition:
    """A custom operator."""

    domain: str
    """Its domain; "" is ai.onnx."""
    name: str
    """Its name."""
    inputs: tuple[Parameter, ...]
    """Its formal inputs."""
    outputs: tuple[Parameter, ...]
    """Its formal outputs."""
    create: Callable[[Site], Kernel] | None
    """Make what computes one node; raises SardonyxError where the node does not suit it. None for an expression."""
    since: int = 1
    """The first version of its domain in which it exists."""
    until: int = NEWEST
    """The last version of its domain in which it exists."""
    infer: Callable[[Node, Sequence[Fact | None]], Sequence[Fact]] | None = None
    """Facts of the outputs from those of the inputs; None where only element types are known."""
    owner: str = ""
    """What messages call its origin, such as the library's file name."""
    expression: ElementwiseExpression | None = None
    """What it computes for one element, for the providers that compute expressions."""
    cpu_kernel: CpuKernel | None = None
    """What the CPU provider compiles for it; `create` makes what runs the nodes that are not compiled."""
    provider: str = ""
    """The provider in whose memory it computes, in sessions that have this one; "" for the host's."""


class OperatorSource(Protocol):
    """What a session can be given: an operator, or several that come together."""

    @property
    def definitions(self) -> tuple[OperatorDefinition, ...]:
        """The operators."""
