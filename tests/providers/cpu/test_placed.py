"""Places in the arena, from one binding to the next."""

from __future__ import annotations

import itertools

from sardonyx.dtypes import DataType
from sardonyx.providers.cpu.placed import ArenaPlaces
from sardonyx.providers.cpu.steps import Buffer, KernelLaunch
from sardonyx.providers.cpu.storage import Storage


def two_places() -> Storage:
    """Return storage with two temporaries that are needed at a time."""
    x, a, b, y = (Buffer(DataType.FLOAT, (1,)) for _ in range(4))
    steps = [((x, a), (1,)), ((a, b), (1,)), ((a, b, y), (2,))]
    launches = [KernelLaunch("step", "node", "kernel", buffers, writes, lambda _sizes: ((), 1)) for buffers, writes in steps]
    return Storage(launches, [x], [y])


def test_places_of_the_same_sizes_stay() -> None:
    """As they are."""
    storage = two_places()
    places = ArenaPlaces.of(storage, [1000, 2000])
    assert places.for_blocks(storage, [1000, 2000]) is places
    assert places.for_blocks(storage, [900, 2000]) is places


def test_places_that_have_grown_get_some_space() -> None:
    """So that not every step of a decoder moves all of them."""
    storage = two_places()
    first = ArenaPlaces.of(storage, [100_000, 2000])
    second = first.for_blocks(storage, [100_100, 2000])
    assert second is not first
    assert list(second.capacities) == [100_100 + 100_100 // 8, 2000]
    assert second.for_blocks(storage, [110_000, 2000]) is second


def test_places_that_are_much_too_large_are_given_back() -> None:
    """A short sequence after a long one needs no more memory than alone, but for a little."""
    storage = two_places()
    places = ArenaPlaces.of(storage, [1_000_000, 1_000_000])
    assert places.for_blocks(storage, [1000, 1000]).arena_bytes < 20_000


def test_places_do_not_overlap() -> None:
    """Each has its capacity for itself."""
    storage = two_places()
    places = ArenaPlaces.of(storage, [100, 50]).for_blocks(storage, [150, 70])
    spans = sorted((offset, offset + size) for offset, size in zip(places.offsets, places.capacities, strict=True))
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    assert spans[-1][1] <= places.arena_bytes
