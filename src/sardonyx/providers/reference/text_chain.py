"""Texts that are cut into words and counted, as one call: the words need no array of their own, padded to the most of a text.

StringNormalizer -> Tokenizer -> Flatten -> TfIdfVectorizer        each but the Tokenizer and the last may be missing
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.forks import without_fork
from sardonyx.ir import Node, Value
from sardonyx.providers.reference.algorithms.dimensions import check_output_size

__all__ = ["TextChain", "counter_of", "find_text_chains"]


@dataclasses.dataclass(frozen=True, slots=True)
class TextChain:
    """Nodes of a program, by number, whose results are read by the next one alone."""

    row: int | None
    """The Reshape that makes one row of the texts."""
    normalizer: int | None
    """The StringNormalizer."""
    tokenizer: int
    """The Tokenizer, of a text for each row."""
    between: int | None
    """The Flatten."""
    vectorizer: int
    """The TfIdfVectorizer."""

    @property
    def inner(self) -> frozenset[int]:
        """All but the last."""
        return frozenset(place for place in (self.row, self.normalizer, self.tokenizer, self.between) if place is not None)

    @property
    def first(self) -> int:
        """The first."""
        return min(self.inner)


def find_text_chains(nodes: Sequence[Node], outputs: Sequence[Value]) -> list[TextChain]:
    """Return the chains of a program that gives out `outputs`."""
    places = {node: place for place, node in enumerate(nodes)}
    found = [_chain(node, places, outputs) for node in nodes if _is(node, "TfIdfVectorizer")]
    return [chain for chain in found if chain is not None]


def _chain(vectorizer: Node, places: Mapping[Node, int], outputs: Sequence[Value]) -> TextChain | None:
    def before(node: Node) -> Node | None:
        """Return what makes the first input of a node, for that node alone."""
        source = node.inputs[0]
        maker = None if source is None else source.producer
        return maker if source is not None and maker in places and len(source.uses) == 1 and source not in outputs else None

    flatten = before(vectorizer)
    flatten = flatten if flatten is not None and _is(flatten, "Flatten") and flatten.get("axis", 1) == 1 else None
    tokenizer = before(vectorizer if flatten is None else flatten)
    if tokenizer is None or not _is(tokenizer, "Tokenizer", "com.microsoft") or tokenizer.get("mark", 0):
        return None
    shape = _shape(tokenizer)
    if len(shape) != 1 and not (len(shape) == 2 and shape[1] == 1 and flatten is not None):
        return None
    normalizer = before(tokenizer)
    if normalizer is not None and not (_is(normalizer, "StringNormalizer") and len(_shape(normalizer)) == 1):
        normalizer = None
    if normalizer is not None and normalizer.get("stopwords", ()):
        normalizer = None
    row = before(tokenizer if normalizer is None else normalizer)
    row = row if row is not None and _makes_a_row(row) else None
    first, second, third = (None if node is None else places[node] for node in (row, normalizer, flatten))
    return TextChain(first, second, places[tokenizer], third, places[vectorizer])


def _makes_a_row(node: Node) -> bool:
    target = node.inputs[1].constant if _is(node, "Reshape") and len(node.inputs) == 2 and node.inputs[1] is not None else None
    return target is not None and target.shape == (1,) and target.numpy().item() == -1


def _is(node: Node, op_type: str, domain: str = "") -> bool:
    return node.op_type == op_type and node.domain == domain and len(node.outputs) == 1


def _shape(node: Node) -> Sequence[object]:
    source = node.inputs[0]
    return () if source is None else source.shape or ()


def counter_of(
    chain: TextChain, attributes: Sequence[Mapping[str, Any]], one_by_one: Callable[[Array], Array]
) -> Callable[[Array], Array] | None:
    """Return what counts the words of texts; None where words would not be told from what fills up rows.

    Args:
        chain: the nodes.
        attributes: of each node of the program; Any, as they are of all types.
        one_by_one: calls the nodes behind the Reshape one after another, for no texts.

    Raises:
        InvalidArgument: attributes do not fit.
    """
    with without_fork():
        from sardonyx.providers.reference.kernels.contrib.string import token_cutter  # which few programs need
        from sardonyx.providers.reference.kernels.string import case_changer, vectorizer_of_attributes

    cutting, normal = attributes[chain.tokenizer], {} if chain.normalizer is None else attributes[chain.normalizer]
    cut = token_cutter(cutting.get("separators", ()), cutting.get("tokenexp", ""), cutting["mincharnum"])
    made = vectorizer_of_attributes(attributes[chain.vectorizer])
    if cutting["pad_value"] in made.pool.tokens.by_string or not made.pool.tokens.holds_strings:
        return None
    change = case_changer(normal.get("locale", ""), normal.get("case_change_action", "NONE"))

    def counted(texts: Array) -> Array:
        if not texts.size:
            return one_by_one(texts if chain.row is None else texts.reshape(-1))
        rows = [*map(cut, map(change, texts.reshape(-1).tolist()))]
        check_output_size((len(rows), made.width), 4)
        output = np.zeros((len(rows), made.width), np.float32)
        made.write_texts(rows, output)
        return output

    return counted
