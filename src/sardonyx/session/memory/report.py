"""How much memory a session, or the process, takes: weights, packed weights, arenas and the like.

memory of model big.onnx                        bytes
weights                                     4,194,304
packed weights                            104,857,600
arenas                                      1,048,576
caches of shapes                                4,416
machine code                                   28,672
the model                                           0
total                                     110,133,568
of that shared with other sessions             28,672
outputs of a run, which are the caller's      131,072
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.held_memory import HeldKind, HeldMemory, common_bytes, held_array, union_bytes
from sardonyx.provider import HOST
from sardonyx.runtime.executor_memory import ExecutorMemory

__all__ = ["MemoryReport", "MemoryUse", "ProcessMemoryReport", "process_report", "session_report"]

_WIDTH = 80
_NUMBER = 18
_KINDS = (HeldKind.MAPPED, HeldKind.WEIGHTS, HeldKind.PACKED_WEIGHTS, HeldKind.CODE)


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryUse:
    """What one session keeps between runs, as it was when it was asked."""

    label: str
    """What messages call its model."""
    held: tuple[HeldMemory, ...]
    """Blocks of the host."""
    arenas: Mapping[str, int]
    """Memory -> bytes of arenas."""
    shared_arena_bytes: int
    """Of arenas of the host that other sessions use too."""
    cache_bytes: int
    """What is kept for known shapes."""
    model_bytes: int
    """The bytes of the model that are kept to read it again."""
    output_bytes: int
    """What the outputs of one run take."""
    bindings: int
    """How many sets of shapes are known."""
    silent: tuple[str, ...]
    """Providers that do not say what they keep."""

    @classmethod
    def of(cls, label: str, memory: ExecutorMemory, defaults: Iterable[Array], model_bytes: int, scratch_bytes: int) -> MemoryUse:
        """Return what a session keeps.

        Args:
            label: what messages call its model.
            memory: of its executors.
            defaults: the arrays of initializers that a feed may override.
            model_bytes: of the model that are kept.
            scratch_bytes: what native runs work in, besides arenas.
        """
        held = (*memory.held, *(held_array(array, HeldKind.WEIGHTS) for array in defaults))
        arenas = dict(memory.arenas)
        if scratch_bytes:
            arenas[HOST.name] = arenas.get(HOST.name, 0) + scratch_bytes
        return cls(
            label=label,
            held=held,
            arenas=arenas,
            shared_arena_bytes=memory.shared_arena_bytes,
            cache_bytes=memory.binding_bytes,
            model_bytes=model_bytes,
            output_bytes=memory.output_bytes,
            bindings=memory.bindings,
            silent=memory.silent,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Sums:
    """Bytes by purpose; what several hold is counted once."""

    weights_bytes: int
    """Constants as the model has them, on the host."""
    packed_bytes: int
    """Constants in the order in which kernels read them, besides."""
    arena_bytes: int
    """Arenas of the host, for intermediate tensors: idle ones, and those of runs under way."""
    cache_bytes: int
    """What is kept for sets of shapes that were seen."""
    code_bytes: int
    """Kernels."""
    model_bytes: int
    """The model's own bytes, where they are kept to read it again."""
    mapped_bytes: int
    """Weights in mapped files, whose pages the system may drop; not in `total_bytes`."""
    device_arenas: Mapping[str, int]
    """Memory of a device -> bytes of arenas in it; not in `total_bytes`."""
    silent: tuple[str, ...]
    """Providers that do not say what their programs keep: it is missing in the sums."""

    @property
    def total_bytes(self) -> int:
        """The sum of what lies in memory of the host."""
        own = self.weights_bytes + self.packed_bytes + self.code_bytes + self.model_bytes
        return own + self.arena_bytes + self.cache_bytes

    def rows(self) -> list[tuple[str, int]]:
        """Return the lines of the report: a name and bytes."""
        rows = [
            ("weights", self.weights_bytes),
            ("packed weights", self.packed_bytes),
            ("arenas", self.arena_bytes),
            ("caches of shapes", self.cache_bytes),
            ("machine code", self.code_bytes),
            ("the model", self.model_bytes),
            ("total", self.total_bytes),
        ]
        rows += [("mapped files, besides", self.mapped_bytes)] if self.mapped_bytes else []
        return rows + [(f"arenas of {name}, besides", size) for name, size in self.device_arenas.items()]


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryReport(_Sums):
    """How much memory a session takes; `print` shows a table."""

    label: str
    """What messages call the model."""
    shared_bytes: int
    """How much of the total other sessions of the process hold too, such as kernels."""
    output_bytes: int
    """What the outputs of a run with the latest shapes take; they are the caller's, and not in the total."""
    bindings: int
    """How many sets of shapes are known."""

    def to_dict(self) -> dict[str, object]:
        """Return the numbers by name, as JSON takes them."""
        return {**dataclasses.asdict(self), "silent": list(self.silent), "total_bytes": self.total_bytes}

    def __str__(self) -> str:
        rows = [*self.rows(), ("of that shared with other sessions", self.shared_bytes)]
        rows.append(("outputs of a run, which are the caller's", self.output_bytes))
        return _table(f"memory of model {self.label}", rows, self.silent)


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessMemoryReport(_Sums):
    """How much memory all sessions of a process take, what they share counted once; `print` shows a table."""

    sessions: tuple[MemoryReport, ...]
    """Each session by itself."""
    resident_bytes: int
    """What of the process is in memory, with Python, NumPy and all else; 0 where the system does not say."""

    @property
    def shared_bytes(self) -> int:
        """What the sums of the sessions count more than once, less what the total counts of it."""
        return sum(session.total_bytes for session in self.sessions) - self.total_bytes

    def to_dict(self) -> dict[str, object]:
        """Return the numbers by name, as JSON takes them."""
        sums = {field.name: getattr(self, field.name) for field in dataclasses.fields(_Sums)}
        return {
            **sums,
            "silent": list(self.silent),
            "device_arenas": dict(self.device_arenas),
            "total_bytes": self.total_bytes,
            "shared_bytes": self.shared_bytes,
            "resident_bytes": self.resident_bytes,
            "sessions": [session.to_dict() for session in self.sessions],
        }

    def __str__(self) -> str:
        rows = [*self.rows(), ("counted once, though several sessions hold it", self.shared_bytes)]
        rows.append(("the whole process, with Python and all else", self.resident_bytes))
        rows += [(f"session of {session.label}", session.total_bytes) for session in self.sessions]
        count = len(self.sessions)
        return _table(f"memory of {count} session{'' if count == 1 else 's'}", rows, self.silent)


