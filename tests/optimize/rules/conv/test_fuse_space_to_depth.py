"""Slices with steps that are SpaceToDepth."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.fuse_space_to_depth import FUSE_CONV_GATHER, FUSE_SPACE_TO_DEPTH

CONSTANTS = """s00: int64[2] = [0, 0] s01: int64[2] = [0, 1] s10: int64[2] = [1, 0] s11: int64[2] = [1, 1]
    s02: int64[2] = [0, 2] far: int64[2] = [9223372036854775807, 9223372036854775807] size: int64[2] = [4, 6]
    short: int64[2] = [3, 6] ax: int64[2] = [2, 3] xa: int64[2] = [-1, -2] two: int64[2] = [2, 2]"""


def block(starts, ends="far", axes="ax"):
    return " ".join(f"p{index} = Slice(x, {start}, {ends}, {axes}, two)" for index, start in enumerate(starts))


def text(lines, shape="n, 3, 4, 6", join="y = Concat(p0, p1, p2, p3) {axis = 1}"):
    return f"graph(x: float[{shape}]) -> (y) {{ {CONSTANTS} {lines} {join} }}"


@pytest.mark.parametrize(
    ("starts", "left"),
    [
        (("s00", "s01", "s10", "s11"), ["SpaceToDepth"]),
        (("s00", "s10", "s01", "s11"), ["SpaceToDepth", "Gather"]),
    ],
)
@pytest.mark.parametrize("ends", ["far", "size"])
def test_fires_with_the_same_numbers(starts, left, ends):
    """The four places of a block of two, in the operator's order or in that of the Focus layer."""
    model, fired = apply_rule(FUSE_SPACE_TO_DEPTH, text(block(starts, ends)), rtol=0)
    assert fired == 1
    assert operators(model) == left


def test_axes_in_any_order():
    """Each start belongs to its axis."""
    model, fired = apply_rule(FUSE_SPACE_TO_DEPTH, text(block(("s00", "s10", "s01", "s11"), axes="xa")), rtol=0)
    assert fired == 1
    assert operators(model) == ["SpaceToDepth"]


@pytest.mark.parametrize(
    ("lines", "shape", "reason"),
    [
        (block(("s00", "s01", "s10", "s10")), "n, 3, 4, 6", "not one of each place"),
        (block(("s02", "s02", "s02", "s02")), "n, 3, 4, 6", "not one of each place"),
        (block(("s00", "s01", "s00", "s01"), "short"), "n, 3, 4, 6", "not one of each place"),
        (block(("s00", "s01", "s10", "s11")), "n, 3, 4, w", "not known to be multiples of 2"),
        (block(("s00", "s01", "s10", "s11")), "n, c, 4, 6", "of known channels"),
        ("p0 = Neg(x) p1 = Neg(x) p2 = Neg(x) p3 = Neg(x)", "n, 3, 4, 6", "not the slices of a block"),
    ],
)
def test_declines(lines, shape, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_SPACE_TO_DEPTH, text(lines, shape))


CONV = """graph(x: float[n, 4, 5, 5]) -> ({1}) {{ i: int64[4] = [2, 0, 3, 1] j: int64[4] = [0, 0, 1, 2]
    w: float[6, 4, 3, 3] = ... 1 {0} }}"""


def test_gathered_channels():
    """A convolution has its weights in the order in which the channels lie."""
    model, fired = apply_rule(FUSE_CONV_GATHER, CONV.format("g = Gather(x, i) {axis = 1} y = Conv(g, w)", "y"))
    assert fired == 1
    assert operators(model) == ["Conv"]


@pytest.mark.parametrize(
    ("lines", "outputs", "reason"),
    [
        ("g = Gather(x, j) {axis = 1} y = Conv(g, w)", "y", "not each gathered once"),
        ("g = Gather(x, i) {axis = 1} y = Conv(g, w) z = Neg(w)", "y, z", "the weights have other users"),
        ("v: float[4, 2, 1, 1] = ... 2 g = Gather(x, i) {axis = 1} y = Conv(g, v) {group = 2}", "y", "no match"),
    ],
)
def test_gathered_channels_stay(lines, outputs, reason):
    """Channels that are repeated, weights that others read, groups."""
    assert reason in declines(FUSE_CONV_GATHER, CONV.format(lines, outputs))
