"""Devices of this machine and the providers that use them, as onnxruntime lists them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from sardonyx import errors
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arguments import as_path
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.values.device import OrtDeviceMemoryType, OrtDeviceVendorId
from sardonyx.values.memory_info import OrtAllocatorType, OrtMemoryInfo, OrtMemType
from sardonyx.values.named import NamedEnum
from sardonyx.version import ONNXRUNTIME_API

__all__ = [
    "OrtDeviceEpIncompatibilityReason",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtSyncStream",
    "cpu_memory_info",
    "get_ep_devices",
    "get_hardware_device_ep_incompatibility_details",
    "get_hardware_devices",
    "register_execution_provider_library",
    "unregister_execution_provider_library",
]


class OrtHardwareDeviceType(NamedEnum):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtExecutionProviderDevicePolicy(NamedEnum):
    """Which devices a session is to prefer."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtDeviceEpIncompatibilityReason(NamedEnum):
    """Why a provider cannot use a device; bits."""

    NONE = 0
    DRIVER_INCOMPATIBLE = 1
    DEVICE_INCOMPATIBLE = 2
    MISSING_DEPENDENCY = 4
    UNKNOWN = -(1 << 31)


@dataclasses.dataclass(frozen=True, slots=True)
class OrtHardwareDevice:
    """A device of this machine."""

    type: OrtHardwareDeviceType
    """Its kind."""
    vendor_id: int
    """The PCI vendor number of its maker; 0 where unknown."""
    vendor: str
    """Its maker; empty where unknown."""
    device_id: int
    """Its number; 0 for the processor."""
    metadata: dict[str, str] = dataclasses.field(default_factory=dict, hash=False)
    """Anything else."""


class OrtSyncStream:
    """A queue of work on a device; the CPU has none."""

    def get_handle(self) -> int:
        """Return 0."""
        return 0


@dataclasses.dataclass(frozen=True, slots=True)
class OrtEpDevice:
    """A device and a provider that uses it."""

    ep_name: str
    """The provider."""
    ep_vendor: str
    """Its maker."""
    ep_metadata: dict[str, str] = dataclasses.field(hash=False)
    """Facts about it, such as its version."""
    ep_options: dict[str, str] = dataclasses.field(hash=False)
    """Options with which it uses the device."""
    device: OrtHardwareDevice
    """The device."""

    def memory_info(self, memory_type: OrtDeviceMemoryType) -> OrtMemoryInfo | None:
        """Return None: the CPU provider uses the host's memory."""
        OrtDeviceMemoryType(memory_type)
        return None

    def create_sync_stream(self) -> OrtSyncStream:
        """Raise Fail: the CPU has no streams."""
        raise Fail(f"{self.ep_name} has no device with streams: it computes on the host's processor")


_VENDORS = {"GenuineIntel": ("Intel", OrtDeviceVendorId.INTEL), "AuthenticAMD": ("AMD", OrtDeviceVendorId.AMD)}


def get_hardware_devices() -> list[OrtHardwareDevice]:
    """Return the devices that providers of this build use: the host's processor."""
    name, number = _VENDORS.get(_cpu_vendor(), ("", OrtDeviceVendorId.NONE))
    return [OrtHardwareDevice(OrtHardwareDeviceType.CPU, int(number), name, 0)]


def get_ep_devices() -> list[OrtEpDevice]:
    """Return each device with each provider that uses it."""
    facts = {"version": ONNXRUNTIME_API}
    return [OrtEpDevice("CPUExecutionProvider", "sardonyx", facts, {}, device) for device in get_hardware_devices()]


def cpu_memory_info() -> OrtMemoryInfo:
    """Return the description of the host's memory."""
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)


def get_hardware_device_ep_incompatibility_details(ep_name: str, device: OrtHardwareDevice) -> Mapping[str, int | str]:
    """Return why a provider cannot use a device; raises InvalidArgument for a provider that has no devices.

    Returns:
        `reasons_bitmask` of OrtDeviceEpIncompatibilityReason, `notes` and `error_code`; 0 and empty where it can.
    """
    if ep_name != "CPUExecutionProvider":
        raise InvalidArgument(f"no provider {ep_name!r} has devices; there is CPUExecutionProvider")
    fits = device.type is OrtHardwareDeviceType.CPU
    reason = OrtDeviceEpIncompatibilityReason.NONE if fits else OrtDeviceEpIncompatibilityReason.DEVICE_INCOMPATIBLE
    return {
        "reasons_bitmask": int(reason),
        "notes": "" if fits else "CPUExecutionProvider uses the processor only",
        "error_code": 0,
    }


def register_execution_provider_library(registration_name: str, library_path: str) -> None:
    """Refuse a provider compiled for onnxruntime: sardonyx's providers are Python packages with an entry point.

    Raises:
        Fail: the library does not exist.
        NotImplemented: it does.
    """
    if not Path(as_path("library_path", library_path)).is_file():
        raise Fail(f"Failed to load library {library_path}: there is no such file")
    raise errors.NotImplemented(
        f"{registration_name}: providers compiled for onnxruntime cannot be loaded; docs/how-to/write-a-provider.md shows how a "
        "provider is written in Python"
    )


def unregister_execution_provider_library(registration_name: str) -> None:
    """Raise Fail: no provider library can have been registered."""
    raise Fail(f"Execution provider library: {registration_name} was not registered.")


@functools.cache
def _cpu_vendor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")), "")
