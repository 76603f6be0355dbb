"""Products of queries and keys of cross attention, kept while a generation loop runs.

B batch elements, each with R sequences returned; P pairs of layer and head; T tokens that the decoder read; F keys of the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size
from sardonyx.providers.reference.algorithms.generation_decoders import EncoderDecoder, NextScores

__all__ = ["CrossProducts"]


class CrossProducts:
    """A decoder whose last outputs, (rows, heads, 1, F) for each layer, are kept for each token that it reads."""

    def __init__(self, decoder: EncoderDecoder, pairs: Array | None) -> None:
        """Keep the products of `pairs` (P, 2), layers and their heads; of all heads of all layers without them.

        Raises:
            InvalidArgument: the pairs have another shape.
        """
        if pairs is not None and (pairs.ndim != 2 or pairs.shape[1] != 2):
            raise InvalidArgument(f"cross_qk_layer_head has shape {pairs.shape}; expected (pairs, 2)")
        self._decoder, self._pairs = decoder, pairs
        self._steps: list[Array] = []

    def start(self) -> NextScores:
        """Read the prompt, of which nothing is kept."""
        return self._decoder.start()

    def advance(self, tokens: Array, pick: Sequence[int] | Array, sequences: Array, totals: Array | None = None) -> NextScores:
        """Read one more token (rows,), where row r goes on from row pick[r], and keep its products."""
        found = self._decoder.advance(tokens, pick, sequences, totals)
        self._steps.append(self._chosen(self._decoder.products_of_layers()))
        check_output_size((len(self._steps), *self._steps[-1].shape), 4)
        return found

    def _chosen(self, layers: list[Array]) -> Array:
        """Return (rows, P, F) of a step."""
        if self._pairs is None:
            return np.concatenate([layer[:, :, -1] for layer in layers], axis=1).astype(np.float32, copy=False)
        heads = layers[0].shape[1]
        for layer, head in self._pairs.tolist():
            if not (0 <= layer < len(layers) and 0 <= head < heads):
                raise InvalidArgument(
                    f"cross_qk_layer_head names head {head} of layer {layer}; the decoder has {len(layers)} layers of {heads} heads"
                )
        chosen: list[Array] = [layers[layer][:, head, -1] for layer, head in self._pairs.tolist()]
        return np.stack(chosen, axis=1).astype(np.float32, copy=False) if chosen else np.zeros((len(layers[0]), 0, 0), np.float32)

    def along(self, paths: Array) -> Array:
        """Return the products (B, R, P, T, F) of sequences that read token t in row paths[B, R, t]; 0 where that is below 0."""
        if not self._steps:
            return np.zeros((*paths.shape[:2], 0 if self._pairs is None else len(self._pairs), 0, 0), np.float32)
        _, pairs, frames = self._steps[0].shape
        shape = (*paths.shape[:2], pairs, len(self._steps), frames)
        check_output_size(shape, 4)
        found = np.zeros(shape, np.float32)
        for step, products in enumerate(self._steps):
            batch, place = np.nonzero(paths[:, :, step] >= 0)
            found[batch, place, :, step] = products[paths[batch, place, step]]
        return found
