"""Models of any format: load and save.

model = load("model.onnx")            any file, folder or bytes that some format recognises by content
save(model, Path("model.ort"))        by the suffix, or by the name of a format
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.errors import Fail, SardonyxError, describe, located
from sardonyx.formats import onnx
from sardonyx.formats.external_data import InMemory
from sardonyx.formats.model_format import Loss, ModelFile, ModelFormat
from sardonyx.formats.onnx import Source
from sardonyx.formats.opened import OpenedModel, open_model
from sardonyx.formats.registry import find_format, format_for_path
from sardonyx.formats.wire import strip
from sardonyx.ir import Model

__all__ = ["load", "load_file", "model_file", "save"]


def load(
    source: Source,
    *,
    external_dir: str | os.PathLike[str] | None = None,
    in_memory: InMemory | None = None,
    opened: OpenedModel | None = None,
) -> Model:
    """Read a model of any format.

    Args:
        source: a path, the bytes of a file, an open binary file, or an onnx.ModelProto.
        external_dir: the folder of external data; by default the one that the model is in.
        in_memory: external data that the caller has in memory.
        opened: what `open_model` returned for `source`, where it was asked already.

    Raises:
        NoSuchFile: the file, or one that it needs, does not exist.
        InvalidProtobuf: the bytes are a model of no format.
        InvalidGraph: the model contradicts itself or its format.
        InvalidArgument: `source` is no file or no model, or a file that it needs lies outside its folder.
        NotImplemented: the model needs what is not known here.
        Fail: the system does not let us read the file, or its format failed.
    """
    if hasattr(source, "DESCRIPTOR"):
        return onnx.load(source, external_dir=external_dir, in_memory=in_memory)
    path = Path(os.fsdecode(source)) if isinstance(source, (str, os.PathLike)) else None
    try:
        opened = open_model(source, path) if opened is None else opened
    except SardonyxError as error:
        raise located(error, repr(str(path)) if path is not None else "model") from error
    if opened.format is None:
        return onnx.load(source, external_dir=external_dir, in_memory=in_memory, opened=opened)
    file = model_file(opened, None if external_dir is None else Path(external_dir), in_memory)
    model = _loaded(file, opened.format)
    model.path, model.placed, model.stamps = path, file.placed, dict(file.stamps)
    return model


def load_file(file: ModelFile) -> Model:
    """Return the model of a file; raises as `load` does."""
    known = find_format(file)
    if known is None:
        content = file.content.read(0, len(file.content)) if file.path is None else file.path
        opened = None if file.path is not None else OpenedModel(None, None, file.content, strip(file.content))
        model = onnx.load(content, external_dir=file.folder, in_memory=file.in_memory, opened=opened)
        file.stamps.update(model.stamps)
        return model
    return _loaded(file, known)


def model_file(opened: OpenedModel, external_dir: Path | None = None, in_memory: InMemory | None = None) -> ModelFile:
    """Return an opened model as its format reads it."""
    places = {(blob.offset, blob.size_bytes): number for number, blob in enumerate(opened.blobs.values())}
    return ModelFile(opened.path, opened.content, opened.stamp, external_dir=external_dir, in_memory=in_memory, places=places)


def save(model: Model, path: Path, name: str = "") -> Sequence[Loss]:
    """Write a model, all or nothing; returns what the format cannot express.

    Args:
        model: the model.
        path: where it goes; the suffix decides about the format.
        name: the format, where the suffix is not to decide.

    Raises:
        InvalidArgument: the format is not known, or cannot be written.
        NotImplemented: the format cannot express the model at all.
        Fail: the system does not let us write.
    """
    writer = format_for_path(path, name)
    assert writer.save is not None
    try:
        return writer.save(model, path)
    except SardonyxError:
        raise
    except OSError as error:
        raise Fail(f"the model cannot be saved as {str(path)!r}: {error.strerror or error}") from error


def _loaded(file: ModelFile, known: ModelFormat) -> Model:
    try:
        model = known.load(file)
    except SardonyxError as error:
        raise located(error, file.label) from error
    except Exception as error:
        check_cancelled()
        raise_interrupt(error)
        raise Fail(f"{file.label}: the format {known.name} failed to read it: {describe(error)}; its maker should know") from error
    if not isinstance(model, Model):
        raise Fail(f"{file.label}: the format {known.name} returned {type(model).__name__}; its `load` is to return an ir.Model")
    return model
