"""Where buffers lie."""

import itertools
import time
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.ir import Shape, symbol
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import STATUS, Buffer, KernelLaunch
from sardonyx.providers.cpu.storage import Home, Storage, item_bytes

_N = symbol("n")


def _buffer(*shape: int, dtype: DataType = DataType.FLOAT, base: Buffer | None = None) -> Buffer:
    return Buffer(dtype, shape or (_N,), base=base)


def _step(reads: Sequence[Buffer], writes: Buffer, in_place: Sequence[int] = ()) -> KernelLaunch:
    return KernelLaunch("op", "op", "k", (*reads, writes), (len(reads),), lambda sizes: ([], 1), tuple(in_place))


def test_homes_of_every_kind() -> None:
    """Inputs, outputs, constants, the status word, and the arena for what is in between."""
    x, inner, y = _buffer(), _buffer(), _buffer()
    weight = Buffer(DataType.FLOAT, (2,), np.zeros(2, np.float32))
    storage = Storage([_step([x, weight], inner), _step([inner, STATUS], y)], [x], [y])
    homes = [storage.homes[buffer][0] for buffer in (x, weight, inner, y, STATUS)]
    assert homes == [Home.INPUT, Home.CONSTANT, Home.ARENA, Home.OUTPUT, Home.STATUS]


def test_the_arena_grows_with_the_sizes() -> None:
    """Places are decided once, bytes when sizes are known: whole cache lines."""
    x, inner, y = _buffer(), _buffer(), _buffer()
    storage = Storage([_step([x], inner), _step([inner], y)], [x], [y])
    assert storage.arena(Sizes({"n": 1})) == ([0], 64)
    assert storage.arena(Sizes({"n": 17})) == ([0], 128)
    assert storage.arena(Sizes({"n": 0}))[1] == 0


def test_blocks_of_the_arena_have_their_own_sizes() -> None:
    """In bytes, before they are rounded up or share memory."""
    x, inner, y = _buffer(), _buffer(), _buffer()
    storage = Storage([_step([x], inner), _step([inner], y)], [x], [y])
    assert storage.blocks(Sizes({"n": 17})) == [68]


def _chain(shapes: Sequence[Shape], in_place: Sequence[int], dtypes: Sequence[DataType]) -> Storage:
    """Three steps x -> a -> b -> y, each of which may write where it reads."""
    x, a, b, y = (Buffer(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True))
    steps = [_step([x], a, in_place), _step([a], b, in_place), _step([b], y, in_place)]
    return Storage(steps, [x], [y])


def test_a_step_writes_where_its_input_was() -> None:
    """Where its kernel can, the input is not needed any more, and both have as many bytes."""
    same, floats = [(_N,)] * 4, [DataType.FLOAT] * 4
    assert len(_chain(same, [0], floats).arena(Sizes({"n": 1}))[0]) == 1
    assert len(_chain(same, [], floats).arena(Sizes({"n": 1}))[0]) == 2
    assert len(_chain([(_N,), (_N,), (_N, 2), (_N,)], [0], floats).arena(Sizes({"n": 1}))[0]) == 2
    mixed = [DataType.FLOAT, DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT]
    assert len(_chain(same, [0], mixed).arena(Sizes({"n": 1}))[0]) == 2


def test_inputs_and_constants_are_never_written_to() -> None:
    """They belong to others."""
    x, inner, y = _buffer(), _buffer(), _buffer()
    weight = Buffer(DataType.FLOAT, (_N,), np.zeros(1, np.float32))
    other = _buffer()
    storage = Storage([_step([x], inner, [0]), _step([weight], other, [0]), _step([inner, other], y)], [x], [y])
    assert storage.homes[inner][0] is Home.ARENA
    assert storage.homes[other][0] is Home.ARENA
    assert storage.homes[inner] != storage.homes[other]


def test_what_is_read_later_keeps_its_place() -> None:
    """A step does not write over what another still reads."""
    x, a, b, y = (_buffer() for _ in range(4))
    storage = Storage([_step([x], a), _step([a], b, [0]), _step([a, b], y)], [x], [y])
    assert storage.homes[a] != storage.homes[b]


def test_what_the_step_itself_reads_twice_keeps_its_place() -> None:
    """As two inputs, or as an input and a view of it: what is written may be read again."""
    for twice in (lambda a: a, lambda a: _buffer(2, base=a)):
        x, a, y, b = _buffer(4), _buffer(4), _buffer(4), _buffer(4)
        storage = Storage([_step([x], a), _step([a, twice(a)], b, [0]), _step([b], y)], [x], [y])
        assert storage.homes[a] != storage.homes[b]


def test_two_do_not_take_the_place_of_one() -> None:
    """Where two steps could write over the same input, only one does."""
    x, a, b, c, y = (_buffer() for _ in range(5))
    storage = Storage([_step([x], a), _step([a], b, [0]), _step([b], c), _step([c], y)], [x], [y])
    offsets, _ = storage.arena(Sizes({"n": 4}))
    assert storage.homes[b] == storage.homes[a]
    assert offsets[storage.homes[c][1]] != offsets[storage.homes[b][1]]


def test_views_share_the_lifetime_of_their_root() -> None:
    """The root lives until the last of its views is read."""
    x, a, b, y = (_buffer(64) for _ in range(4))
    view = _buffer(32, base=a)
    storage = Storage([_step([x], a), _step([x], b), _step([view, b], y)], [x], [y])
    offsets, total = storage.arena(Sizes({}))
    assert sorted(offsets) == [0, 256]
    assert total == 512


def test_bytes_of_an_element() -> None:
    """A bool takes a byte."""
    sizes = {dtype: item_bytes(dtype) for dtype in (DataType.BOOL, DataType.FLOAT16, DataType.FLOAT, DataType.INT64)}
    assert list(sizes.values()) == [1, 2, 4, 8]


def test_a_long_chain_in_place_is_placed_in_linear_time() -> None:
    """All of it in one place of the arena."""
    x, y = _buffer(), _buffer()
    chain = [_buffer() for _ in range(20_000)]
    steps = [_step([before], after, in_place=[0]) for before, after in itertools.pairwise([x, *chain, y])]
    start = time.process_time()
    storage = Storage(steps, [x], [y])
    assert time.process_time() - start < 5
    assert storage.blocks(Sizes({"n": 3})) == [12]
