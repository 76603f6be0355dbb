"""The pairs of a rotary embedding."""

import pytest
from support.optimizing import model_of

from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.rotary_pairs import Pairs, read_pairs
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES

CONSTANTS = """z: int64[1] = [0] one: int64[1] = [1] two: int64[1] = [2] ax: int64[1] = [3] last: int64[1] = [-1]
    far: int64[1] = [9223372036854775807] seven: int64[1] = [7] six: int64[1] = [6] five: int64[5] = [0, 0, 0, 4, 2]
    uneven: int64[2] = [2, 6] four: int64[4] = [0, 0, 0, 4]"""


def read(lines: str) -> Pairs | None:
    model = model_of(f"graph(x: float[b, 5, s, 8]) -> (p, q) {{ {CONSTANTS} {lines} }}")
    INFER_SHAPES.run(model, Context())
    return read_pairs(*model.graph.outputs, frozenset())


@pytest.mark.parametrize(
    ("lines", "source", "is_alternating"),
    [
        ("p, q = Split(x) {axis = 3, num_outputs = 2}", "x", False),
        ("p, q = Split(x) {axis = -1, num_outputs = 2}", "x", False),
        ("p = Slice(x, z, far, ax, two) q = Slice(x, one, far, last, two)", "x", True),
        ("p = Slice(x, z, seven, ax, two) q = Slice(x, one, far, ax, two)", "x", True),
        ("t = Reshape(x, five) v, w = Split(t) {axis = 4, num_outputs = 2} p = Squeeze(v, last) q = Squeeze(w, last)", "t", True),
        ("t = Reshape(x, five) v, w = Split(t) {axis = 4, num_outputs = 2} p = Reshape(v, four) q = Squeeze(w, last)", "t", True),
    ],
)
def test_reads(lines, source, is_alternating):
    """Halves of the last axis, every second element of it, and columns of two."""
    pairs = read(lines)
    assert pairs is not None
    assert (pairs.source.name, pairs.is_alternating, pairs.is_split) == (source, is_alternating, source == "t")


@pytest.mark.parametrize(
    "lines",
    [
        "q, p = Split(x) {axis = 3, num_outputs = 2}",
        "p, q = Split(x, uneven) {axis = 3}",
        "p, q = Split(x) {axis = 0, num_outputs = 2}",
        "p = Slice(x, one, far, ax, two) q = Slice(x, z, far, ax, two)",
        "p = Slice(x, z, six, ax, two) q = Slice(x, one, six, ax, two)",
        "n = Neg(x) p = Slice(x, z, far, ax, two) q = Slice(n, one, far, ax, two)",
        "t = Reshape(x, five) v, w = Split(t) {axis = 4, num_outputs = 2} p = Squeeze(w, last) q = Squeeze(v, last)",
        "p = Neg(x) q = Abs(x)",
    ],
)
def test_reads_nothing_else(lines):
    """Parts in another order, of other sizes, of two values, and what are no parts."""
    assert read(lines) is None
