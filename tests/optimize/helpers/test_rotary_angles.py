"""The cosines and sines of a rotary embedding."""

import pytest
from support.optimizing import model_of

from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.rotary_angles import HEADS, TOKENS, Angles, heads_axis_of, read_angles
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES

CONSTANTS = """k: float[] = 2.0 many: float[4] = [1, 2, 3, 4] last: int64[1] = [-1] ax: int64[1] = [1] flat: int64[3] = [0, 0, 4]
    tile: int64[3] = [1, 1, 2] pair: int64[4] = [1, 1, 1, 2] halves: float[2, 4] = [1, 2, 1, 2, 3, 4, 3, 4]
    twice: float[2, 4] = [1, 1, 2, 2, 3, 3, 4, 4] i: int64[3] = [0, 1, 1]"""


def read(lines: str, *, is_alternating: bool) -> Angles | None:
    model = model_of(f"graph(g: float[b, s, 2], o: float[b, s, 2]) -> (y) {{ {CONSTANTS} {lines} }}")
    INFER_SHAPES.run(model, Context())
    return read_angles(model.graph.outputs[0], frozenset(), is_alternating=is_alternating)


TWICE = "u = Unsqueeze(g, last) w = {} e = Reshape(w, flat)"


@pytest.mark.parametrize(
    ("lines", "is_alternating", "base", "steps"),
    [
        ("y = Concat(g, g) {axis = 2}", False, "g", []),
        ("y = Tile(g, tile)", False, "g", []),
        ("e = Concat(g, g) {axis = -1} c = Cos(e) m = Mul(c, k) y = Unsqueeze(m, ax)", False, "g", ["Cos", "Mul", "Unsqueeze"]),
        (TWICE.format("Concat(u, u) {axis = 3}") + "y = Sin(e)", True, "u", ["Sin"]),
        (TWICE.format("Expand(u, pair)") + "y = Sin(e)", True, "u", ["Sin"]),
        (TWICE.format("Tile(u, pair)") + "y = Sin(e)", True, "u", ["Sin"]),
        ("y = Gather(halves, i)", False, "halves", ["Gather"]),
        ("y = Gather(twice, i)", True, "twice", ["Gather"]),
    ],
)
def test_reads(lines, is_alternating, base, steps):
    """What is given twice, computed or constant, and what is done alike to both."""
    angles = read(lines, is_alternating=is_alternating)
    assert angles is not None
    assert (angles.base.name, [node.op_type for node in angles.steps]) == (base, steps)


@pytest.mark.parametrize(
    ("lines", "is_alternating"),
    [
        ("y = Concat(g, o) {axis = 2}", False),
        ("y = Concat(g, g) {axis = 2}", True),
        ("y = Concat(g, g) {axis = 1}", False),
        ("e = Concat(g, g) {axis = 2} y = Mul(e, many)", False),
        ("e = Concat(g, g) {axis = 2} y = Tanh(e)", False),
        (TWICE.format("Concat(u, u) {axis = 3}") + "y = Sin(e)", False),
        ("y = Gather(twice, i)", False),
        ("y = Gather(halves, i)", True),
        ("y = Neg(g)", False),
    ],
)
def test_reads_nothing_else(lines, is_alternating):
    """Pairs of the other kind, of two values, and what is done to single elements."""
    assert read(lines, is_alternating=is_alternating) is None


@pytest.mark.parametrize(
    ("angles", "axis"),
    [
        ((2, 1, 3, 8), HEADS),
        ((1, 1, 3, 8), HEADS),
        ((3, 8), HEADS),
        ((1, 3, 8), HEADS),
        ((2, 5, 1, 8), TOKENS),
        ((5, 1, 8), TOKENS),
        ((2, 5, 3, 8), None),
        ((4, 1, 3, 8), None),
        ((8,), None),
        (None, None),
    ],
)
def test_axis_of_heads(angles, axis):
    """Which of (2, 5, 3, 8) are heads: those for all of which there is one angle."""
    assert heads_axis_of(angles, (2, 5, 3, 8)) == axis
