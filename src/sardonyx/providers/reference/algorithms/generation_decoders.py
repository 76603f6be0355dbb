"""The models inside the generation loops of com.microsoft: graph attributes that are run once per token.

Rows are batch times beams. A decoder keeps what its graph hands from step to step; `pick` tells which row each row goes on from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, Value
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.registry import Body

__all__ = ["Decoder", "EncoderDecoder", "LanguageModel"]


_CACHE_INPUTS = frozenset({"past_sequence_length", "past_seq_len", "beam_width", "num_beams", "cache_indirection"})
"""What a graph with buffers of keys may ask, as `_cache_inputs` answers it."""


class Decoder(Protocol):
    """A model that gives the scores of the next token, (rows, V) in float32."""

    def start(self) -> Array:
        """Read the prompt."""

    def advance(self, tokens: Array, pick: Array, sequences: Array) -> Array:
        """Read one more token (rows,), where row r goes on from row pick[r]; `sequences` (rows, length) ends with the tokens."""


class LanguageModel:
    """A decoder like GPT-2: (input_ids, position_ids, attention_mask, past_0 …) -> (logits, present_0 …).

    A past is (2, rows, heads, keys, size). A graph with the input past_sequence_length has buffers of `max_length` keys instead of
    growing ones. `first` is a graph of the same form for the first run.
    """

    def __init__(self, body: Body, first: Body | None, prompt: Array, mask: Array, beams: int, max_length: int) -> None:
        """Begin with `prompt` (rows, length) and its `mask`, 0 for what is not read."""
        self._body, self._first = body, first
        self._prompt, self._mask = prompt, mask
        self._next_position = mask.sum(axis=1)
        self._beams, self._max_length = beams, max_length
        self._states: list[Array] = []
        self._asks_for_caches = not _CACHE_INPUTS.isdisjoint(_names(_graph(body)))

    def start(self) -> Array:
        """Run the graph on the prompt with empty pasts."""
        body = self._first or self._body
        positions = np.where(self._mask == 0, 0, np.cumsum(self._mask, axis=1) - 1)
        known = {"input_ids": self._prompt, "position_ids": positions, "attention_mask": self._mask}
        known |= _cache_inputs(0, len(self._prompt), self._beams, self._max_length)
        keys = self._max_length if "past_sequence_length" in _names(_graph(body)) else 0
        self._states = [_empty_past(graph_input, len(self._prompt), keys) for graph_input in _others(_graph(body), known)]
        return self._run(body, known)

    def advance(self, tokens: Array, pick: Array, sequences: Array) -> Array:
        """Run the graph on one token a row."""
        if not _is_identity(pick):
            self._states = [state.take(pick, axis=1) for state in self._states]
            self._mask, self._next_position = self._mask.take(pick, axis=0), self._next_position.take(pick)
        self._mask = np.concatenate([self._mask, np.ones((len(tokens), 1), self._mask.dtype)], axis=1)
        known = {"input_ids": tokens[:, None], "position_ids": self._next_position[:, None], "attention_mask": self._mask}
        if self._asks_for_caches:
            known |= _cache_inputs(sequences.shape[1] - 1, len(tokens), self._beams, self._max_length)
        self._next_position = self._next_position + 1
        return self._run(self._body, known)

    def _run(self, body: Body, known: Mapping[str, Array]) -> Array:
        logits, *self._states = body(*_feeds(_graph(body), known, self._states))
        return _last(logits)


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
        self._encoder, self._decoder = encoder, decoder
        self._known, self._prompt = dict(known), prompt
        self._beams, self._max_length = beams, max_length
        self._states: list[Array] = []
        self._cross: list[Array] = []
        self._products: list[Array] = []

    def start(self) -> Array:
        """Run the encoder on the batch, and spread what it gives over the beams."""
        graph = _graph(self._encoder)
        given = self._known | {"decoder_input_ids": self._prompt}
        outputs = self._encoder(*_feeds(graph, given, ()))
        names = [value.name for value in graph.outputs]
        heads = {name: output for name, output in zip(names, outputs, strict=True) if name in ("logits", "encoder_hidden_states")}
        states = [output for name, output in zip(names, outputs, strict=True) if name not in heads]
        return self._begin(heads, states, _self_states(_graph(self._decoder)))

    def _begin(self, heads: dict[str, Array], states: list[Array], count: int) -> Array:
        self._known = {name: self._spread(array) for name, array in (self._known | heads).items() if name != "logits"}
        spread = [self._spread(state) for state in states]
        self._states, self._cross = (spread[:count], spread[count:]) if "logits" in heads else ([], spread)
        if "logits" not in heads:
            return self._run_prompt(count)
        if self._has_buffers:
            self._states = [self._buffer(state) for state in self._states]
        return self._spread(_last(heads["logits"]))

    def _run_prompt(self, count: int) -> Array:
        """Run the decoder on what it has said, where the encoder does not."""
        prompt = self._spread(self._prompt)
        known = self._known | {"input_ids": prompt} | _cache_inputs(0, len(prompt), self._beams, self._max_length)
        empty = _others(_graph(self._decoder), known)[:count]
        keys = self._max_length if self._has_buffers else 0
        self._states = [_empty_state(graph_input, len(prompt), keys) for graph_input in empty]
        return self._run(known)

    def advance(self, tokens: Array, pick: Array, sequences: Array) -> Array:
        """Run the decoder on one token a row, or on the whole sequences where its input_ids may have any length."""
        if not _is_identity(pick):
            self._states = [state.take(pick, axis=0) for state in self._states]
        known = self._known | {"input_ids": tokens[:, None] if self._takes_one_token else sequences}
        return self._run(known | _cache_inputs(sequences.shape[1] - 1, len(tokens), self._beams, self._max_length))

    def _run(self, known: Mapping[str, Array]) -> Array:
        logits, *states = self._decoder(*_feeds(_graph(self._decoder), known, [*self._states, *self._cross]))
        self._states, self._products = states[: len(self._states)], states[len(self._states) :]
        return _last(logits)

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
        shape = _graph(self._decoder).inputs[0].shape
        return shape is not None and len(shape) == 2 and shape[1] == 1

    @property
    def _has_buffers(self) -> bool:
        return bool({"past_sequence_length", "past_seq_len"} & set(_names(_graph(self._decoder))))

    def _spread(self, array: Array) -> Array:
        check_output_size((len(array) * self._beams, *array.shape[1:]), array.itemsize)
        return np.repeat(array, self._beams, axis=0)

    def _buffer(self, state: Array) -> Array:
        whole = np.zeros((*state.shape[:2], self._max_length, state.shape[3]), state.dtype)
        whole[:, :, : state.shape[2]] = state
        return whole


def _is_identity(pick: Array) -> bool:
    """Return whether each row goes on from itself, so that no state has to move."""
    return bool(pick.tolist() == list(range(len(pick))))


def _graph(body: Body) -> Graph:
    found: Graph = body.graph  # type: ignore[attr-defined]  # a program's bodies show their graphs; the protocol does not ask it
    return found


def _names(graph: Graph) -> list[str]:
    return [value.name for value in graph.inputs]


def _self_states(decoder: Graph) -> int:
    """Return how many of the decoder's states are of self-attention: key and value of each layer."""
    return sum(value.name.startswith("past_") and "_self_" in value.name for value in decoder.inputs)


def _others(graph: Graph, known: Mapping[str, Array]) -> list[Value]:
    """Return the inputs that are states."""
    return [value for value in graph.inputs if value.name not in known]


def _feeds(graph: Graph, known: Mapping[str, Array], states: Sequence[Array]) -> list[Array]:
    """Return an array for each input: those of known names, and the states in order for the others."""
    waiting = list(states)
    feeds = []
    for value in graph.inputs:
        if value.name in known:
            array = known[value.name]
            feeds.append(array if value.dtype is None else array.astype(value.dtype.numpy, copy=False))
        elif waiting:
            feeds.append(waiting.pop(0))
        else:
            raise InvalidArgument(f"graph {graph.name!r} has the input {value.name!r}, which the loop has nothing for")
    return feeds


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


def _last(logits: Array) -> Array:
    """Return the scores of the last place (rows, V) of logits (rows, length, V)."""
    if logits.ndim != 3 or logits.shape[1] == 0:
        raise InvalidArgument(f"the decoder's logits have shape {logits.shape}; expected (rows, length, vocabulary)")
    return logits[:, -1].astype(np.float32)
