"""Devices, with the names and numbers of onnxruntime's OrtDevice.

OrtDevice.make("cpu", 0)                  a device by name
OrtDevice(OrtDevice.cpu(), 0, 0)          a device by type, memory type and index
"""

from __future__ import annotations

import enum
import operator
from typing import SupportsIndex

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arguments import as_index
from sardonyx.errors import InvalidArgument
from sardonyx.values.named import NamedEnum

__all__ = ["CPU", "OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId", "device_of"]


class OrtDeviceVendorId(enum.IntEnum):
    """The PCI vendor numbers of device makers."""

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtDeviceMemoryType(NamedEnum):
    """Which memory of a device."""

    DEFAULT = 0
    """Its own."""
    HOST_ACCESSIBLE = 5
    """Memory that the host reads and writes too."""


_CPU, _GPU, _FPGA, _NPU, _DML = 0, 1, 2, 3, 4

_BY_NAME = {
    "cpu": (_CPU, OrtDeviceVendorId.NONE),
    "cuda": (_GPU, OrtDeviceVendorId.NVIDIA),
    "gpu": (_GPU, OrtDeviceVendorId.NONE),
    "webgpu": (_GPU, OrtDeviceVendorId.NONE),
    "cann": (_NPU, OrtDeviceVendorId.HUAWEI),
    "npu": (_NPU, OrtDeviceVendorId.NONE),
    "fpga": (_FPGA, OrtDeviceVendorId.NONE),
    "dml": (_DML, OrtDeviceVendorId.MICROSOFT),
}
_NAMES = {_CPU: "cpu", _GPU: "gpu", _FPGA: "fpga", _NPU: "npu", _DML: "dml"}


@dataclasses.dataclass(frozen=True, slots=True)
class _Fields:
    kind: int
    memory: int
    vendor: int
    index: int


class OrtDevice:
    """A device that tensors lie on."""

    __slots__ = ("_fields",)

    _fields: _Fields

    def __init__(self, *arguments: SupportsIndex | OrtDevice) -> None:
        """Make a device.

        Args:
            arguments: another device, or the integers (type, memory type, index), or (type, memory type, vendor, index).

        Raises:
            InvalidArgument: they are none of these.
        """
        if len(arguments) == 1 and isinstance(arguments[0], OrtDevice):
            self._fields = arguments[0]._fields
            return
        numbers = [operator.index(item) for item in arguments if not isinstance(item, OrtDevice)]
        if len(numbers) != len(arguments) or len(numbers) not in (3, 4):
            raise InvalidArgument(
                f"OrtDevice takes a device, or its type, memory type, [vendor] and index as integers, got {arguments!r}"
            )
        kind, memory, *vendor, index = numbers
        self._fields = _Fields(kind, memory, vendor[0] if vendor else 0, index)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int | OrtDeviceVendorId = -1) -> OrtDevice:
        """Return the device of a name such as "cpu" or "cuda"; `vendor_id` of -1 is the vendor that the name implies."""
        kind, vendor = _of_name(ort_device_name)
        return OrtDevice(
            kind, OrtDeviceMemoryType.DEFAULT, vendor if vendor_id < 0 else vendor_id, as_index("device_id", device_id)
        )

    @property
    def name(self) -> str:
        """Its kind as text, such as "cpu"; "cuda" for a GPU of NVIDIA's."""
        if self._fields.kind == _GPU and self._fields.vendor == OrtDeviceVendorId.NVIDIA:
            return "cuda"
        return _NAMES.get(self._fields.kind, f"device {self._fields.kind}")

    @property
    def is_cpu(self) -> bool:
        """Whether it is the host's processor."""
        return self._fields.kind == _CPU

    def device_id(self) -> int:
        """Return its index among the devices of its kind."""
        return self._fields.index

    def device_type(self) -> int:
        """Return the number of its kind."""
        return self._fields.kind

    def mem_type(self) -> int:
        """Return which memory of it is meant, as a number of OrtDeviceMemoryType."""
        return self._fields.memory

    def vendor_id(self) -> int:
        """Return the PCI vendor number of its maker, 0 for any."""
        return self._fields.vendor

    device_mem_type = mem_type
    device_vendor_id = vendor_id

    def _get_c_device(self) -> OrtDevice:
        return self

    @staticmethod
    def cpu() -> int:
        """Return the type of the host's processor."""
        return _CPU

    @staticmethod
    def cuda() -> int:
        """Return the type of GPUs."""
        return _GPU

    gpu = cuda
    webgpu = cuda

    @staticmethod
    def fpga() -> int:
        """Return the type of FPGAs."""
        return _FPGA

    @staticmethod
    def npu() -> int:
        """Return the type of neural processors."""
        return _NPU

    cann = npu

    @staticmethod
    def dml() -> int:
        """Return the type of DirectML devices."""
        return _DML

    @staticmethod
    def default_memory() -> int:
        """Return the number of a device's own memory."""
        return OrtDeviceMemoryType.DEFAULT

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrtDevice) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    def __repr__(self) -> str:
        return f"OrtDevice({self.name}:{self.device_id()})"


CPU = OrtDevice(_CPU, 0, 0)
"""The host's processor."""


def device_of(device: str | OrtDevice, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
    """Return a device given as one or by its name.

    Raises:
        InvalidArgument: the name is unknown.
    """
    return device if isinstance(device, OrtDevice) else OrtDevice.make(device, device_id, vendor_id)


def _of_name(name: str) -> tuple[int, OrtDeviceVendorId]:
    if str(name).lower() not in _BY_NAME:
        raise InvalidArgument(f"Unsupported device type: {name!r}; known: {', '.join(_BY_NAME)}")
    return _BY_NAME[name.lower()]
