"""ONNX files: load and save.

    model = load("resnet50.onnx")       also bytes, an open file, or an onnx.ModelProto
    save(model, "copy.onnx")            data beside it in copy.onnx.data where the file would grow too large

The version of the file format and of operator sets never makes a model unreadable. Weights stay in the file until they are asked
for: the time to load depends on the number of nodes, not of weights. A file that is written to meanwhile is an error.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TypeAlias

from sardonyx.errors import Fail, InvalidArgument, InvalidProtobuf, SardonyxError, located
from sardonyx.forks import without_fork
from sardonyx.formats.external_data import ExternalData, InMemory
from sardonyx.formats.external_write import DataFile, Locate, store_where
from sardonyx.formats.files import Content, FileStamp, MemoryContent, replaced
from sardonyx.formats.onnx_read import read_model
from sardonyx.formats.onnx_tensor import TensorReader, write_tensor
from sardonyx.formats.onnx_write import write_model
from sardonyx.formats.opened import OpenedModel, open_model
from sardonyx.formats.protos import Message, protos
from sardonyx.formats.wire import Stripped
from sardonyx.ir import Model, Tensor
from sardonyx.ir.walk import all_graphs

__all__ = ["Source", "external_places", "load", "save", "save_located", "to_bytes", "to_proto", "to_proto_without_data"]

Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | Message"
"""What `load` takes; Any stands for onnx.ModelProto, so that naming the type does not import onnx."""

_NOTHING = Stripped(b"", {})
_PROTOBUF_BYTES = 2**31 - 1
_INLINE_BYTES = 3 << 29
_PICKLE = "a pickle; convert the model that it holds, one of scikit-learn by skl2onnx, one of PyTorch by torch.onnx.export"
_FOREIGN = (
    (0, b"version https://git-lfs", "a Git LFS pointer; fetch the file itself with `git lfs pull`"),
    (8, b'{"', "safetensors, which hold weights and no graph; export the model to ONNX"),
    (0, b"GGUF", "a GGUF file, which holds weights and no graph; export the model to ONNX"),
    (0, b"\x80\x02", _PICKLE),
    (0, b"\x80\x03", _PICKLE),
    (0, b"\x80\x04", _PICKLE),
    (0, b"\x80\x05", _PICKLE),
    (0, b"PK\x03\x04", "a ZIP archive; unpack the .onnx file that it holds"),
    (0, b"\x1f\x8b", "gzip data; unpack it"),
    (4, b"ORTM", "a model in ORT format; load the .onnx file that it was made from"),
    (4, b"TFL3", "a TensorFlow Lite model; convert it to ONNX"),
    (0, b"\x89HDF", "an HDF5 file; export the model to ONNX"),
    (0, b"<", "HTML or XML, perhaps the error page of a download"),
    (0, b"{", "JSON text"),
)


def load(
    source: Source,
    *,
    external_dir: str | os.PathLike[str] | None = None,
    in_memory: InMemory | None = None,
    opened: OpenedModel | None = None,
) -> Model:
    """Read a model.

    Args:
        source: a path, the bytes of a file, an open binary file, or an onnx.ModelProto. Weights are views of `bytes`; of
            a mutable buffer one copy is made.
        external_dir: the folder of external data; by default the one that the model file is in.
        in_memory: external data that the caller has in memory; no file is needed for it.
        opened: what `open_model` returned for `source`, where it was asked already.

    Raises:
        NoSuchFile: the file, or its external data, does not exist.
        InvalidProtobuf: the bytes are no ONNX model.
        InvalidGraph: the model contradicts itself or the standard.
        InvalidArgument: `source` is no file or no model, or external data lies outside the folder.
        NotImplemented: an element type that is unknown, or opaque.
        Fail: the system does not let us read the file.
    """
    path = Path(os.fsdecode(source)) if isinstance(source, (str, os.PathLike)) else None
    external = ExternalData.beside(path, external_dir, in_memory)
    try:
        proto, content, stripped, stamp = _proto(source, path, opened)
        tensors = TensorReader(content, stripped.blobs, external, stripped.lists)
        model = read_model(proto, tensors, path)
    except SardonyxError as error:
        raise located(error, repr(str(path)) if path is not None else "model") from error
    model.placed = tensors.placed
    model.stamps = {**external.stamps, **({path: stamp} if path is not None and stamp is not None else {})}
    return model


def external_places(path: Path) -> dict[str, tuple[str, int, int]]:
    """Return where a file has the data of initializers of its main graph that lie in other files.

    Each has a location, an offset and a length in bytes.

    Raises:
        NoSuchFile, InvalidProtobuf, Fail: it cannot be read, or is no model.
    """
    found = {}
    for tensor in _proto(path, path)[0].graph.initializer:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        numbers = [entries.get(key, "0") for key in ("offset", "length")]
        if entries.get("location") and all(map(str.isdecimal, numbers)):
            found[tensor.name] = (entries["location"], int(numbers[0]), int(numbers[1]))
    return found


def to_proto(model: Model) -> Message:
    """Return the onnx.ModelProto for `model`, with all data inside; Any, so that naming the type does not import onnx."""
    proto = protos().ModelProto()
    write_model(proto, model, write_tensor)
    return proto


def to_proto_without_data(model: Model) -> Message:
    """Return the onnx.ModelProto for `model` with tensors that have a name, a type and a shape only: none of their data is read."""
    proto = protos().ModelProto()
    write_model(proto, model, _store_no_data)
    return proto


def _store_no_data(proto: Message, tensor: Tensor, name: str) -> None:
    proto.name, proto.data_type = name, int(tensor.dtype)
    proto.dims.extend(tensor.shape)


def to_bytes(model: Model) -> bytes:
    """Return the bytes of an ONNX file that holds `model` with all its data.

    Raises:
        InvalidArgument: they would be more than protobuf's 2 GiB.
    """
    size_bytes = _data_bytes(model)
    if size_bytes > _INLINE_BYTES:
        raise InvalidArgument(
            f"{model.label}: its tensors take {size_bytes} bytes, too many for one protobuf message (2 GiB); save it to a path"
        )
    return _serialized(to_proto(model), model)


def save(
    model: Model,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    external_data: bool | None = None,
    data_name: str = "",
    least_bytes: int = 4096,
) -> None:
    """Write `model` to an ONNX file.

    A path gets its new content at once, when all is written: until then, and after a failure, what stood there before stands.

    Args:
        model: the model; its data may come from the very file that is written.
        target: a path or an open binary file.
        external_data: whether data goes to a file of its own; by default where `data_name` is given, or the model would otherwise
            exceed what protobuf can hold.
        data_name: the name of that file, beside the model; by default that of the model with `.data` behind.
        least_bytes: how large a tensor in it is at least.

    Raises:
        InvalidArgument: external data for an open file, or a model too large without.
        Fail: the system does not let us write.
    """
    external = bool(data_name) or _data_bytes(model) > _INLINE_BYTES if external_data is None else external_data
    if Path(data_name).name != data_name:
        raise InvalidArgument(f"external data lies beside the model; expected a file name without a folder, got {data_name!r}")
    if not isinstance(target, (str, os.PathLike)):
        if external and external_data:
            raise InvalidArgument("external data needs a path to lie beside, but the target is an open file; pass a path")
        target.write(to_bytes(model))
        return
    path = Path(os.fsdecode(target))
    try:
        if external:
            _save_with_data(model, path, path.with_name(data_name or f"{path.name}.data"), least_bytes)
        else:
            _replace(path, to_bytes(model))
    except OSError as error:
        raise Fail(f"the model cannot be saved as {str(path)!r}: {error.strerror or error}") from error


def save_located(model: Model, path: Path, locate: Locate) -> None:
    """Write `model` to `path`, with data in the files in which `locate` says that the caller has put it, and else inside.

    Raises:
        InvalidArgument: the model is too large for what is inside.
        Fail: the system does not let us write.
    """
    proto = protos().ModelProto()
    write_model(proto, model, store_where(locate))
    try:
        _replace(path, _serialized(proto, model))
    except OSError as error:
        raise Fail(f"the model cannot be saved as {str(path)!r}: {error.strerror or error}") from error


def _save_with_data(model: Model, path: Path, data_path: Path, least_bytes: int) -> None:
    proto = protos().ModelProto()
    with replaced(data_path) as stream:
        write_model(proto, model, DataFile(stream, data_path.name, least_bytes=least_bytes).store)
    _replace(path, _serialized(proto, model))


def _serialized(proto: Message, model: Model) -> bytes:
    with without_fork():
        from google.protobuf.message import EncodeError

    try:
        serialized: bytes = proto.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise InvalidArgument(f"{model.label}: protobuf cannot hold the model ({error}); are its attributes too large?") from error
    return serialized


def _replace(path: Path, content: bytes) -> None:
    with replaced(path) as stream:
        stream.write(content)


def _data_bytes(model: Model) -> int:
    initializers = [value for graph in all_graphs(model) for value in graph.initializers.values()]
    return sum(value.constant.size_bytes for value in initializers if value.constant is not None)


def _proto(
    source: Source, path: Path | None, opened: OpenedModel | None = None
) -> tuple[Message, Content, Stripped, FileStamp | None]:
    """Return the message, the bytes that the data of large tensors lies in, what was taken out of it, and the stamp of a file."""
    descriptor = getattr(source, "DESCRIPTOR", None)
    if descriptor is None:
        opened = open_model(source, path) if opened is None else opened
        return _parse(opened), opened.content, opened.stripped or _NOTHING, opened.stamp
    if descriptor.full_name != "onnx.ModelProto":
        raise InvalidArgument(f"expected an onnx.ModelProto, got {descriptor.full_name}; wrap a graph with onnx.helper.make_model")
    return source, MemoryContent(memoryview(b"")), _NOTHING, None


def _parse(opened: OpenedModel) -> Message:
    with without_fork():
        from google.protobuf.message import DecodeError

    data = opened.content
    if not len(data):
        raise InvalidProtobuf("it is empty (0 bytes); expected an ONNX model")
    content = opened.whole() if opened.stripped is None else opened.stripped.data
    if len(content) > _PROTOBUF_BYTES:
        raise InvalidProtobuf(f"it has {len(data)} bytes, more than protobuf's 2 GiB, and no large tensors that would explain them")
    proto = protos().ModelProto()
    try:
        proto.ParseFromString(content)
    except (DecodeError, UnicodeDecodeError) as error:  # the second where protobuf is the one that is written in Python
        raise InvalidProtobuf(f"its {len(data)} bytes are no ONNX model, or a part of one only ({error}){_guess(data)}") from error
    if not proto.HasField("graph"):
        raise InvalidProtobuf(f"its {len(data)} bytes hold no graph, so they are not an ONNX model{_guess(data)}")
    return proto


def _guess(data: Content) -> str:
    """Return what the bytes seem to be instead."""
    start = bytes(data.read(0, min(512, len(data))))
    if start.startswith(b"PK") and b"/data.pkl" in start:
        return "; this looks like a file of torch.save; export the model by torch.onnx.export"
    for offset, magic, meaning in _FOREIGN:
        if start[offset:].startswith(magic):
            return f"; this looks like {meaning}"
    if start.isascii() and start.decode("ascii").replace("\n", "").replace("\r", "").replace("\t", "").isprintable():
        return f"; this looks like text, beginning with {start[:40].decode('ascii')!r}"
    return "; if it was copied or downloaded, compare its size with the original's"
