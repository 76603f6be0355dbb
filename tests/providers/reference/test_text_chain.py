"""Texts that are cut into words and counted in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import graph

from sardonyx.providers.reference.program import ReferenceProgram

COUNTED = """graph(x: string[n]) -> (y) {
    low: string[n] = StringNormalizer(x) {case_change_action = "LOWER"}
    words: string[n, k] = com.microsoft.Tokenizer(low) {mark = 0, mincharnum = 1, pad_value = "#", tokenexp = "[a-z]+"}
    flat: string[n, k] = Flatten(words)
    y = TfIdfVectorizer(flat) {mode = "TFIDF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 1, ngram_counts = [0, 2],
        ngram_indexes = [2, 0, 1], pool_strings = ["a", "b", "a", "b"], weights = [0.5, 2.0, 3.0]}
}"""
TEXTS = ["A b,a", "", "b a c b", "none", "a " * 300]


def _program(text: str) -> ReferenceProgram:
    held = graph(text)
    return ReferenceProgram(
        tuple(held), held.inputs, tuple(held.initializers.values()), held.outputs, lambda body: pytest.fail(str(body))
    )


def _called(program: ReferenceProgram, texts: list[str]) -> tuple[int, Any]:
    plain = program.plain_calls()
    assert plain is not None
    values: list[Any] = [np.array(texts, object)]
    for call, arguments in plain.calls:
        values.append(call(*[values[place] for place in arguments]))
    return len(plain.calls), values[plain.outputs[0]]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], TEXTS[1:2], [], TEXTS * 50])
@pytest.mark.parametrize("left_out", [[], ["low"], ["flat"], ["low", "flat"]])
def test_one_call_counts_what_the_nodes_count(texts: list[str], left_out: list[str]) -> None:
    """Few words and many, of texts of any length, also of none."""
    text = COUNTED
    for name in left_out:
        start = text.index(f"    {name}: ")
        line = text[start : text.index("\n", start) + 1]
        source = line.partition("(")[2].partition(")")[0]
        text = text.replace(line, "").replace(f"({name})", f"({source})")
    program = _program(text)
    count, found = _called(program, texts)
    (expected,) = program.run(None, [np.array(texts, object)], (), None)
    assert count == 1
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('pad_value = "#"', 'pad_value = "a"'),
        ("mark = 0", "mark = 1"),
        ("x: string[n]", "x: string[n, 2]"),
        ("Flatten(words)", "Flatten(words) {axis = 0}"),
        ("-> (y)", "-> (y, words)"),
    ],
)
def test_other_chains_are_called_node_by_node(old: str, new: str) -> None:
    """Where what fills up rows counts, or a row is no text, or others read the words."""
    plain = _program(COUNTED.replace(old, new)).plain_calls()
    assert plain is not None
    assert len(plain.calls) > 1


def test_a_normalizer_that_drops_texts_is_called_by_itself() -> None:
    """The texts that it leaves are counted in one call."""
    count, found = _called(_program(COUNTED.replace('"LOWER"', '"LOWER", stopwords = ["none"]')), ["a", "None", "b"])
    assert (count, len(found)) == (2, 2)


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], []])
def test_a_column_of_texts_is_counted_in_one_call_too(texts: list[str]) -> None:
    """The Reshape before the other nodes makes a row of it, which is what they read."""
    column = """graph(c: string[n, 1]) -> (y) {
    s: int64[1] = [-1]
    x: string[n] = Reshape(c, s)
"""
    program = _program(COUNTED.replace("graph(x: string[n]) -> (y) {\n", column))
    plain = program.plain_calls()
    assert plain is not None
    ((call, arguments),) = plain.calls
    given = np.array([[text] for text in texts], object).reshape(-1, 1)
    np.testing.assert_array_equal(call(given), program.run(None, [given], (), None)[0])
    assert arguments == (0,)
    other = _program(COUNTED.replace("graph(x: string[n]) -> (y) {\n", column.replace("[-1]", "[2]"))).plain_calls()
    assert other is not None
    assert len(other.calls) == 2
