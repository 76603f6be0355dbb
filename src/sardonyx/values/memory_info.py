"""Descriptions of memory and allocators, with the names and numbers of onnxruntime's.

sardonyx allocates from arenas of its own, which the session options control; what is registered here is checked and kept, and
changes nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import SupportsIndex

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arguments import as_mapping, as_text, instance
from sardonyx.errors import InvalidArgument
from sardonyx.forks import new_lock
from sardonyx.values.device import OrtDeviceMemoryType
from sardonyx.values.named import NamedEnum

__all__ = [
    "ArenaExtendStrategy",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "registered_allocators",
]


class OrtAllocatorType(NamedEnum):
    """How memory is handed out."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(NamedEnum):
    """Whose memory: the provider's own, or the host's for its inputs and outputs."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtMemoryInfoDeviceType(NamedEnum):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class ArenaExtendStrategy(NamedEnum):
    """How an arena grows."""

    kNextPowerOfTwo = 0  # noqa: N815  onnxruntime's names
    kSameAsRequested = 1  # noqa: N815  onnxruntime's names


@dataclasses.dataclass(frozen=True, slots=True)
class _Fields:
    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType
    device_mem_type: OrtDeviceMemoryType
    device_vendor_id: int
    device_type: OrtMemoryInfoDeviceType


class OrtMemoryInfo:
    """A description of memory."""

    __slots__ = ("_fields",)

    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType) -> None:
        """Describe the memory of a device that has a name of onnxruntime's, such as "Cpu" or "Cuda".

        Raises:
            InvalidArgument: another name; `create_v2` takes those.
        """
        if as_text("name", name) not in _DEVICES:
            raise InvalidArgument(
                f"Specified device is not supported: {name!r}; known: {', '.join(_DEVICES)}. Use OrtMemoryInfo.create_v2."
            )
        kind, vendor = _DEVICES[name]
        memory = OrtDeviceMemoryType.DEFAULT
        self._fields = _Fields(name, OrtAllocatorType(allocator_type), device_id, OrtMemType(mem_type), memory, vendor, kind)

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        """Describe the memory of any device under any name; `alignment` is in bytes."""
        if alignment < 0 or alignment & (alignment - 1):
            raise InvalidArgument(f"alignment is a power of two in bytes, or 0 for the default, got {alignment}")
        made = OrtMemoryInfo.__new__(OrtMemoryInfo)
        memory = OrtDeviceMemoryType(mem_type)
        side = OrtMemType.CPU_OUTPUT if memory is OrtDeviceMemoryType.HOST_ACCESSIBLE else OrtMemType.DEFAULT
        kind = OrtMemoryInfoDeviceType(device_type)
        made._fields = _Fields(name, OrtAllocatorType(allocator_type), device_id, side, memory, vendor_id, kind)
        return made

    @property
    def name(self) -> str:
        """Its name."""
        return self._fields.name

    @property
    def allocator_type(self) -> OrtAllocatorType:
        """How its memory is handed out."""
        return self._fields.allocator_type

    @property
    def device_id(self) -> int:
        """The index of its device."""
        return self._fields.device_id

    @property
    def mem_type(self) -> OrtMemType:
        """Whose memory it is."""
        return self._fields.mem_type

    @property
    def device_mem_type(self) -> OrtDeviceMemoryType:
        """Which memory of the device."""
        return self._fields.device_mem_type

    @property
    def device_vendor_id(self) -> int:
        """The PCI vendor number of the device's maker."""
        return self._fields.device_vendor_id

    @property
    def is_cpu(self) -> bool:
        """Whether it is the host's memory."""
        return self._fields.device_type is OrtMemoryInfoDeviceType.CPU

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrtMemoryInfo) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    def __repr__(self) -> str:
        return f"OrtMemoryInfo(name={self.name!r}, device_id={self.device_id}, allocator_type={self.allocator_type})"


