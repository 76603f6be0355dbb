"""The models inside the generation loops of com.microsoft: graph attributes that are run once per token.

Rows are batch times beams. A decoder keeps what its graph hands from step to step; `pick` tells which row each row goes on from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, Value
from sardonyx.ops.generation_bodies import BEAMS, BEST_TOKENS, NEXT_TOKENS, ROWS, TOTALS
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.registry import Body

__all__ = ["Decoder", "EncoderDecoder", "LanguageModel", "NextScores", "first_totals"]


_CACHE_INPUTS = frozenset({"past_sequence_length", "past_seq_len", "beam_width", "num_beams", "cache_indirection"})
"""What a graph with buffers of keys may ask, as `_cache_inputs` answers it."""
_ROWS = 1
"""Which of what a graph chooses for beams are rows."""
_CLOSED = np.float32(-1e9)
"""The total that all rows but the first begin with, so that rows of one batch element do not choose the same."""


def first_totals(batch: int, beams: int) -> Array:
    """Return the totals (batch, beams) of a search that begins, in float32."""
    totals: Array = np.full((batch, beams), _CLOSED)
    totals[:, :1] = 0
    return totals


class NextScores:
    """What a decoder says about the next token of each row."""

    __slots__ = ("_raw", "best", "chosen")

    def __init__(self, raw: Array, best: Sequence[Array] = (), chosen: Sequence[Array] = ()) -> None:
        """Hold logits (rows, length, V) of any float type.

        Args:
            raw: the logits.
            best: what the graph ranked: the likeliest tokens (rows, count) and, for beams, the logarithms of their
                probabilities; empty where it ranks none.
            chosen: the tokens (batch, beams) that beams go on with, the row that each goes on from, and its total; empty where
                the graph chooses none.
        """
        self._raw, self.best, self.chosen = raw, best, chosen

    @property
    def logits(self) -> Array:
        """The scores of the last place, (rows, V) in float32, which the caller may change."""
        return self._last().astype(np.float32)

    def repeated(self, times: int) -> NextScores:
        """Return those of `times` rows for each row."""
        best = [np.repeat(array, times, axis=0) for array in self.best]
        chosen = [array * times if place == _ROWS else array for place, array in enumerate(self.chosen)]
        return NextScores(np.repeat(self._last()[:, None], times, axis=0), best, chosen)

    def _last(self) -> Array:
        if self._raw.ndim != 3 or self._raw.shape[1] == 0:
            raise InvalidArgument(f"the decoder's logits have shape {self._raw.shape}; expected (rows, length, vocabulary)")
        last: Array = self._raw[:, -1]
        return last


class _Runner:
    """A graph of a loop, whose inputs are looked up by name."""

    def __init__(self, body: Body) -> None:
        self.graph: Graph = body.graph  # type: ignore[attr-defined]  # bodies of programs have it; the protocol does not ask it
        self.names = frozenset(value.name for value in self.graph.inputs)
        self._body = body
        self._inputs = [(value.name, None if value.dtype is None else value.dtype.numpy) for value in self.graph.inputs]
        results = [value.name for value in self.graph.outputs]
        self._ranked = results.index(BEST_TOKENS) - 1 if BEST_TOKENS in results else len(results)
        self._chosen = results.index(NEXT_TOKENS) - 1 if NEXT_TOKENS in results else len(results)

    def run(self, known: Mapping[str, Array], states: Iterable[Array]) -> list[Array]:
        """Return the outputs; inputs of names that are not known get the states, in order."""
        waiting = iter(states)
        feeds = []
        for name, dtype in self._inputs:
            array = known.get(name)
            if array is None:
                array = next(waiting, None)
                if array is None:
                    raise InvalidArgument(f"graph {self.graph.name!r} has the input {name!r}, which the loop has nothing for")
            elif dtype is not None and array.dtype != dtype:
                array = array.astype(dtype)
            feeds.append(array)
        return self._body(*feeds)

    def step(self, known: Mapping[str, Array], states: Iterable[Array]) -> tuple[NextScores, list[Array]]:
        """Return what a decoder's outputs say about the next token, and the others, its states first."""
        logits, *others = self.run(known, states)
        return NextScores(logits, others[self._ranked : self._chosen], others[self._chosen :]), others[: self._ranked]


