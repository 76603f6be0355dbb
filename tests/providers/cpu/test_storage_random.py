"""Random programs in the arena: whatever shares memory, each step reads what was written for it."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.dtypes import Array, DataType
from sardonyx.ir import symbol
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer, KernelLaunch
from sardonyx.providers.cpu.storage import Home, Storage, item_bytes

_SIZES = Sizes({"n": 3, "m": 70})
_SHAPES = [(4,), (symbol("n"), 8), (8, symbol("n")), (symbol("m"),), (2, symbol("m")), (0,), (1,)]
_TYPES = [DataType.FLOAT, DataType.INT64, DataType.UINT8]


@dataclasses.dataclass(frozen=True)
class _Case:
    steps: list[KernelLaunch]
    inputs: list[Buffer]
    outputs: list[Buffer]


@st.composite
def _programs(draw: st.DrawFn) -> _Case:
    """Steps that read what was made before, or views of it, and may write in place; some results are given out."""
    inputs = [Buffer(draw(st.sampled_from(_TYPES)), draw(st.sampled_from(_SHAPES))) for _ in range(draw(st.integers(1, 2)))]
    weight = Buffer(DataType.FLOAT, (4,), np.zeros(4, np.float32))
    known, made, steps = [*inputs, weight], [], []
    for number in range(draw(st.integers(1, 12))):
        reads = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        drawn = Buffer(draw(st.sampled_from(_TYPES)), draw(st.sampled_from(_SHAPES)))
        like = draw(st.sampled_from([reads[0].root, drawn]))
        result = Buffer(like.dtype, like.shape)
        in_place = tuple(draw(st.sets(st.integers(0, len(reads) - 1))))
        name = f"op{number}"
        steps.append(KernelLaunch(name, name, "k", (*reads, result), (len(reads),), lambda sizes: ([], 1), in_place))
        made.append(result)
        known.append(result)
        if draw(st.booleans()):
            known.append(Buffer(result.dtype, result.shape, base=result))
    outputs = {made[-1], *draw(st.sets(st.sampled_from(made), max_size=2))}
    return _Case(steps, inputs, [buffer for buffer in made if buffer in outputs])


def _bytes_of(buffer: Buffer) -> int:
    return int(np.prod(_SIZES.shape(buffer.root.shape), dtype=np.int64)) * item_bytes(buffer.root.dtype)


def _memory(case: _Case, storage: Storage) -> dict[Buffer, Array]:
    """The bytes of each buffer, in one array for the arena and one of its own for everything else."""
    offsets, arena_bytes = storage.arena(_SIZES)
    arena = np.zeros(arena_bytes, np.int64)
    places: dict[tuple[Home, int], Array] = {}
    found: dict[Buffer, Array] = {}
    for buffer in {buffer.root for step in case.steps for buffer in step.buffers}:
        home, index = storage.homes[buffer]
        size = _bytes_of(buffer)
        if home is Home.ARENA:
            assert offsets[index] + size <= arena_bytes
            found[buffer] = arena[offsets[index] : offsets[index] + size]
        elif home is Home.CONSTANT:
            found[buffer] = np.zeros(size, np.int64)
        else:
            found[buffer] = places.setdefault((home, index), np.zeros(size, np.int64))
    return found


@settings(max_examples=300, deadline=None)
@given(_programs())
def test_no_step_reads_what_another_has_written_over(case: _Case) -> None:
    """Each buffer is marked when it is written; whoever reads it, and whoever gets it as an output, finds the mark whole.

    A step that may write in place finds its other inputs whole even after it has written.
    """
    storage = Storage(case.steps, case.inputs, case.outputs)
    memory = _memory(case, storage)
    mark: dict[Buffer, int] = {}
    for number, step in enumerate(case.steps, 1):
        result = step.buffers[step.writes[0]].root
        reads = [buffer.root for buffer in step.buffers[:-1]]
        assert all(np.all(memory[buffer] == mark.get(buffer, 0)) for buffer in reads)
        memory[result][:] = mark[result] = number
        may_share = {step.buffers[place].root for place in step.in_place}
        for buffer in reads:
            if not np.shares_memory(memory[buffer], memory[result]):
                assert np.all(memory[buffer] == mark.get(buffer, 0))
                continue
            assert buffer in may_share
            assert sum(other is buffer for other in reads) == 1
            assert item_bytes(buffer.dtype) == item_bytes(result.dtype)
            assert _SIZES(product(buffer.shape)) == _SIZES(product(result.shape))
    for output in case.outputs:
        assert storage.homes[output][0] is Home.OUTPUT
        assert np.all(memory[output] == mark[output])
    assert all(np.all(memory.get(buffer, np.zeros(0)) == 0) for buffer in case.inputs)
