"""Queries, keys and values of attention, read through what splits their heads."""

import dataclasses

import pytest
from support.optimizing import model_of

from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.attention_heads import read_heads, read_keys, repeated, tokens_of
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES

CONSTANTS = """four: int64[4] = [0, 0, 3, -1] three: int64[3] = [-1, 7, 8] back: int64[4] = [-1, 3, 8, 7]
    wrong: int64[4] = [-1, 6, 8, 7] ax: int64[1] = [2] five: int64[5] = [1, 1, 2, 1, 1] six: int64[4] = [2, 6, 7, 8]"""


def value_of(lines, inputs="x: float[2, 7, 24]"):
    model = model_of(f"graph({inputs}) -> (y) {{ {CONSTANTS} {lines} }}")
    INFER_SHAPES.run(model, Context())
    return model.graph.outputs[0]


def test_heads_of_tokens():
    """Heads that are transposed from tokens know them, and can be packed."""
    heads = read_heads(value_of("t = Reshape(x, four) y = Transpose(t) {perm = [0, 2, 1, 3]}"))
    assert heads is not None
    assert (heads.shape, heads.is_split, heads.can_pack) == ((2, 3, 7, 8), True, True)
    assert heads.tokens is not None
    assert heads.tokens.name == "t"


def test_heads_of_anything_else():
    """Heads of unknown origin are taken as they are."""
    heads = read_heads(value_of("y = Neg(x)", "x: float[2, 3, 7, 8]"))
    assert heads is not None
    assert (heads.tokens, heads.can_pack) == (None, False)
    assert read_heads(value_of("y = Neg(x)", "x: float[7, 8]")) is None


def test_joined_heads_are_split_where_they_were():
    """(B x H, S, D) is read as the four dimensions that it was made of, and else as it is."""
    heads = read_heads(value_of("t = Reshape(x, four) h = Transpose(t) {perm = [0, 2, 1, 3]} y = Reshape(h, three)"))
    assert heads is not None
    assert (heads.shape, heads.can_pack) == ((2, 3, 7, 8), True)
    heads = read_heads(value_of("y = Neg(x)", "x: float[6, 7, 8]"))
    assert heads is not None
    assert not heads.is_split


def test_heads_that_are_turned_twice():
    """Values that are transposed, joined and transposed back are read as the four dimensions that they were made of."""
    lines = "t = Reshape(x, four) k = Transpose(t) {perm = [0, 2, 3, 1]} r = Reshape(k, joined) y = Transpose(r) {perm = [0, 2, 1]}"
    heads = read_heads(value_of(f"joined: int64[3] = [-1, 8, 7] {lines}"))
    assert heads is not None
    assert (heads.shape, heads.can_pack) == ((2, 3, 7, 8), True)
    heads = read_heads(value_of("y = Transpose(x) {perm = [0, 2, 1]}", "x: float[6, 8, 7]"))
    assert heads is not None
    assert (heads.shape, heads.is_split) == ((6, 7, 8), False)


def test_windows_are_more_batches():
    """Five dimensions are read as four, whose first is batch and windows."""
    heads = read_heads(value_of("y = Transpose(x) {perm = [0, 1, 3, 2, 4]}", "x: float[2, 4, 7, 3, 8]"))
    keys = read_keys(value_of("y = Transpose(x) {perm = [0, 1, 3, 4, 2]}", "x: float[2, 4, 7, 3, 8]"))
    for found in (heads, keys):
        assert found is not None
        assert (found.shape, found.outer, found.can_pack) == ((8, 3, 7, 8), (2, 4), True)
    assert read_heads(value_of("y = Neg(x)", "x: float[2, 4, s, 3, 8]")) is None


HEADS = "t = Reshape(x, four) h = Transpose(t) {perm = [0, 2, 1, 3]}"


@pytest.mark.parametrize(
    "lines",
    [
        f"{HEADS} y = Transpose(h) {{perm = [0, 1, 3, 2]}}",
        "t = Reshape(x, four) y = Transpose(t) {perm = [0, 2, 3, 1]}",
        f"{HEADS} r = Reshape(h, three) y = Transpose(r) {{perm = [0, 2, 1]}}",
        f"{HEADS} r = Reshape(h, three) s = Transpose(r) {{perm = [0, 2, 1]}} y = Reshape(s, back)",
    ],
)
def test_keys(lines):
    """Keys are read through each way to transpose them."""
    keys = read_keys(value_of(lines))
    assert keys is not None
    assert (keys.shape, keys.can_pack) == ((2, 3, 7, 8), True)


@pytest.mark.parametrize(
    "lines",
    [
        f"{HEADS} y = Transpose(h) {{perm = [1, 0, 3, 2]}}",
        f"{HEADS} y = Neg(h)",
        f"{HEADS} r = Reshape(h, three) s = Transpose(r) {{perm = [0, 2, 1]}} y = Reshape(s, wrong)",
    ],
)
def test_keys_that_are_not_transposed(lines):
    """Other permutations and operators, and reshapes that split otherwise than they joined: they lie as the product wants them."""
    value = value_of(lines)
    keys = read_keys(value)
    assert keys is not None
    assert (keys.transposed, keys.can_pack) == (value, False)
    assert keys.shape == (*value.shape[:-2], value.shape[-1], value.shape[-2])


def test_what_are_no_keys():
    """A matrix has no heads."""
    assert read_keys(value_of("y = Neg(x)", "x: float[7, 8]")) is None


def test_repeated_heads():
    """Heads that are repeated by Unsqueeze, Expand and Reshape are read before that."""
    lines = "u = Unsqueeze(x, ax) e = Expand(u, five) y = Reshape(e, six)"
    heads = read_heads(value_of(lines, "x: float[2, 3, 7, 8]"))
    assert heads is not None
    few = repeated(heads)
    assert few is not None
    assert few.shape == (2, 3, 7, 8)


@pytest.mark.parametrize("lines", ["y = Neg(x)", "u = Unsqueeze(x, ax) y = Reshape(u, six)", "y = Reshape(x, six)"])
def test_heads_that_are_not_repeated(lines):
    """Without an Expand nothing is."""
    heads = read_heads(value_of(lines, "x: float[2, 6, 7, 8]"))
    assert heads is not None
    assert repeated(heads) is None


def test_heads_with_a_factor():
    """What is to be multiplied first is not packed."""
    heads = read_heads(value_of("t = Reshape(x, four) y = Transpose(t) {perm = [0, 2, 1, 3]}"))
    assert heads is not None
    assert heads.can_pack
    assert not dataclasses.replace(heads, factor=heads.value).can_pack


def test_tokens_of():
    """Tokens are what the transpose of two middle dimensions reads."""
    assert tokens_of(value_of("y = Transpose(x) {perm = [0, 2, 1, 3]}", "x: float[2, 3, 7, 8]")) is not None
    assert tokens_of(value_of("y = Transpose(x) {perm = [0, 1, 3, 2]}", "x: float[2, 3, 7, 8]")) is None