class Decoder(Protocol):
    """A model that scores the next token."""

    def start(self) -> NextScores:
        """Read the prompt."""

    def advance(self, tokens: Array, pick: Sequence[int] | Array, sequences: Array, totals: Array | None = None) -> NextScores:
        """Read one more token.

        Args:
            tokens: (rows,).
            pick: for each row the one that it goes on from.
            sequences: (rows, length), which end with the tokens.
            totals: (batch, beams) of a search by beams.
        """


class LanguageModel:
    """A decoder like GPT-2: (input_ids, position_ids, attention_mask, past_0 …) -> (logits, present_0 …).

    A past is (2, rows, heads, keys, size). A graph with the input past_sequence_length has buffers of `max_length` keys instead of
    growing ones. `first` is a graph of the same form for the first run.
    """

    def __init__(self, body: Body, first: Body | None, prompt: Array, mask: Array, beams: int, max_length: int) -> None:
        """Begin with `prompt` (batch, length) and its `mask`, 0 for what is not read; each has `beams` rows."""
        self._decoder = _Runner(body)
        self._first = self._decoder if first is None else _Runner(first)
        self._prompt, self._prompt_mask = prompt, mask
        self._beams, self._max_length = beams, max_length
        self._own = list(range(len(prompt) * beams))
        self._rows_of_beams = np.arange(len(prompt) * beams).reshape(-1, beams)
        self._asks_for_caches = not _CACHE_INPUTS.isdisjoint(self._decoder.names)
        steps = np.arange(max(max_length - prompt.shape[1], 0), dtype=np.int32)[:, None, None]
        self._positions: Array = np.repeat(mask.sum(axis=1, dtype=np.int32), beams)[:, None] + steps
        """For each step that may come those of its tokens, (rows, 1)."""
        self._mask: Array = np.ones((len(self._own), max_length), np.int32)
        self._mask[:, : prompt.shape[1]] = np.repeat(mask, beams, axis=0)
        self._states: list[Array] = []

    def start(self) -> NextScores:
        """Run the graph on the prompt with empty pasts; once for all beams of a batch element, unless it asks for beams."""
        first = self._first
        is_once = _CACHE_INPUTS.isdisjoint(first.names) and not self._asks_for_caches and _has_any_rows(first.graph)
        beams = 1 if is_once else self._beams
        prompt, mask = (np.repeat(array, beams, axis=0) for array in (self._prompt, self._prompt_mask))
        positions = np.where(mask == 0, 0, np.cumsum(mask, axis=1) - 1)
        known = {"input_ids": prompt, "position_ids": positions, "attention_mask": mask}
        known |= _cache_inputs(0, len(prompt), beams, self._max_length)
        own = np.arange(len(prompt))
        known |= {ROWS: own, BEAMS: own.reshape(-1, beams), TOTALS: first_totals(len(self._prompt), beams)}
        keys = self._max_length if "past_sequence_length" in first.names else 0
        empty = [_empty_past(graph_input, len(prompt), keys) for graph_input in _others(first.graph, known)]
        found, self._states = first.step(known, empty)
        if beams == self._beams:
            return found
        for state in self._states:
            check_output_size((self._beams, *state.shape), state.itemsize)
        self._states = [np.repeat(state, self._beams, axis=1) for state in self._states]
        return found.repeated(self._beams)

    def advance(self, tokens: Array, pick: Sequence[int] | Array, sequences: Array, totals: Array | None = None) -> NextScores:
        """Run the graph on one token a row; masks and positions are the same in all rows of a batch element."""
        length = sequences.shape[1]
        mask = np.ascontiguousarray(self._mask[:, :length])
        positions = self._positions[length - self._prompt.shape[1] - 1]
        known = {"input_ids": tokens[:, None], "position_ids": positions, "attention_mask": mask}
        if totals is not None:
            known[TOTALS], known[BEAMS] = totals, self._rows_of_beams
        if ROWS in self._decoder.names:
            known[ROWS] = np.asarray(pick)
        elif list(pick) != self._own:
            self._states = [state.take(pick, axis=1) for state in self._states]
        if self._asks_for_caches:
            known |= _cache_inputs(length - 1, len(tokens), self._beams, self._max_length)
        found, self._states = self._decoder.step(known, self._states)
        return found


