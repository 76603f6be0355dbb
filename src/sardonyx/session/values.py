"""The description of a session's model: `NodeArg` for each input and output, and `ModelMetadata`."""

from __future__ import annotations

import dataclasses

from sardonyx.ir import Dim, Model, Value
from sardonyx.ir.shape import Expr, is_anonymous

__all__ = ["ModelMetadata", "NodeArg", "metadata_of", "node_arg"]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a model."""

    name: str
    """Its name, the key of a feed."""
    type: str
    """Its type as onnxruntime prints it, such as "tensor(float)" or "seq(map(int64,tensor(float)))"."""
    shape: list[int | str | None]
    """Its dimensions: a size, the name of a symbol, or None where unknown; empty for a scalar, and where the rank is unknown."""

    def __str__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


@dataclasses.dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What a model's file says about itself."""

    producer_name: str
    """The tool that wrote it."""
    graph_name: str
    """The main graph's name."""
    domain: str
    """The model's namespace."""
    description: str
    """The model's documentation."""
    graph_description: str
    """The main graph's documentation."""
    version: int
    """The model's version."""
    custom_metadata_map: dict[str, str]
    """Its metadata_props."""


def node_arg(value: Value) -> NodeArg:
    """Describe an input or output."""
    shape = value.shape
    return NodeArg(value.name, str(value.type or ""), [] if shape is None else [_dim(dim) for dim in shape])


def metadata_of(model: Model) -> ModelMetadata:
    """Describe a model."""
    return ModelMetadata(
        producer_name=model.producer_name,
        graph_name=model.graph.name,
        domain=model.domain,
        description=model.doc,
        graph_description=model.graph.doc,
        version=model.version,
        custom_metadata_map=dict(model.metadata),
    )


def _dim(dim: Dim) -> int | str | None:
    if isinstance(dim, Expr):
        return None if is_anonymous(dim) else str(dim)
    return dim
