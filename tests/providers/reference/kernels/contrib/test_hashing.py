"""Hashes of n-grams against their definition, token by token, and against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.peer import run_peer
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

RANDOM = np.random.default_rng(3)
HEADS: dict[str, Any] = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 7}
MULTIPLIERS, SIZES = np.array([3, 5, 7]), np.array([11, 13, 17, 19])
IDS, BOUNDS = np.array([1, 2, 3, 4, 5]), np.array([0, 2, 5], np.int32)


def run(*inputs: Any, **attributes: Any) -> Any:
    return run_op("NGramHashMapping", *inputs, domain="com.microsoft", outputs=2, **{**HEADS, **attributes})


def run_packed(*inputs: Any, **attributes: Any) -> Any:
    return run_op("VarlenNGramHashMapping", *inputs, domain="com.microsoft", outputs=4, **{**HEADS, **attributes})


def wrapped(number: int, dtype: Any) -> int:
    """A number as the type holds it after overflow."""
    bits = np.iinfo(dtype).bits
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def definition(
    sequence: list[int], segments: list[int], reach: int, fill: int, ends: bool, dtype: Any, given: Any
) -> list[list[int]]:
    """The hashes of a sequence that begins with `reach` tokens of history, in Python's integers."""
    multipliers, sizes, offsets = given
    heads, rows = len(sizes) // reach, []
    for place in range(reach, len(sequence)):
        first = place
        while first and segments[first - 1] == segments[first] and not (ends and sequence[first - 1] == fill):
            first -= 1
        mixed, row = 0, []
        for back in range(reach + 1):
            token = sequence[place - back] if place - back >= first else fill
            mixed ^= wrapped(token * int(multipliers[back]), dtype)
            mine = range((back - 1) * heads, back * heads) if back else ()
            row += [wrapped(mixed % int(sizes[head]) + int(offsets[head]), dtype) for head in mine]
        rows.append(row)
    return rows


@pytest.mark.parametrize("seed", range(24))
def test_hashes_of_a_batch(seed: int) -> None:
    """With and without history, offsets, ends and segments, in either type."""
    random = np.random.default_rng(seed)
    dtype = np.int32 if seed % 2 else np.int64
    reach, heads, batch, count = (int(n) for n in random.integers(1, 4, 4))
    ids, past = random.integers(-2, 3, (batch, count)).astype(dtype), random.integers(-2, 3, (batch, reach)).astype(dtype)
    multipliers = random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, reach + 1).astype(dtype)
    sizes, offsets = random.integers(1, 100, (2, reach * heads)).astype(dtype)
    segments, end = random.integers(0, 2, (batch, count)).astype(np.int32), np.array(1, dtype)
    has_past, has_offsets, has_end, has_segments = random.integers(0, 2, 4).astype(bool)
    inputs = (ids, multipliers, sizes, past if has_past else None, offsets if has_offsets else None)
    inputs += (end if has_end else None, segments if has_segments else None)
    options = {"max_ngram_size": reach + 1, "n_head_per_ngram": heads, "pad_id": -2, "reset_on_eos": seed % 3 % 2}
    hashes, present = run(*inputs, **options)
    fill = 1 if has_end else -2
    given = multipliers, sizes, offsets if has_offsets else np.zeros_like(sizes)
    for row in range(batch):
        sequence = [*(past[row].tolist() if has_past else [fill] * reach), *ids[row].tolist()]
        own = segments[row].tolist() if has_segments else [0] * count
        ends = bool(has_end and options["reset_on_eos"])
        assert hashes[row].tolist() == definition(sequence, [own[0]] * reach + own, reach, fill, ends, dtype, given)
        assert present[row].tolist() == sequence[len(sequence) - reach :]
    for ours, theirs in zip((hashes, present), run_peer("NGramHashMapping", *inputs, outputs=2, **options), strict=True):
        assert ours.dtype == dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", range(24))
def test_hashes_of_packed_sequences(seed: int) -> None:
    """Segments of the history count, and the state after the first tokens is captured."""
    random = np.random.default_rng(seed)
    dtype = np.int32 if seed % 2 else np.int64
    reach, heads, batch = (int(n) for n in random.integers(1, 4, 3))
    bounds = np.concatenate([[0], np.cumsum(random.integers(1, 6, batch))]).astype(np.int32)
    ids, past = random.integers(-2, 3, bounds[-1]).astype(dtype), random.integers(-2, 3, (batch, reach)).astype(dtype)
    multipliers = random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, reach + 1).astype(dtype)
    sizes, offsets = random.integers(1, 100, (2, reach * heads)).astype(dtype)
    segments, old = random.integers(0, 2, bounds[-1]).astype(np.int32), random.integers(0, 2, (batch, reach)).astype(np.int32)
    counts, end = random.integers(-1, 6, batch).astype(np.int32), np.array(1, dtype)
    has_past, has_offsets, has_end, has_old = random.integers(0, 2, 4).astype(bool)
    inputs = (ids, multipliers, sizes, bounds, past if has_past else None, offsets if has_offsets else None)
    inputs += (end if has_end else None, segments, old if has_old else None, counts)
    options = {"max_ngram_size": reach + 1, "n_head_per_ngram": heads, "pad_id": -2, "reset_on_eos": seed % 3 % 2}
    options["state_update_capacity"] = 3
    hashes, present, present_segments, update = run_packed(*inputs, **options)
    fill = 1 if has_end else -2
    given = multipliers, sizes, offsets if has_offsets else np.zeros_like(sizes)
    for row in range(batch):
        part = slice(bounds[row], bounds[row + 1])
        sequence = [*(past[row].tolist() if has_past else [fill] * reach), *ids[part].tolist()]
        own = segments[part].tolist()
        own = [*(old[row].tolist() if has_old else own[:1] * reach), *own]
        ends = bool(has_end and options["reset_on_eos"])
        assert hashes[part].tolist() == definition(sequence, own, reach, fill, ends, dtype, given)
        assert present[row].tolist() == sequence[len(sequence) - reach :]
        assert present_segments[row].tolist() == own[len(own) - reach :]
        captured = min(max(counts[row], 0), 3, part.stop - part.start)
        states = [sequence[slot + 1 : slot + 1 + reach] if slot < captured else [-2] * reach for slot in range(3)]
        assert update[row].tolist() == states
    theirs = run_peer("VarlenNGramHashMapping", *inputs, outputs=4, **options)
    for found, peer in zip((hashes, present, present_segments, update), theirs, strict=True):
        np.testing.assert_array_equal(found, peer)


