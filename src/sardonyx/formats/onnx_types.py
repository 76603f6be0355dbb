"""TypeProto to value types and back."""

from __future__ import annotations

from sardonyx import errors
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.formats.onnx_text import text_of
from sardonyx.formats.protos import Message
from sardonyx.ir import Dim, MapType, OptionalType, SequenceType, Shape, SparseTensorType, TensorType, ValueType, symbol
from sardonyx.ir.shape import Expr, anonymous, is_anonymous

__all__ = ["data_type", "read_denotations", "read_type", "write_denotations", "write_type"]

_DATA_TYPES = {int(dtype): dtype for dtype in DataType}
_MAX_DEPTH = 32


def data_type(number: int) -> DataType:
    """Return the element type with `number`; raises NotImplemented where this version knows none."""
    found = _DATA_TYPES.get(number)
    if found is None:
        known = f"0 to {max(_DATA_TYPES)}"
        raise errors.NotImplemented(f"unknown element type {number}; TensorProto.DataType numbers {known} are known")
    return found


def read_type(proto: Message, depth: int = 0) -> ValueType | None:
    """Return the type that a TypeProto states; None where it leaves all, or the element type, open.

    Dimensions that are negative, or have neither size nor name, are unknown.

    Raises:
        InvalidGraph: types are nested too deeply.
        NotImplemented: an opaque type, or an unknown element type.
    """
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        dtype = data_type(tensor.elem_type)
        return TensorType(dtype, _read_shape(tensor)) if dtype else None
    if kind is None:
        return None
    if depth > _MAX_DEPTH:
        raise InvalidGraph(f"the type is nested more than {_MAX_DEPTH} levels deep")
    if kind == "sparse_tensor_type":
        tensor = proto.sparse_tensor_type
        dtype = data_type(tensor.elem_type)
        return SparseTensorType(dtype, _read_shape(tensor)) if dtype else None
    if kind == "sequence_type":
        return SequenceType(read_type(proto.sequence_type.elem_type, depth=depth + 1))
    if kind == "optional_type":
        return OptionalType(read_type(proto.optional_type.elem_type, depth=depth + 1))
    if kind == "map_type":
        return MapType(data_type(proto.map_type.key_type), read_type(proto.map_type.value_type, depth=depth + 1))
    opaque = proto.opaque_type
    raise errors.NotImplemented(f"the type is opaque({opaque.domain},{opaque.name}), which only its own runtime reads")


def _read_shape(tensor: Message) -> Shape | None:
    if not tensor.HasField("shape"):
        return None
    dims: list[Dim] = []
    for dim in tensor.shape.dim:
        kind = dim.WhichOneof("value")
        if kind == "dim_value":
            size = dim.dim_value
            dims.append(size if size >= 0 else anonymous())
        elif kind == "dim_param" and dim.dim_param and not text_of(dim.dim_param).startswith("?"):
            dims.append(symbol(dim.dim_param))
        else:
            dims.append(anonymous())
    return tuple(dims)


def read_denotations(proto: Message) -> str:
    """Return what the dimensions of a tensor's TypeProto mean, separated by commas; "" where it says nothing."""
    if proto.WhichOneof("value") != "tensor_type":
        return ""
    words = [text_of(dim.denotation) for dim in proto.tensor_type.shape.dim]
    return ",".join(words) if any(words) else ""


def write_denotations(proto: Message, denotations: str) -> None:
    """State what the dimensions mean in a TypeProto that has them."""
    if proto.WhichOneof("value") == "tensor_type":
        for dim, word in zip(proto.tensor_type.shape.dim, denotations.split(","), strict=False):
            if word:
                dim.denotation = word


def write_type(proto: Message, value_type: ValueType | None) -> None:
    """State `value_type` in an empty TypeProto; None leaves it empty."""
    if isinstance(value_type, TensorType):
        _write_tensor(proto.tensor_type, value_type)
    elif isinstance(value_type, SparseTensorType):
        _write_tensor(proto.sparse_tensor_type, value_type)
    elif isinstance(value_type, SequenceType):
        proto.sequence_type.elem_type.SetInParent()
        write_type(proto.sequence_type.elem_type, value_type.element)
    elif isinstance(value_type, OptionalType):
        proto.optional_type.elem_type.SetInParent()
        write_type(proto.optional_type.elem_type, value_type.element)
    elif isinstance(value_type, MapType):
        proto.map_type.key_type = int(value_type.key)
        write_type(proto.map_type.value_type, value_type.value)


def _write_tensor(proto: Message, value_type: TensorType | SparseTensorType) -> None:
    proto.elem_type = int(value_type.dtype)
    if value_type.shape is None:
        return
    proto.shape.SetInParent()
    for dim in value_type.shape:
        entry = proto.shape.dim.add()
        if not isinstance(dim, Expr):
            entry.dim_value = dim
        elif not is_anonymous(dim):
            entry.dim_param = str(dim)
