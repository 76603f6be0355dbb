"""Values in files of their own, as ONNX's test data has them: a TensorProto, SequenceProto or OptionalProto per `.pb` file."""

from __future__ import annotations

from pathlib import Path

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument, InvalidProtobuf, SardonyxError, located
from sardonyx.forks import without_fork
from sardonyx.formats.external_data import ExternalData
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.onnx_tensor import TensorReader, write_tensor
from sardonyx.formats.protos import Message, protos
from sardonyx.ir import Tensor

__all__ = ["array_of", "load", "save"]

_FIELDS = {1: "tensor", 3: "sequence", 5: "optional"}
"""`elem_type` of SequenceProto and OptionalProto -> the field that holds such elements, without its ending."""


def load(path: Path, type_text: str = "") -> tuple[str, OnnxValue]:
    """Return the name in a `.pb` file, "" for none, and the value.

    Args:
        path: the file.
        type_text: the type of the value as NodeArg has it, which says what the file holds; a tensor where it is left out.

    Raises:
        InvalidProtobuf: the file holds no such value.
        OSError: it cannot be read.
    """
    with without_fork():
        from google.protobuf.message import DecodeError

    message = _message_for(type_text)
    try:
        message.ParseFromString(path.read_bytes())
    except (DecodeError, UnicodeDecodeError) as error:
        raise InvalidProtobuf(f"{path} holds no {message.DESCRIPTOR.name}: {error}") from error
    try:
        return message.name, _value(message, path)
    except SardonyxError as error:
        raise located(error, str(path)) from error


def save(array: Array, path: Path, name: str) -> None:
    """Write an array as a TensorProto."""
    message = protos().TensorProto()
    write_tensor(message, Tensor.from_array(array, name), name)
    path.write_bytes(message.SerializeToString())


def array_of(message: Message, folder: Path = Path()) -> Array:
    """Return a copy of the elements of an onnx.TensorProto, whose external data is in `folder`."""
    reader = TensorReader(MemoryContent(memoryview(b"")), {}, ExternalData(folder))
    return reader.read(message, "tensor").numpy().copy()


def _message_for(type_text: str) -> Message:
    if not type_text.startswith(("seq(", "optional(")):
        return protos().TensorProto()
    with without_fork():
        import onnx

    return onnx.SequenceProto() if type_text.startswith("seq(") else onnx.OptionalProto()


def _value(message: Message, path: Path) -> OnnxValue:
    form = message.DESCRIPTOR.name
    if form == "TensorProto":
        return array_of(message, path.parent)
    field = _FIELDS.get(message.elem_type)
    if form == "OptionalProto":
        return None if field is None else _value(getattr(message, f"{field}_value"), path)
    if field is None:
        raise InvalidArgument(f"its elements are of kind {message.elem_type}; tensors, sequences and optionals can be read")
    return [_value(item, path) for item in getattr(message, f"{field}_values")]
