"""Weights of compiled partitions that stay in the model they come from: found there by their elements, and read there by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EPFail, NoSuchFile, SardonyxError, located
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.external_data import ExternalData
from sardonyx.formats.onnx import external_places
from sardonyx.formats.program_archive import block_key
from sardonyx.formats.program_file import bytes_of
from sardonyx.ir import Tensor, Value
from sardonyx.session.context.data import OrtExternalInitializerInfo
from sardonyx.session.settings.keys import CONTEXT_SOURCE
from sardonyx.session.settings.settings import LoadSettings

__all__ = ["SourceModel", "external_infos", "name_beside", "names_by_content"]

_NARROW = (DataType.FLOAT16, DataType.BFLOAT16, DataType.INT8, DataType.UINT8)
_LEAST_BYTES = 1024
"""Smaller weights are kept in programs: each name takes place too."""


def names_by_content(path: Path, load: LoadSettings) -> dict[bytes, str]:
    """Return for each weight of the model at `path`, read as `load` says, what its elements are known by, and its name.

    Those of narrow types are known in float32 too, which they may run in.
    """
    found = {}
    for name, tensor in _weights(path, load):
        if tensor.size_bytes >= _LEAST_BYTES:
            found[block_key(bytes_of(tensor.numpy()))] = name
        if tensor.size_bytes >= _LEAST_BYTES and tensor.dtype in _NARROW:
            found[block_key(bytes_of(tensor.numpy().astype(np.float32)))] = name
        tensor.release()
    return found


def name_beside(source: Path, context: Path) -> str:
    """Return the name by which the model `context` finds `source`: its path where that lies below, else the file's name."""
    folder, path = context.parent.resolve(), source.resolve()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else source.name


def external_infos(path: Path, load: LoadSettings) -> Callable[[str, Tensor], OrtExternalInitializerInfo | None]:
    """Return a function that gives the external file of an initializer, by name and elements."""
    places = external_places(path)
    held = {name: tensor for name, tensor in _weights(path, load) if name in places}

    def info_of(name: str, tensor: Tensor) -> OrtExternalInitializerInfo | None:
        own = held.get(name)
        if own is None or bytes_of(own.numpy()) != bytes_of(tensor.numpy()):
            return None
        location, offset, length = places[name]
        return OrtExternalInitializerInfo(location, offset, length or own.size_bytes)

    return info_of


class SourceModel:
    """The model that weights are left in, read when the first is asked for."""

    def __init__(self, chosen: str, folder: Path | None, load: LoadSettings) -> None:
        """Look at the path `chosen`, or, where that is empty, for the file that a node names below `folder`."""
        self._chosen, self._folder, self._load = chosen, folder, load
        self._found: dict[str, dict[str, Tensor]] = {}

    def values(self, names: Sequence[str], location: str) -> list[Value]:
        """Return the weights `names` as constants.

        Args:
            names: of initializers; those that the model lacks are left out.
            location: what the node says of where the model is.

        Raises:
            NoSuchFile: the model is not there.
            EPFail: nobody says where it is.
            SardonyxError: it cannot be read, or the node's name for it leads out of the folder.
        """
        if location not in self._found:
            self._found[location] = dict(_weights(self._path(location), self._load))
        tensors = self._found[location]
        made = [Value(name) for name in names if name in tensors]
        for value in made:
            value.constant = tensors[value.name]
        return made

    def _path(self, location: str) -> Path:
        if self._chosen:
            return Path(self._chosen)
        if not location or self._folder is None:
            raise EPFail(
                f"its weights are in the model that it was compiled from; set the config entry {CONTEXT_SOURCE.name} to its path"
            )
        try:
            ExternalData(self._folder).check(location, "the model that weights are left in")
        except NoSuchFile as error:
            raise NoSuchFile(f"{error}, or set the config entry {CONTEXT_SOURCE.name} to where it is") from error
        return self._folder / location


def _weights(path: Path, load: LoadSettings) -> Iterator[tuple[str, Tensor]]:
    try:
        graph = onnx_format.load(path, external_dir=load.external_folder).graph
    except SardonyxError as error:
        raise located(error, "the model that weights are left in") from error
    for name, value in graph.initializers.items():
        if value.constant is not None and value.constant.dtype is not DataType.STRING:
            yield name, value.constant
