"""Where each buffer of a program lies: in an input, an output, a constant, or the arena; decided once, before any size is known."""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Sequence

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arena import Lifetime, PlacedBlock, place
from sardonyx.cancellation import checked
from sardonyx.dtypes import DataType
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.flow import Flow
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import RANDOM_SOURCE, STATUS, Buffer, KernelLaunch

__all__ = ["Home", "Storage", "addressed_bytes", "item_bytes", "size_bytes"]


class Home(enum.Enum):
    """A kind of memory."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    ARENA = "arena"
    STATUS = "status"
    RANDOM_SOURCE = "random source"


@dataclasses.dataclass(frozen=True, slots=True)
class _Tenant:
    """Buffers that share one place in the arena, one after another."""

    buffer: Buffer
    first: int
    last: int


class Storage:
    """The homes of all buffers of a program."""

    def __init__(self, steps: Sequence[KernelLaunch], inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
        """Decide the homes. `outputs` are roots, each made by a step, no two the same; their counts lie in the arena to the end."""
        self.steps = steps
        self.homes: dict[Buffer, tuple[Home, int]] = {buffer: (Home.INPUT, index) for index, buffer in enumerate(inputs)}
        self.homes.update((buffer, (Home.OUTPUT, index)) for index, buffer in enumerate(outputs))
        self.homes[STATUS] = (Home.STATUS, 0)
        self.homes[RANDOM_SOURCE] = (Home.RANDOM_SOURCE, 0)
        first: dict[Buffer, int] = {}
        last: dict[Buffer, int] = {}
        for index, step in enumerate(checked(steps)):
            for buffer in step.buffers:
                first.setdefault(buffer.root, index)
                last[buffer.root] = index
        last.update((buffer.count, len(steps)) for buffer in outputs if buffer.count is not None)
        self.flow = Flow(steps)
        self.flow.extend(first, last)
        for buffer in checked(first):
            if buffer not in self.homes and buffer.constant is not None:
                self.homes[buffer] = (Home.CONSTANT, 0)
        self._shares: dict[Buffer, Buffer] = {}
        self._share(steps, last)
        self._tenants = self._gather(first, last)
        for index, tenant in enumerate(checked(self._tenants)):
            self.homes[tenant.buffer] = (Home.ARENA, index)
        for buffer, host in self._shares.items():
            self.homes[buffer] = self.homes[self._host(host)]

    def tenant_of(self, buffer: Buffer) -> int:
        """Return the number of the place in the arena where a buffer lies."""
        return self.homes[buffer][1]

    def blocks(self, sizes: Sizes, empty: Collection[Buffer] = ()) -> list[int]:
        """Return for each place in the arena its size in bytes; those of the buffers in `empty` take none."""
        return [0 if tenant.buffer in empty else size_bytes(tenant.buffer, sizes) for tenant in self._tenants]

    def place(self, blocks: Sequence[int]) -> tuple[list[int], int]:
        """Return for each place in the arena its offset, where it has so many bytes, and the bytes of the whole arena."""
        return place([Lifetime(size, tenant.first, tenant.last) for size, tenant in zip(blocks, self._tenants, strict=True)])

    def arena(self, sizes: Sizes, empty: Collection[Buffer] = ()) -> tuple[list[int], int]:
        """Return for each place in the arena its offset in bytes, and the bytes of the whole arena; `empty` as in `blocks`."""
        return self.place(self.blocks(sizes, empty))

    def placed(self, sizes: Sizes) -> list[PlacedBlock]:
        """Return what lies in the arena, called by the step that fills it first."""
        offsets, _ = self.arena(sizes)
        return [
            PlacedBlock(self.steps[tenant.first].name, offset, size_bytes(tenant.buffer, sizes), tenant.first, tenant.last)
            for tenant, offset in zip(self._tenants, offsets, strict=True)
        ]

    def _share(self, steps: Sequence[KernelLaunch], last: dict[Buffer, int]) -> None:
        """Let a step write where one of its inputs was, where nobody needs that any more and the step itself reads it but once."""
        hosts: set[Buffer] = set()
        for index, step in enumerate(checked(steps)):
            written = step.buffers[step.writes[0]].root
            if written in self.homes or not step.in_place or step.buffers[step.writes[0]].base is not None:
                continue
            for place_in_step in step.in_place:
                source = step.buffers[place_in_step]
                host = source.root
                fits = host not in self.homes and source.base is None and host.constant is None and last[host] == index
                fits = fits and sum(buffer.root is host for buffer in step.buffers) == 1
                if fits and host not in hosts and _same_size(host, written):
                    self._shares[written] = host
                    hosts.add(host)
                    break

    def _host(self, buffer: Buffer) -> Buffer:
        """Return the buffer whose place this one takes in the end; the way there is short the next time."""
        host = buffer
        while host in self._shares:
            host = self._shares[host]
        while buffer is not host:
            self._shares[buffer], buffer = host, self._shares[buffer]
        return host

    def _gather(self, first: dict[Buffer, int], last: dict[Buffer, int]) -> list[_Tenant]:
        spans: dict[Buffer, tuple[int, int]] = {}
        for buffer, begin in checked(first.items()):
            if buffer in self.homes:
                continue
            host = self._host(buffer)
            known = spans.get(host, (begin, begin))
            spans[host] = (min(known[0], begin), max(known[1], last[buffer]))
        return [_Tenant(buffer, begin, end) for buffer, (begin, end) in spans.items()]


def _same_size(left: Buffer, right: Buffer) -> bool:
    return item_bytes(left.dtype) == item_bytes(right.dtype) and product(left.shape) == product(right.shape)


def item_bytes(dtype: DataType) -> int:
    """Return bytes of one element in memory."""
    return int(dtype.numpy.itemsize)


def size_bytes(buffer: Buffer, sizes: Sizes) -> int:
    """Return bytes of a buffer for given sizes."""
    return sizes.product(buffer.shape) * item_bytes(buffer.dtype)


def addressed_bytes(buffer: Buffer, sizes: Sizes) -> int:
    """Return bytes of a buffer; for an empty one whose strides are beyond 63 bits, which no array can have, those of a stride."""
    needed = size_bytes(buffer, sizes)
    strided = math.prod(max(size, 1) for size in sizes.shape(buffer.shape)) * item_bytes(buffer.dtype)
    return needed or (strided if strided >> 63 else 0)
