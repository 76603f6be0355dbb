"""The names of onnxruntime's module of Python classes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence

from sardonyx.errors import InvalidArgument
from sardonyx.session.adapters import AdapterFormat
from sardonyx.session.context.model_compiler import ModelCompiler
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.io_binding import IOBinding
from sardonyx.session.session import Session
from sardonyx.values.device import OrtDevice, OrtDeviceVendorId, device_of
from sardonyx.values.ort_value import OrtValue, copy_tensors
from sardonyx.values.sparse_tensor import SparseTensor

__all__ = [
    "AdapterFormat",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "SparseTensor",
    "check_and_normalize_provider_args",
    "copy_tensors",
    "get_ort_device_type",
    "get_vendor_id_for_device_type",
]


_VENDORS = {
    "cann": OrtDeviceVendorId.HUAWEI,
    "cuda": OrtDeviceVendorId.NVIDIA,
    "dml": OrtDeviceVendorId.MICROSOFT,
    "webgpu": OrtDeviceVendorId.NONE,
}


def get_ort_device_type(device_type: str) -> int:
    """Return the number of a kind of device; raises InvalidArgument for an unknown name."""
    return device_of(device_type).device_type()


def get_vendor_id_for_device_type(device_type: str) -> OrtDeviceVendorId | None:
    """Return the maker of a kind of device; None for a kind that several make, and for an unknown one."""
    return _VENDORS.get(device_type)


def check_and_normalize_provider_args(
    providers: object,
    provider_options: object,
    available_provider_names: Collection[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """Return the names and options of providers as two lists of one length, without names that come again.

    Args:
        providers: names, or (name, options) pairs; None for none.
        provider_options: options for each of `providers`, where these are names.
        available_provider_names: a name that is not among them is warned of.

    Raises:
        InvalidArgument: an argument is no list, an item is malformed, the lengths differ, or options come both ways.
    """
    if providers is None:
        return [], []
    if not isinstance(providers, Sequence) or isinstance(providers, str):
        raise InvalidArgument(f"providers is a list, got {type(providers).__name__}")
    options = _options_of(providers, provider_options)
    found: dict[str, dict[str, str]] = {}
    for request, given in zip(providers, options, strict=True):
        name, own = request if isinstance(request, tuple) and len(request) == 2 else (request, given)
        if not isinstance(name, str) or not isinstance(own, Mapping):
            raise InvalidArgument(f"a provider is a name or a (name, options) pair, got {request!r}")
        if name in found:
            warnings.warn(f"provider {name!r} is named more than once; its first options hold", UserWarning, stacklevel=2)
            continue
        if name not in available_provider_names:
            message = f"provider {name!r} is not available here; available are {', '.join(available_provider_names)}"
            warnings.warn(message, UserWarning, stacklevel=2)
        found[name] = {str(key): str(value) for key, value in own.items()}
    return list(found), list(found.values())


def _options_of(providers: Sequence[object], given: object) -> Sequence[Mapping[object, object]]:
    """Return options for each provider; raises InvalidArgument where `given` is no list of as many mappings."""
    if given is None:
        return [{} for _ in providers]
    if not isinstance(given, Sequence) or not all(isinstance(item, Mapping) for item in given):
        raise InvalidArgument(f"provider_options is a list of dictionaries, got {given!r:.100}")
    if len(given) != len(providers):
        raise InvalidArgument(f"provider_options has {len(given)} entries for {len(providers)} providers; give one for each")
    if any(isinstance(item, tuple) for item in providers) and any(given):
        raise InvalidArgument("options come with the providers or in provider_options, not both")
    return list(given)
