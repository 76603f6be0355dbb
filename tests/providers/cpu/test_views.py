"""Values as strided views."""

import numpy as np
import pytest
from support.models import model

from sardonyx.codegen.target import host_target
from sardonyx.ir.shape import symbol
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.providers.cpu.claims import claim_node
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.views import view_of

B = symbol("b")
X = np.arange(2 * 5 * 24, dtype=np.float32).reshape(2, 5, 24)


def trace(lines, shown="y"):
    """The view of a value behind x (b, 5, 24), of which all values are held, and the elements that it names for b = 2."""
    made = model(f"""graph(x: float[b, 5, 24]) -> (y) {{ five: int64[5] = [0, 0, 3, 2, 4] four: int64[4] = [0, 0, 6, 4]
        ax: int64[1] = [0] one: int64[1] = [1] flat: int64[2] = [0, 120] {lines} }}""")
    INFER_SHAPES.run(made, Context())
    low = Lowering(host_target(None), 1)
    x = made.graph.inputs[0]
    low.of(x)
    for node in made.graph:
        claimed = claim_node(node)
        low.specs[node] = None if isinstance(claimed, str) else claimed.spec
        for value in node.outputs:
            low.of(value)
    found = view_of(low, next(value for node in made.graph for value in node.outputs if value.name == shown))
    sizes = Sizes({"b": 2})
    root, offset = found.buffer, 0
    while root.base is not None:
        offset += sizes(root.offset)
        root = root.base
    if root is not low.of(x):
        return root, None
    strides = [4 * sizes(stride) for stride in found.strides]
    return root, np.lib.stride_tricks.as_strided(X.ravel()[offset:], sizes.shape(found.buffer.shape), strides)


PARTS = "r = Reshape(x, five) t = Transpose(r) {perm = [2, 0, 3, 1, 4]} a, c, d = Split(t) {axis = 0, num_outputs = 3}"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (f"{PARTS} y = Squeeze(c, ax)", X.reshape(2, 5, 3, 2, 4).transpose(2, 0, 3, 1, 4)[1]),
        (f"{PARTS} y = Identity(d)", X.reshape(2, 5, 3, 2, 4).transpose(2, 0, 3, 1, 4)[2:]),
        ("a, c = Split(x) {axis = -1, num_outputs = 2} y = Identity(c)", X[..., 12:]),
        ("r = Reshape(x, four) y = Transpose(r)", X.reshape(2, 5, 6, 4).T),
        ("t = Transpose(x) {perm = [1, 0, 2]} u = Unsqueeze(t, one) y = Identity(u)", X.transpose(1, 0, 2)[:, None]),
    ],
)
def test_what_is_looked_through(lines, expected):
    """Splits, transposes, dimensions of 1 and reshapes that split dimensions."""
    _, found = trace(lines)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("lines", ["y = Neg(x)", "t = Transpose(x) {perm = [0, 2, 1]} y = Reshape(t, flat)"])
def test_what_is_not(lines):
    """Operators that compute, and reshapes that join dimensions which do not lie together, end the view."""
    root, _ = trace(lines)
    assert root.shape == ((B, 5, 24) if "Neg" in lines else (B, 120))


def test_what_is_not_held_is_not_read():
    """A value that no buffer holds, such as one within a group, is not looked at."""
    made = model("graph(x: float[4, 3]) -> (y) { y = Transpose(x) }")
    INFER_SHAPES.run(made, Context())
    low = Lowering(host_target(None), 1)
    y = made.graph.outputs[0]
    assert view_of(low, y).buffer is low.of(y)
