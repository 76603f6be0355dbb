"""The description of a session's model: `NodeArg` for each input and output, and `ModelMetadata`."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.ir import Dim, Model, OptionalType, Shape, SparseTensorType, TensorType, Value, ValueType
from sardonyx.ir.shape import Expr, is_anonymous

__all__ = ["ModelMetadata", "NodeArg", "completed", "metadata_of", "node_arg"]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a model."""

    name: str
    """Its name, the key of a feed."""
    type: str
    """Its type as onnxruntime prints it, such as "tensor(float)" or "seq(map(int64,tensor(float)))"."""
    shape: list[int | str | None]
    """Its dimensions: a size, the name of a symbol, or None where unknown; empty for a scalar, and where the rank is unknown."""

    def __hash__(self) -> int:
        return hash((self.name, self.type))

    def __str__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


@dataclasses.dataclass(slots=True)
class ModelMetadata:
    """What a model's file says about itself; changes are the caller's, the session's model stays as it is."""

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
    shape = _shape_of(value.type)
    return NodeArg(value.name, str(value.type or ""), [] if shape is None else [_dim(dim) for dim in shape])


def completed(declared: Sequence[NodeArg], types: Sequence[ValueType | None], inferred: Sequence[Value]) -> tuple[NodeArg, ...]:
    """Return outputs as a file declares them, with what it leaves open as inference found it.

    Args:
        declared: the outputs.
        types: their types in the file, None where there is none.
        inferred: the same outputs with what was found.
    """
    return tuple(_completed(argument, kind, found.type) for argument, kind, found in zip(declared, types, inferred, strict=True))


def _completed(argument: NodeArg, kind: ValueType | None, found: ValueType | None) -> NodeArg:
    inferred = _shape_of(found)
    if inferred is None or (kind is not None and str(kind) != str(found)):
        return argument if kind is not None or found is None else dataclasses.replace(argument, type=str(found))
    known = [dim if isinstance(dim, int) else dim.name if not is_anonymous(dim) else None for dim in inferred]
    if _shape_of(kind) is not None and len(argument.shape) == len(known):
        known = [_joined(old, new) for old, new in zip(argument.shape, known, strict=True)]
    elif _shape_of(kind) is not None:
        known = []
    return NodeArg(argument.name, str(found), known)


def _joined(declared: int | str | None, inferred: int | str | None) -> int | str | None:
    """Return a dimension as two say it; None, as in onnxruntime, where they contradict one another."""
    if isinstance(declared, int) and isinstance(inferred, int):
        return declared if declared == inferred else None
    return inferred if isinstance(inferred, int) or declared is None else declared


def _shape_of(kind: ValueType | None) -> Shape | None:
    """Return the shape of a tensor, or of the tensor that an optional may hold."""
    tensor = kind.element if isinstance(kind, OptionalType) else kind
    return tensor.shape if isinstance(tensor, (SparseTensorType, TensorType)) else None


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