class EncoderDecoder:
    """An encoder and a decoder like those of T5 and Whisper.

    encoder: (encoder_input_ids, encoder_attention_mask, decoder_input_ids) -> (logits, encoder_hidden_states, present_key_self_0 …,
    present_key_cross_0 …), or the cross states alone. decoder: (input_ids, encoder_attention_mask, encoder_hidden_states,
    past_key_self_0 …, past_key_cross_0 …) -> (logits, present_key_self_0 …). Either leaves out inputs that it does not need.
    A decoder may end its outputs with what the queries and keys of each layer's cross attention multiply to.
    """

    def __init__(
        self, encoder: Body, decoder: Body, known: Mapping[str, Array], prompt: Array, beams: int, max_length: int
    ) -> None:
        """Begin with `known`, the encoder's inputs by name, and `prompt` (batch, length), what the decoder has said."""
        self._encoder, self._decoder = _Runner(encoder), _Runner(decoder)
        self._known, self._prompt = dict(known), prompt
        self._beams, self._max_length = beams, max_length
        self._own = list(range(len(prompt) * beams))
        self._rows_of_beams = np.arange(len(prompt) * beams).reshape(-1, beams)
        self._asks_for_caches = not _CACHE_INPUTS.isdisjoint(self._decoder.names)
        self._states: list[Array] = []
        self._cross: list[Array] = []
        self._products: list[Array] = []

    def start(self) -> NextScores:
        """Run the encoder on the batch, and spread what it gives over the beams."""
        outputs = self._encoder.run(self._known | {"decoder_input_ids": self._prompt}, ())
        names = [value.name for value in self._encoder.graph.outputs]
        heads = {name: output for name, output in zip(names, outputs, strict=True) if name in ("logits", "encoder_hidden_states")}
        states = [output for name, output in zip(names, outputs, strict=True) if name not in heads]
        return self._begin(heads, states, _self_states(self._decoder.graph))

    def _begin(self, heads: dict[str, Array], states: list[Array], count: int) -> NextScores:
        self._known = {name: self._spread(array) for name, array in (self._known | heads).items() if name != "logits"}
        spread = [self._spread(state) for state in states]
        self._states, self._cross = (spread[:count], spread[count:]) if "logits" in heads else ([], spread)
        if "logits" not in heads:
            return self._run_prompt(count)
        if self._has_buffers:
            self._states = [self._buffer(state) for state in self._states]
        return NextScores(heads["logits"]).repeated(self._beams)

    def _run_prompt(self, count: int) -> NextScores:
        """Run the decoder on what it has said, where the encoder does not."""
        prompt = self._spread(self._prompt)
        known = self._known | {"input_ids": prompt, ROWS: np.arange(len(prompt)), BEAMS: self._rows_of_beams}
        known[TOTALS] = first_totals(len(self._prompt), self._beams)
        known |= _cache_inputs(0, len(prompt), self._beams, self._max_length)
        empty = _others(self._decoder.graph, known)[:count]
        keys = self._max_length if self._has_buffers else 0
        self._states = [_empty_state(graph_input, len(prompt), keys) for graph_input in empty]
        return self._run(known)

    def advance(self, tokens: Array, pick: Sequence[int] | Array, sequences: Array, totals: Array | None = None) -> NextScores:
        """Run the decoder on one token a row, or on the whole sequences where its input_ids may have any length."""
        known = self._known | {"input_ids": tokens[:, None] if self._takes_one_token else np.ascontiguousarray(sequences)}
        if totals is not None:
            known[TOTALS], known[BEAMS] = totals, self._rows_of_beams
        if ROWS in self._decoder.names:
            known[ROWS] = np.asarray(pick)
        elif list(pick) != self._own:
            self._states = [state.take(pick, axis=0) for state in self._states]
        if self._asks_for_caches:
            known |= _cache_inputs(sequences.shape[1] - 1, len(tokens), self._beams, self._max_length)
        return self._run(known)

    def _run(self, known: Mapping[str, Array]) -> NextScores:
        found, states = self._decoder.step(known, [*self._states, *self._cross])
        self._states, self._products = states[: len(self._states)], states[len(self._states) :]
        return found

    def products_of_layers(self) -> list[Array]:
        """Return what queries and keys of cross attention multiplied to in the last step, (rows, heads, 1, F) for each layer.

        Raises:
            InvalidArgument: the decoder does not end its outputs with them.
        """
        layers = len(self._states) // 2
        if not layers or len(self._products) != layers:
            raise InvalidArgument(
                f"decoder_output_cross_qk is set, and the decoder has {len(self._products)} outputs behind its states; "
                f"expected the products of queries and keys of its {layers} layers"
            )
        for product in self._products:
            if product.ndim != 4 or product.shape[2] == 0 or product.shape != self._products[0].shape:
                shapes = ", ".join(str(item.shape) for item in self._products)
                raise InvalidArgument(
                    f"the decoder's products of queries and keys have shapes {shapes}; expected (rows, heads, 1, keys) alike"
                )
        return self._products

    @property
    def _takes_one_token(self) -> bool:
        shape = self._decoder.graph.inputs[0].shape
        return shape is not None and len(shape) == 2 and shape[1] == 1

    @property
    def _has_buffers(self) -> bool:
        return bool({"past_sequence_length", "past_seq_len"} & self._decoder.names)

    def _spread(self, array: Array) -> Array:
        check_output_size((len(array) * self._beams, *array.shape[1:]), array.itemsize)
        return np.repeat(array, self._beams, axis=0)

    def _buffer(self, state: Array) -> Array:
        whole = np.zeros((*state.shape[:2], self._max_length, state.shape[3]), state.dtype)
        whole[:, :, : state.shape[2]] = state
        return whole


