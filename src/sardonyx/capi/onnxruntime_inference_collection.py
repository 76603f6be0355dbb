"""The names of onnxruntime's module of Python classes."""

from __future__ import annotations

from sardonyx.session.context.model_compiler import ModelCompiler
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.io_binding import IOBinding
from sardonyx.values.device import OrtDevice, OrtDeviceVendorId, device_of
from sardonyx.values.ort_value import OrtValue, copy_tensors
from sardonyx.values.sparse_tensor import SparseTensor

__all__ = [
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "SparseTensor",
    "copy_tensors",
    "get_ort_device_type",
]

Session = InferenceSession
"""onnxruntime's base class of sessions, of which it has one."""


def get_ort_device_type(device_type: str) -> int:
    """Return the number of a kind of device; raises InvalidArgument for an unknown name."""
    return device_of(device_type).device_type()
