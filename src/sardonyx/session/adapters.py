"""LoRA adapters: named tensors in a file, which a run feeds to the inputs that a model has for them.

adapter = ort.LoraAdapter()
adapter.Load("style.onnx_adapter")
options = ort.RunOptions()
options.add_active_adapter(adapter)
session.run(None, feed, options)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import SupportsIndex

from sardonyx.arguments import as_index, as_mapping, as_path, instance
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.formats import adapter as adapter_format
from sardonyx.formats.adapter import AdapterFile
from sardonyx.values.ort_value import OrtValue

__all__ = ["AdapterFormat", "LoraAdapter", "with_adapters"]


class LoraAdapter:
    """The tensors of an adapter, which runs feed; nothing until `Load` reads a file."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._file: AdapterFile | None = None

    def Load(self, file_path: str | os.PathLike[str]) -> None:  # noqa: N802  the name that onnxruntime gives it
        """Read the file of an adapter.

        Raises:
            NoSuchFile: there is none.
            Fail: it is no adapter.
        """
        self._file = adapter_format.load(as_path("file_path", file_path))

    @property
    def parameters(self) -> Mapping[str, Array]:
        """Input of the model -> what is fed to it; raises InvalidArgument where nothing was loaded."""
        if self._file is None:
            raise InvalidArgument("this LoraAdapter holds nothing: call Load with the path of an adapter")
        return self._file.parameters


class AdapterFormat:
    """The content of an adapter's file, to be read, changed and written."""

    def __init__(self, adapter: AdapterFile | None = None) -> None:
        """Hold what was read, or nothing."""
        held = AdapterFile({}) if adapter is None else instance("adapter", adapter, AdapterFile, "what read_adapter reads")
        self._format_version, self._adapter_version = held.format_version, held.adapter_version
        self._model_version = held.model_version
        self._parameters = {name: OrtValue.of(array) for name, array in held.parameters.items()}

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        """Read a file; raises NoSuchFile or Fail as `LoraAdapter.Load` does."""
        return AdapterFormat(adapter_format.load(as_path("file_path", file_path)))

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        """Write a file.

        Raises:
            InvalidArgument: a parameter is no tensor, or of a type that the format lacks, such as STRING.
            Fail: the file cannot be written.
        """
        arrays: dict[str, Array] = {}
        held: Mapping[str, OnnxValue] = self._parameters
        for name, value in held.items():
            if not isinstance(value, OrtValue) or not value.is_tensor():
                raise InvalidArgument(f"adapter parameter {name!r} is a tensor in an OrtValue, got {value!r:.100}")
            arrays[name] = value.value
        try:
            adapter_format.save(AdapterFile(arrays, self._adapter_version, self._model_version), file_path)
        except OSError as error:
            raise Fail(f"the adapter cannot be written to {file_path!r}: {error.strerror or error}") from error

    def get_format_version(self) -> int:
        """Return the version of the file's format."""
        return self._format_version

    def set_adapter_version(self, adapter_version: SupportsIndex) -> None:
        """Set the adapter's own version, a number of 32 bits."""
        self._adapter_version = _version("adapter_version", adapter_version)

    def get_adapter_version(self) -> int:
        """Return the adapter's own version."""
        return self._adapter_version

    def set_model_version(self, model_version: SupportsIndex) -> None:
        """Set the version of the model that the adapter is for, a number of 32 bits."""
        self._model_version = _version("model_version", model_version)

    def get_model_version(self) -> int:
        """Return the version of the model that the adapter is for."""
        return self._model_version

    format_version = property(get_format_version)
    """The names of these in onnxruntime's compiled module: the version of the format, of the adapter, and of the model."""
    adapter_version = property(get_adapter_version, set_adapter_version)
    model_version = property(get_model_version, set_model_version)

    def set_parameters(self, params: Mapping[str, OrtValue]) -> None:
        """Set the tensors: input of the model -> what is fed to it."""
        self._parameters = dict(as_mapping("params", params))

    def get_parameters(self) -> dict[str, OrtValue]:
        """Return the tensors; those of a file share its buffer, and cannot be written."""
        return dict(self._parameters)

    parameters = property(get_parameters, set_parameters)
    """The tensors, under their name in onnxruntime's compiled module."""


def with_adapters(feed: Mapping[str, OnnxValue], adapters: tuple[LoraAdapter, ...]) -> Mapping[str, OnnxValue]:
    """Return a feed with what adapters feed besides.

    Raises:
        InvalidArgument: two of them feed one input, or the feed does so itself.
    """
    if not adapters or not isinstance(feed, Mapping):
        return feed
    joined = dict(feed)
    for adapter in adapters:
        for name, array in adapter.parameters.items():
            if name in joined:
                raise InvalidArgument(f"the input {name!r} is fed twice: by an active adapter, and by the feed or another adapter")
            joined[name] = array
    return joined


def _version(name: str, given: SupportsIndex) -> int:
    number = as_index(name, given)
    if not -(1 << 31) <= number < 1 << 31:
        raise InvalidArgument(f"{name} is a number of 32 bits, got {number}")
    return number
