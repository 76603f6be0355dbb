"""Operators of com.microsoft on tokens and characters."""

from __future__ import annotations

import numpy as np

from sardonyx.cancellation import checked
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.registry import Call, kernel

__all__ = ["bifurcation_detector", "murmur_hash_3", "sample_op", "word_conv_embedding"]

_MICROSOFT = "com.microsoft"


@kernel("SampleOp", domain=_MICROSOFT)
def sample_op(call: Call, x: Array) -> Array:
    """Return the input. Source: com.microsoft SampleOp."""
    return x


@kernel("BifurcationDetector", domain=_MICROSOFT)
def bifurcation_detector(
    call: Call,
    src_tokens: Array,
    cur_tokens: Array,
    prev_suffix_match_idx: Array,
    pred_tokens: Array | None = None,
    *,
    max_ngram_size: int = 3,
    min_ngram_size: int = 1,
) -> tuple[Array, Array]:
    """Append predicted tokens to the current ones, and find where the last of them occur in the source.

    Of `pred_tokens` those are taken that equal the source from the previous match on, and one more. The shortest n-gram at the end
    of the result that occurs once in the source gives the new match, the place after it; -1 where there is none. All are 1-D int64.
    Source: com.microsoft BifurcationDetector.
    """
    for name, array in (("src_tokens", src_tokens), ("cur_tokens", cur_tokens)):
        if array.ndim != 1:
            raise InvalidArgument(f"{name} has shape {array.shape}; expected one axis")
    if prev_suffix_match_idx.size != 1 or not 1 <= min_ngram_size <= max_ngram_size:
        raise InvalidArgument(
            f"prev_suffix_match_idx has {prev_suffix_match_idx.size} elements, n-grams have {min_ngram_size} to {max_ngram_size}; "
            "expected 1 element and sizes from 1 on"
        )
    tokens = (
        cur_tokens if pred_tokens is None else _merged(src_tokens, cur_tokens, int(prev_suffix_match_idx.ravel()[0]), pred_tokens)
    )
    return tokens, np.asarray(_suffix_match(src_tokens, tokens, min_ngram_size, max_ngram_size), np.int64).reshape(())


def _merged(source: Array, current: Array, start: int, predicted: Array) -> Array:
    if start < 0:
        raise InvalidArgument(f"prev_suffix_match_idx is {start}; with pred_tokens it is a place in src_tokens, at least 0")
    rest = source[start:]
    if predicted.ndim != 1 or len(predicted) != len(rest) + 1:
        raise InvalidArgument(
            f"pred_tokens has shape {predicted.shape}; expected one token more than the {len(rest)} of src_tokens from the match on"
        )
    differing = np.flatnonzero(predicted[:-1] != rest)
    count = int(differing[0]) if differing.size else len(rest)
    merged: Array = np.concatenate([current, predicted[: count + 1]])
    return merged


def _suffix_match(source: Array, tokens: Array, least: int, most: int) -> int:
    for size in range(least, min(most, len(tokens)) + 1):
        places = _places(source, tokens[len(tokens) - size :])
        if len(places) == 1:
            return int(places[0]) + size
        if not len(places):
            break
    return -1