def test_a_sequence_in_parts_has_the_hashes_of_the_whole() -> None:
    """The second output of a part is the fourth input of the next."""
    ids = RANDOM.integers(0, 9, (2, 7))
    whole, last = run(ids, MULTIPLIERS, SIZES)
    first, past = run(ids[:, :3], MULTIPLIERS, SIZES)
    second, end = run(ids[:, 3:], MULTIPLIERS, SIZES, past)
    np.testing.assert_array_equal(np.concatenate([first, second], axis=1), whole)
    np.testing.assert_array_equal(end, last)


@pytest.mark.parametrize("shape", [(2, 0), (0, 2), (0, 0)])
def test_no_tokens_have_no_hashes(shape: tuple[int, int]) -> None:
    """Nor do segments of none; the history stays."""
    past = np.arange(2 * shape[0]).reshape(shape[0], 2)
    hashes, present = run(np.zeros(shape, np.int64), MULTIPLIERS, SIZES, past, None, None, np.zeros(shape, np.int32))
    assert hashes.shape == (*shape, 4)
    assert present.shape == (shape[0], 2)
    np.testing.assert_array_equal(present, past if shape[1] == 0 else present)


def test_segments_that_are_not_given_are_not_carried() -> None:
    """Their output is none; a state without slots is empty."""
    _, _, segments, update = run_packed(IDS, MULTIPLIERS, SIZES, BOUNDS)
    assert segments is None
    assert update.shape == (2, 0, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: IDS}, "input_ids have shape"),
        ({0: IDS[None].astype(np.int32)}, "have types"),
        ({1: MULTIPLIERS[:2]}, "multipliers have shape"),
        ({2: SIZES[:3]}, "vocab_sizes has shape"),
        ({2: SIZES * 0}, "expected positive"),
        ({3: np.zeros((1, 3), np.int64)}, "past_ids has shape"),
        ({4: np.zeros(3, np.int64)}, "head_offsets has shape"),
        ({4: np.array([0, 0, -1, 0])}, "head_offsets hold -1"),
        ({4: np.array([0, 0, 2**63 - 17, 0])}, "a sum of both"),
        ({5: np.zeros(1, np.int64)}, "eos_token_id has shape"),
        ({6: np.zeros((1, 4), np.int32)}, "segment_ids has shape"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(change: dict[int, Array], message: str) -> None:
    """Each by its name."""
    inputs: list[Array | None] = [IDS[None], MULTIPLIERS, SIZES, None, None, None, None]
    for index, array in change.items():
        inputs[index] = array
    with pytest.raises(InvalidArgument, match=message):
        run(*inputs)


@pytest.mark.parametrize("options", [{"max_ngram_size": 1}, {"n_head_per_ngram": 0}, {"max_ngram_size": -5}])
def test_attributes_that_leave_no_hash_are_refused(options: dict[str, int]) -> None:
    """A window has two tokens at least."""
    with pytest.raises(InvalidArgument, match="expected at least 2 and 1"):
        run(IDS[None], MULTIPLIERS, SIZES, **options)


def test_padding_that_the_type_cannot_hold_is_refused() -> None:
    """It would be another id."""
    small = [array.astype(np.int32) for array in (IDS[None], MULTIPLIERS, SIZES)]
    with pytest.raises(InvalidArgument, match="pad_id is 4294967296"):
        run(*small, pad_id=1 << 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: IDS[None]}, "input_ids have shape"),
        ({3: np.array([0, 2, 2, 5], np.int32)}, "cumulative_sequence_length"),
        ({7: np.zeros(4, np.int32)}, "segment_ids has shape"),
        ({8: np.zeros((2, 2), np.int32)}, "without segment_ids"),
        ({7: np.zeros(5, np.int32), 8: np.zeros((2, 3), np.int32)}, "past_segment_ids has shape"),
        ({9: np.zeros(2, np.int32)}, "capture_count is given"),
    ],
)
def test_packed_inputs_that_do_not_fit_are_refused(change: dict[int, Array], message: str) -> None:
    """Each by its name."""
    inputs: list[Array | None] = [IDS, MULTIPLIERS, SIZES, BOUNDS, *[None] * 6]
    for index, array in change.items():
        inputs[index] = array
    with pytest.raises(InvalidArgument, match=message):
        run_packed(*inputs)


def test_offsets_of_packed_hashes_wrap() -> None:
    """As the operator's documentation says."""
    offsets = np.full(4, np.iinfo(np.int64).max)
    plain, wrapping = run_packed(IDS, MULTIPLIERS, SIZES, BOUNDS)[0], run_packed(IDS, MULTIPLIERS, SIZES, BOUNDS, None, offsets)[0]
    np.testing.assert_array_equal(wrapping, plain + offsets)
    assert (wrapping < 0).any()