_DEVICES = {
    "Cpu": (OrtMemoryInfoDeviceType.CPU, 0),
    "Cuda": (OrtMemoryInfoDeviceType.GPU, 0x10DE),
    "CudaPinned": (OrtMemoryInfoDeviceType.CPU, 0x10DE),
    "Cann": (OrtMemoryInfoDeviceType.NPU, 0x19E5),
    "CannPinned": (OrtMemoryInfoDeviceType.CPU, 0x19E5),
    "DML": (OrtMemoryInfoDeviceType.GPU, 0x1414),
    "OpenVINO_CPU": (OrtMemoryInfoDeviceType.CPU, 0x8086),
    "OpenVINO_GPU": (OrtMemoryInfoDeviceType.GPU, 0x8086),
    "WebGPU_Buffer": (OrtMemoryInfoDeviceType.GPU, 0),
}

_SIZES = (
    "max_mem",
    "arena_extend_strategy",
    "initial_chunk_size_bytes",
    "max_dead_bytes_per_chunk",
    "initial_growth_chunk_size_bytes",
    "max_power_of_two_extend_bytes",
)


class OrtArenaCfg:
    """Sizes of an arena; -1 leaves a size to the allocator."""

    def __init__(self, *arguments: Mapping[str, SupportsIndex] | SupportsIndex) -> None:
        """Make sizes.

        Args:
            arguments: a dictionary of the names below, or the integers max_mem, arena_extend_strategy, initial_chunk_size_bytes and
                max_dead_bytes_per_chunk.

        Raises:
            InvalidArgument: a name is unknown, or the arguments are neither.
        """
        self.max_mem = 0
        self.arena_extend_strategy = -1
        self.initial_chunk_size_bytes = -1
        self.max_dead_bytes_per_chunk = -1
        self.initial_growth_chunk_size_bytes = -1
        self.max_power_of_two_extend_bytes = -1
        for name, number in _sizes(arguments).items():
            if name not in _SIZES:
                raise InvalidArgument(f"Invalid OrtArenaCfg option: {name!r}; known: {', '.join(_SIZES)}")
            setattr(self, name, operator.index(number))


def _sizes(arguments: tuple[Mapping[str, SupportsIndex] | SupportsIndex, ...]) -> Mapping[str, SupportsIndex]:
    first = arguments[0] if arguments else None
    if len(arguments) == 1 and isinstance(first, Mapping):
        return first
    numbers = [item for item in arguments if not isinstance(item, Mapping)]
    if len(arguments) == 4 and len(numbers) == 4:
        return dict(zip(_SIZES[:4], numbers, strict=True))
    raise InvalidArgument(f"OrtArenaCfg takes a dictionary or four integers ({', '.join(_SIZES[:4])}), got {arguments!r}")


_REGISTERED: dict[tuple[str, OrtMemoryInfo], OrtArenaCfg] = {}
_LOCK = new_lock()


def create_and_register_allocator(memory_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None) -> None:
    """Register an allocator for the host's memory, shared by sessions with `session.use_env_allocators`.

    These take their arenas from one pool, which never has more than `max_mem` bytes (0 for any number): a run that needs more is a
    RuntimeException. The other sizes say how onnxruntime's allocator grows, which this one does not: it has one buffer per run.

    Raises:
        InvalidArgument: the memory is not the host's.
    """
    create_and_register_allocator_v2("CPUExecutionProvider", memory_info, {}, arena_cfg)


def create_and_register_allocator_v2(
    provider_type: str, memory_info: OrtMemoryInfo, options: Mapping[str, str], arena_cfg: OrtArenaCfg | None
) -> None:
    """Register an allocator of a provider; as `create_and_register_allocator`.

    Raises:
        InvalidArgument: the provider is not CPUExecutionProvider, or the memory is not the host's.
    """
    instance("memory_info", memory_info, OrtMemoryInfo)
    if arena_cfg is not None:
        instance("arena_cfg", arena_cfg, OrtArenaCfg)
    if provider_type != "CPUExecutionProvider" or not memory_info.is_cpu:
        raise InvalidArgument(
            f"allocators can be registered for CPUExecutionProvider and the host's memory, got {provider_type}, {memory_info}"
        )
    for key, text in as_mapping("options", options).items():
        if {type(key), type(text)} != {str}:
            raise InvalidArgument(f"provider options are text, got {key!r}: {text!r}")
    with _LOCK:
        _REGISTERED[provider_type, memory_info] = arena_cfg or OrtArenaCfg({})


def registered_allocators() -> dict[tuple[str, OrtMemoryInfo], OrtArenaCfg]:
    """Return what was registered: (provider, memory) -> sizes."""
    with _LOCK:
        return dict(_REGISTERED)
