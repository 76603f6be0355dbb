"""The class that `onnx.backend`'s tools call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sardonyx import errors
from sardonyx.backend.backend_rep import SardonyxBackendRep
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions
from sardonyx.session.run_options import RunOptions

__all__ = ["OnnxRuntimeBackend", "SardonyxBackend", "is_compatible", "prepare", "run", "supports_device"]

_SESSION_OPTIONS = frozenset(
    "enable_cpu_mem_arena enable_mem_pattern enable_mem_reuse execution_mode execution_order graph_optimization_level "
    "inter_op_num_threads intra_op_num_threads log_severity_level log_verbosity_level logid use_deterministic_compute "
    "use_per_session_threads".split()
)
"""Attributes of SessionOptions that `prepare` sets: those that have no file written, whatever the caller was handed."""


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
            options: attributes of SessionOptions; names that it lacks have no effect, since those of `run_model` come here too.

        Raises:
            NotImplemented: the device is none of this build.
            InvalidArgument: an option may have files written, such as `optimized_model_filepath`.
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
        """Prepare a model and compute its outputs; `options` are attributes of SessionOptions and RunOptions."""
        of_runs = RunOptions()
        session_options = {name: value for name, value in options.items() if not hasattr(of_runs, name)}
        shared = {name: value for name, value in options.items() if hasattr(of_runs, name)}
        return cls.prepare(model, device, **session_options).run(inputs, **shared)

    @classmethod
    def run_node(
        cls, node: object, inputs: object, device: str | None = None, outputs_info: object = None, **options: object
    ) -> None:
        """Raise NotImplemented: a model of one node is to be made and run instead."""
        raise errors.NotImplemented("single nodes are not run: make a model of the node, and run that")


def _session_options(given: Mapping[str, OnnxValue]) -> SessionOptions:
    options = SessionOptions()
    for name, value in given.items():
        if name in _SESSION_OPTIONS:
            setattr(options, name, value)
        elif hasattr(options, name):
            raise InvalidArgument(
                f"SessionOptions attribute {name!r} is not permitted here; permitted are {', '.join(sorted(_SESSION_OPTIONS))}"
            )
    return options


OnnxRuntimeBackend = SardonyxBackend
"""The name that onnxruntime gives the class."""

is_compatible = SardonyxBackend.is_compatible
prepare = SardonyxBackend.prepare
run = SardonyxBackend.run_model
supports_device = SardonyxBackend.supports_device
