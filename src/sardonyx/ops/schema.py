"""What an operator's schema says: pure data, and the place that messages name."""

from __future__ import annotations

import enum

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import AttributeKind, Node

__all__ = ["NHWC_DOMAIN", "AttributeSchema", "OpSchema", "ParameterOption", "ParameterSchema", "TypeConstraint", "place_of"]

NHWC_DOMAIN = "sardonyx.nhwc"
"""The domain of operators whose data tensors are in NHWC order."""


class ParameterOption(enum.Enum):
    """How many values a formal parameter takes."""

    SINGLE = "single"
    OPTIONAL = "optional"
    VARIADIC = "variadic"


@dataclasses.dataclass(frozen=True, slots=True)
class ParameterSchema:
    """A formal input or output."""

    name: str
    """Its name in the standard."""
    type: str
    """The name of a type constraint such as "T", or a type string such as "tensor(int64)"."""
    option: ParameterOption = ParameterOption.SINGLE
    """Whether it may be left out or repeated."""
    is_homogeneous: bool = True
    """For a variadic parameter: whether all its values have one type."""
    min_arity: int = 1
    """For a variadic parameter: how many values there must be."""


@dataclasses.dataclass(frozen=True, slots=True)
class AttributeSchema:
    """A formal attribute."""

    name: str
    """Its name."""
    kind: AttributeKind
    """The kind of its value."""
    is_required: bool = False
    """Whether a node without it is invalid."""
    default: object = None
    """The value where a node lacks it: int, float, str or a tuple of these; None where the standard gives none."""


@dataclasses.dataclass(frozen=True, slots=True)
class TypeConstraint:
    """A type variable of a schema."""

    name: str
    """Its name, such as "T"."""
    types: frozenset[str]
    """The type strings that it may stand for, such as "tensor(float)"."""


@dataclasses.dataclass(frozen=True, slots=True)
class OpSchema:
    """What the standard says about an operator in a range of opset versions."""

    domain: str
    """Its domain; "" is ai.onnx."""
    name: str
    """The operator."""
    since_version: int
    """The opset version with which this schema begins."""
    inputs: tuple[ParameterSchema, ...]
    """Formal inputs in order; only the last may be variadic."""
    outputs: tuple[ParameterSchema, ...]
    """Formal outputs in order; only the last may be variadic."""
    attributes: dict[str, AttributeSchema]
    """Formal attributes by name."""
    type_constraints: dict[str, TypeConstraint]
    """Type variables by name."""
    min_inputs: int
    """Fewest inputs that a node may list."""
    max_inputs: int
    """Most inputs that a node may list."""
    min_outputs: int
    """Fewest outputs that a node may list."""
    max_outputs: int
    """Most outputs that a node may list."""
    is_deprecated: bool = False
    """Whether the standard dropped the operator with this version."""
    has_function: bool = False
    """Whether the standard gives a function body, perhaps one that depends on the node."""
    is_open: bool = False
    """Whether nodes may have attributes that the schema does not list: true outside the standard's own domains."""
    owner: str = ""
    """The library that registered a custom operator; "" for the operators that every session knows."""

    @property
    def label(self) -> str:
        """Domain, name and version for messages: `Conv-22`, `com.microsoft.BiasGelu-1`, `mine.Add-1 of libmine.so`."""
        owner = f" of {self.owner}" if self.owner else ""
        return f"{self.domain + '.' if self.domain else ''}{self.name}-{self.since_version}{owner}"

    def input(self, index: int) -> ParameterSchema | None:
        """Return the formal parameter that input `index` of a node belongs to, or None beyond the last."""
        return _parameter(self.inputs, index)

    def output(self, index: int) -> ParameterSchema | None:
        """Return the formal parameter that output `index` of a node belongs to, or None beyond the last."""
        return _parameter(self.outputs, index)


def _parameter(formals: tuple[ParameterSchema, ...], index: int) -> ParameterSchema | None:
    if index < len(formals):
        return formals[index]
    return formals[-1] if formals and formals[-1].option is ParameterOption.VARIADIC else None


def place_of(node: Node) -> str:
    """Return what messages call a node: `node "conv1" (Conv, opset 13)`, by its first output where it has no name."""
    return node.place