def session_report(use: MemoryUse, others: Sequence[MemoryUse] = ()) -> MemoryReport:
    """Return the report of a session, beside the other ones of the process."""
    elsewhere = [block for other in others for block in _resident(other.held)]
    return MemoryReport(
        *_summed([use]),
        label=use.label,
        shared_bytes=common_bytes(_resident(use.held), elsewhere)
        + min(use.shared_arena_bytes, max((other.shared_arena_bytes for other in others), default=0)),
        output_bytes=use.output_bytes,
        bindings=use.bindings,
    )


def process_report(uses: Sequence[MemoryUse], resident_bytes: int) -> ProcessMemoryReport:
    """Return the report of all sessions of a process, of whose memory `resident_bytes` are resident."""
    reports = [session_report(use, [*uses[:place], *uses[place + 1 :]]) for place, use in enumerate(uses)]
    return ProcessMemoryReport(*_summed(uses), sessions=tuple(reports), resident_bytes=resident_bytes)


def _resident(blocks: Iterable[HeldMemory]) -> list[HeldMemory]:
    return [block for block in blocks if block.kind is not HeldKind.MAPPED]


def _summed(
    uses: Sequence[MemoryUse],
) -> tuple[int, int, int, int, int, int, int, dict[str, int], tuple[str, ...]]:
    """Return the fields of `_Sums`, in order."""
    blocks = [block for use in uses for block in use.held]
    sizes: dict[HeldKind, int] = {}
    for place, kind in enumerate(_KINDS):  # what lies in blocks of two kinds counts as the first
        before = union_bytes(block for block in blocks if block.kind in _KINDS[:place])
        sizes[kind] = union_bytes(block for block in blocks if block.kind in _KINDS[: place + 1]) - before
    arenas: dict[str, int] = {}
    for name, size in (item for use in uses for item in use.arenas.items()):
        arenas[name] = arenas.get(name, 0) + size
    return (
        sizes[HeldKind.WEIGHTS],
        sizes[HeldKind.PACKED_WEIGHTS],
        arenas.pop(HOST.name, 0) + max((use.shared_arena_bytes for use in uses), default=0),
        sum(use.cache_bytes for use in uses),
        sizes[HeldKind.CODE],
        sum(use.model_bytes for use in uses),
        sizes[HeldKind.MAPPED],
        arenas,
        tuple(dict.fromkeys(name for use in uses for name in use.silent)),
    )


def _table(title: str, rows: Sequence[tuple[str, int]], silent: Sequence[str]) -> str:
    lines = [(title, "bytes"), *((name, f"{size:,}") for name, size in rows)]
    width = min(max(len(name) for name, _ in lines), _WIDTH - _NUMBER)
    text = [f"{_short(name, width):<{width}}{number:>{_NUMBER}}" for name, number in lines]
    return "\n".join([*text, *(f"{name} does not say what its programs keep" for name in silent)])


def _short(text: str, width: int) -> str:
    """Return a text that is not wider than `width`: the end of a long one, which has the name of the file."""
    return text if len(text) <= width else f"…{text[1 - width :]}"