def _places(source: Array, part: Array) -> Array:
    if len(part) > len(source):
        return np.zeros(0, np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(source, len(part))
    found: Array = np.flatnonzero((windows == part).all(axis=1))
    return found


@kernel("MurmurHash3", domain=_MICROSOFT)
def murmur_hash_3(call: Call, x: Array, *, positive: int = 1, seed: int = 0) -> Array:
    """Hash each element by MurmurHash3_x86_32: uint32, or int32 where `positive` is 0; text by its UTF-8 bytes.

    Source: com.microsoft MurmurHash3; A. Appleby, MurmurHash3, 2011 (public domain).
    """
    flat = x.ravel()
    if x.dtype.hasobject:
        hashes = np.array([_hash_bytes(str(item).encode(), seed) for item in checked(flat.tolist())], np.uint32)
    elif x.dtype.itemsize % 4:
        raise InvalidArgument(f"X is of type {x.dtype}; expected text, or numbers of 4 or 8 bytes")
    else:
        words = x.dtype.itemsize // 4
        hashes = _hash_words(np.ascontiguousarray(flat).view(np.uint32).reshape(len(flat), words), seed)
    y: Array = (hashes if positive else hashes.view(np.int32)).reshape(x.shape)
    return y


_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


def _rotated(word: Array, bits: int) -> Array:
    rotated: Array = (word << np.uint32(bits)) | (word >> np.uint32(32 - bits))
    return rotated


def _hash_words(words: Array, seed: int) -> Array:
    """Return the hash of each row of `words`, whole 32-bit words."""
    state = np.full(len(words), seed & 0xFFFFFFFF, np.uint32)
    for word in words.T:
        state = _rotated(state ^ (_rotated(word * _C1, 15) * _C2), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return _finished(state, 4 * words.shape[1])


def _hash_bytes(text: bytes, seed: int) -> int:
    whole = len(text) & ~3
    state = np.array([seed & 0xFFFFFFFF], np.uint32)
    for word in np.frombuffer(text[:whole], "<u4"):
        state = _rotated(state ^ (_rotated(np.array([word]) * _C1, 15) * _C2), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    if whole < len(text):
        tail = np.array([int.from_bytes(text[whole:], "little")], np.uint32)
        state = state ^ (_rotated(tail * _C1, 15) * _C2)
    return int(_finished(state, len(text))[0])


def _finished(state: Array, length: int) -> Array:
    mixed: Array = state ^ np.uint32(length & 0xFFFFFFFF)
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    finished: Array = mixed ^ (mixed >> np.uint32(16))
    return finished


@kernel("WordConvEmbedding", domain=_MICROSOFT)
def word_conv_embedding(
    call: Call,
    sequence: Array,
    w: Array,
    b: Array,
    c: Array,
    *,
    char_embedding_size: int | None = None,
    conv_window_size: int | None = None,
    embedding_size: int | None = None,
) -> Array:
    """Embed words: each character by a table, a convolution over windows of characters, tanh, and the maximum over the word.

    sequence int32 (words, characters), 0 after the word's end; w (E, 1, window, K), b (E,), c (characters, K) -> (words, E). The
    windows of a word are those that begin within it and reach no further than the longest of the window's size. Source:
    com.microsoft WordConvEmbedding.
    """
    if sequence.dtype.kind not in "iu" or w.shape[1:2] != (1,):
        raise InvalidArgument(
            f"Sequence is of type {sequence.dtype} and W has shape {w.shape}; expected integers and (E, 1, window, K)"
        )
    if sequence.ndim != 2 or w.ndim != 4 or c.ndim != 2 or b.shape != w.shape[:1] or w.shape[3] != c.shape[1]:
        raise InvalidArgument(
            f"Sequence, W, B and C have shapes {sequence.shape}, {w.shape}, {b.shape}, {c.shape}; expected (words, characters), "
            "(E, 1, window, K), (E,), (table, K)"
        )
    E, _, window, K = w.shape
    given = (embedding_size, conv_window_size, char_embedding_size)
    if any(one not in (None, size) for one, size in zip(given, (E, window, K), strict=True)):
        raise InvalidArgument(
            f"embedding_size, conv_window_size and char_embedding_size are {given}, but W makes them {(E, window, K)}"
        )
    if sequence.size and (sequence.min() < 0 or sequence.max() >= len(c)):
        raise InvalidArgument(f"Sequence holds characters {int(sequence.min())} to {int(sequence.max())}; C has {len(c)} rows")
    words, length = sequence.shape
    if length < window:
        raise InvalidArgument(f"words have {length} characters, which is less than the window of {window}")
    check_output_size((words, length, max(E, window * K)), 4)
    windows = np.lib.stride_tricks.sliding_window_view(c[sequence], window, axis=1)
    values = np.tanh(np.einsum("npkw,ewk->npe", windows, w[:, 0], optimize=True) + b)
    lengths = np.maximum(_lengths(sequence), window)
    inside = np.arange(length - window + 1) <= (lengths - window)[:, None]
    y: Array = np.where(inside[:, :, None], values, np.float32(-np.inf)).max(axis=1)
    y[sequence[:, 0] == 0] = 0
    return y.astype(np.float32, copy=False)


def _lengths(sequence: Array) -> Array:
    """Return how many characters each word has before the first 0."""
    is_end = sequence == 0
    lengths: Array = np.where(is_end.any(axis=1), is_end.argmax(axis=1), sequence.shape[1])
    return lengths
