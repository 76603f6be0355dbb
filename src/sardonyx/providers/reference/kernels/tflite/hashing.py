"""Operators of sardonyx.tflite that hash text and numbers, and draw random bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ops.schemas_tflite import DOMAIN
from sardonyx.provider import check_cancelled
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.farm_hash import fingerprint64
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["lsh_projection", "random_bits", "skip_gram"]

_MOST_BITS = 32
_WORD_BYTES = 64
"""What a word of a result takes about."""
_SPACES = " \t\n\v\f\r"


@kernel("LshProjection", domain=DOMAIN)
def lsh_projection(call: Call, seeds: Array, x: Array, weights: Array | None = None, *, is_sparse: int) -> Array:
    """Project X by locality-sensitive hashing: a bit says whether the weighted sum of the hashes of its rows is above zero.

    `seeds` (functions, bits) float32, X (rows, …), weights (rows,) float32. Dense: bits (functions x bits,) int32; sparse: the
    number (functions,) int32 that the bits of a function make, plus its place times 2 ** bits. A hash is the 64-bit fingerprint of
    FarmHash of seed and row, as a signed integer. Source: TensorFlow Lite's LSH_PROJECTION.
    """
    if seeds.ndim != 2 or seeds.dtype != np.float32 or seeds.shape[1] > _MOST_BITS or x.ndim < 1:
        raise InvalidArgument(
            f"seeds {seeds.shape} of {seeds.dtype} and an input {x.shape}; expected (functions, 32 at most) float32"
        )
    if weights is not None and (weights.shape != x.shape[:1] or weights.dtype != np.float32):
        raise InvalidArgument(
            f"weights {weights.shape} of {weights.dtype} for an input {x.shape}; expected {x.shape[:1]} of float32"
        )
    rows = np.ascontiguousarray(x).reshape(len(x), -1).view(np.uint8) if x.size else np.zeros((len(x), 0), np.uint8)
    heads = np.ascontiguousarray(seeds).reshape(-1, 1).view(np.uint8)
    scores = np.zeros(len(heads))
    for place, row in enumerate(rows):
        check_cancelled()
        keys = np.concatenate([heads, np.broadcast_to(row, (len(heads), len(row)))], axis=1)
        hashes = fingerprint64(keys).view(np.int64).astype(np.float64)
        scores += hashes if weights is None else np.float64(weights[place]) * hashes
    bits = (scores > 0).astype(np.int32)
    if not is_sparse:
        return bits
    numbers = np.zeros(len(seeds), np.uint32)
    for column in bits.reshape(seeds.shape).T.astype(np.uint32):
        numbers = (numbers << np.uint32(1)) | column
    offsets = (np.arange(len(seeds), dtype=np.uint64) << np.uint64(seeds.shape[1])).astype(np.uint32)
    return (numbers + offsets).view(np.int32)


@kernel("SkipGram", domain=DOMAIN)
def skip_gram(call: Call, x: Array, *, ngram_size: int, max_skip_size: int, include_all_ngrams: int = 0) -> Array:
    """List groups of `ngram_size` words of the text X, or of fewer too, each word at most `max_skip_size` behind the one before.

    X has one string; the result is (count,). Groups that begin with a longer one's words come behind it.
    Source: TensorFlow Lite's SKIP_GRAM.
    """
    if x.size < 1:
        raise InvalidArgument(f"the input has shape {x.shape}; expected one string")
    words = list(_words(str(x.reshape(-1)[0])))
    if not 0 < ngram_size <= len(words):
        return np.empty(0, object)
    found: list[str] = []
    for group in _groups(len(words), ngram_size, max_skip_size):
        check_cancelled()
        if include_all_ngrams or len(group) == ngram_size:
            found.append(" ".join(words[place] for place in group))
            check_output_size((len(found), ngram_size), _WORD_BYTES)
    return np.array(found, object)


def _words(text: str) -> Iterator[str]:
    """Split a text as LiteRT does: what stands between two spaces, and begins with none; the last word as it is."""
    first = 0
    for place in range(1, len(text)):
        if text[place] in _SPACES:
            if place > first and text[first] not in _SPACES:
                yield text[first:place]
            first = place + 1
    if first < len(text):
        yield text[first:]


def _groups(count: int, size: int, skip: int) -> Iterator[list[int]]:
    """Give the places of the words of each group of up to `size`; a group comes behind all that begin with it."""
    group: list[int] = []
    place = 0
    while True:
        end = min(count, group[-1] + skip + 2) if group else count
        if len(group) < size and place < end:
            group.append(place)
            place += 1
        elif group:
            yield group
            place = group.pop() + 1
        else:
            return


@kernel("RngBitGenerator", domain=DOMAIN)
def random_bits(call: Call, state: Array, *, algorithm: str, shape: Sequence[int], to: int) -> tuple[Array, Array]:
    """Draw integers of a shape by a key and a counter, both in `state` (2 or 3,) uint64; return the next state first.

    Source: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"; StableHLO's rng_bit_generator.
    """
    dtype = np.dtype(DataType(to).numpy)
    if state.dtype != np.uint64 or state.shape not in ((2,),) + (((3,),) if algorithm == "PHILOX" else ()):
        raise InvalidArgument(f"the state is {state.dtype} {state.shape}; expected uint64 (2,), for Philox also (3,)")
    check_output_size(tuple(shape), dtype.itemsize)
    words = np.ascontiguousarray(state).view(np.uint32)
    width = 2 if algorithm == "THREEFRY" else 4
    needed = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize // 4
    steps = -(-needed // width)
    start = int(words[2]) | int(words[3]) << 32
    counters = (np.arange(steps, dtype=np.uint64) + np.uint64(start)).view(np.uint32).reshape(-1, 2)
    with np.errstate(over="ignore"):
        if width == 2:
            drawn = _threefry(words[:2], counters)
        else:
            high = words[4:6] if len(words) == 6 else words[:2]
            drawn = _philox(words[:2], np.concatenate([counters, np.broadcast_to(high, counters.shape)], axis=1))
    following = words.copy()
    following[2:4] = np.array([(start + steps) % (1 << 64)], np.uint64).view(np.uint32)
    return following.view(np.uint64), drawn.reshape(-1)[:needed].copy().view(dtype).reshape(shape)


_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_PHILOX_ROUNDS = 10


def _threefry(key: Array, counters: Array) -> Array:
    """Return Threefry-2x32 with 20 rounds of counters (count, 2)."""
    keys = [key[0], key[1], key[0] ^ key[1] ^ _PARITY]
    a, b = counters[:, 0] + keys[0], counters[:, 1] + keys[1]
    for turn in range(5):
        for bits in _ROTATIONS[turn % 2]:
            a = a + b
            b = ((b << np.uint32(bits)) | (b >> np.uint32(32 - bits))) ^ a
        a, b = a + keys[(turn + 1) % 3], b + keys[(turn + 2) % 3] + np.uint32(turn + 1)
    return np.stack([a, b], axis=1)


def _philox(key: Array, counters: Array) -> Array:
    """Return Philox-4x32 with 10 rounds of counters (count, 4)."""
    a, b, c, d = counters.T
    first, second = key
    for _ in range(_PHILOX_ROUNDS):
        left, right = a.astype(np.uint64) * np.uint64(0xD2511F53), c.astype(np.uint64) * np.uint64(0xCD9E8D57)
        a, c = _high(right) ^ b ^ first, _high(left) ^ d ^ second
        b, d = right.astype(np.uint32), left.astype(np.uint32)
        first, second = first + np.uint32(0x9E3779B9), second + np.uint32(0xBB67AE85)
    return np.stack([a, b, c, d], axis=1)


def _high(product: Array) -> Array:
    result: Array = (product >> np.uint64(32)).astype(np.uint32)
    return result