def _has_any_rows(graph: Graph) -> bool:
    """Return whether a graph takes any number of rows."""
    shapes = [value.shape for value in graph.inputs if value.name == "input_ids"]
    return all(not shape or not isinstance(shape[0], int) for shape in shapes)


def _self_states(decoder: Graph) -> int:
    """Return how many of the decoder's states are of self-attention: key and value of each layer."""
    return sum(value.name.startswith("past_") and "_self_" in value.name for value in decoder.inputs)


def _others(graph: Graph, known: Mapping[str, Array]) -> list[Value]:
    """Return the inputs that are states."""
    return [value for value in graph.inputs if value.name not in known]


def _cache_inputs(used: int, rows: int, beams: int, max_length: int) -> dict[str, Array]:
    """Return what a graph with buffers may ask; rows are moved between steps, so each beam's past is its own."""
    own = np.broadcast_to(np.arange(beams, dtype=np.int32)[:, None], (rows // beams, beams, max_length))
    count, width = np.array([used], np.int32), np.array([beams], np.int32)
    return {"past_sequence_length": count, "past_seq_len": count, "beam_width": width, "num_beams": width, "cache_indirection": own}


def _empty_past(value: Value, rows: int, keys: int) -> Array:
    """Return a past (2, rows, heads, keys, size); heads and size are those that the graph's input states."""
    heads, size = _stated(value, 5, (2, 4))
    return _zeros(value, (2, rows, heads, keys, size))


def _empty_state(value: Value, rows: int, keys: int) -> Array:
    """Return a state (rows, heads, keys, size)."""
    heads, size = _stated(value, 4, (1, 3))
    return _zeros(value, (rows, heads, keys, size))


def _stated(value: Value, rank: int, axes: tuple[int, int]) -> tuple[int, int]:
    shape = value.shape
    sizes = [] if shape is None or len(shape) != rank else [dim for axis in axes if isinstance(dim := shape[axis], int)]
    if len(sizes) != len(axes):
        raise InvalidArgument(f"input {value.name!r} of the decoder is declared as {shape}; expected numbers for heads and size")
    return sizes[0], sizes[1]


def _zeros(value: Value, shape: tuple[int, ...]) -> Array:
    dtype = np.dtype(np.float32) if value.dtype is None else value.dtype.numpy
    check_output_size(shape, dtype.itemsize)
    return np.zeros(shape, dtype)
