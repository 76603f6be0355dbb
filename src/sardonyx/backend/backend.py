"""The class that `onnx.backend`'s tools call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from sardonyx import errors
from sardonyx.backend.backend_rep import SardonyxBackendRep
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions

__all__ = ["SardonyxBackend"]


class SardonyxBackend:
    """Runs ONNX models under the interface of onnx.backend.Backend; there are no instances."""

    @classmethod
    def is_compatible(cls, model: object, device: str | None = None, **_options: object) -> bool:
        """Return whether `device` is one of this build; models are judged when they are prepared."""
        return cls.supports_device("CPU" if device is None else device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device, such as "CPU" or "CPU:0", is one of this build."""
        return device.partition(":")[0].upper() == "CPU"

    @classmethod
    def is_opset_supported(cls, model: object) -> tuple[bool, str]:
        """Return True and an empty message: no model is refused by the number of its opset."""
        return True, ""

    @classmethod
    def prepare(cls, model: object, device: str | None = None, **options: object) -> SardonyxBackendRep:
        """Make a model ready.

        Args:
            model: a path, bytes, a ModelProto (Any: onnx is not imported here), a session, or what this method returned before.
            device: "CPU", or None for the default.
            options: attributes of SessionOptions.

        Raises:
            NotImplemented: the device is none of this build.
            InvalidArgument: an option is unknown.
        """
        if isinstance(model, SardonyxBackendRep):
            return model
        if device is not None and not cls.supports_device(device):
            raise errors.NotImplemented(f"Incompatible device expected '{device}', got 'CPU'")
        if isinstance(model, InferenceSession):
            return SardonyxBackendRep(model)
        return SardonyxBackendRep(InferenceSession(model, _session_options(options)))

    @classmethod
    def run_model(
        cls, model: object, inputs: Sequence[OnnxValue] | Mapping[str, object], device: str | None = None, **options: object
    ) -> list[OnnxValue]:
        """Prepare a model and compute its outputs; `options` are attributes of RunOptions."""
        return cls.prepare(model, device).run(inputs, **options)

    @classmethod
    def run_node(
        cls, node: object, inputs: object, device: str | None = None, outputs_info: object = None, **options: object
    ) -> None:
        """Raise NotImplemented: a model of one node is to be made and run instead."""
        raise errors.NotImplemented("single nodes are not run: make a model of the node, and run that")


def _session_options(given: Mapping[str, OnnxValue]) -> SessionOptions:
    options = SessionOptions()
    for name, value in given.items():
        if not hasattr(options, name) or isinstance(value, os.PathLike):
            raise InvalidArgument(f"prepare takes attributes of SessionOptions, which has no {name!r}")
        setattr(options, name, value)
    return options
