"""What a match tells a rule."""

import pytest
from support.optimizing import model_of

from sardonyx.optimize.match import find_matches
from sardonyx.optimize.pattern import compile_pattern


def _pattern(op, x, w):
    return op.Conv(op.Relu(x, _as="relu"), op.constant(w), op.optional("b"), strides=op.attribute("strides"), group=1)


@pytest.fixture
def match():
    """A match of a convolution after Relu, without bias."""
    model = model_of("graph(x: float[1, 2, 4]) -> (y) { w: float[3, 2, 1] = ... 1 r = Relu(x) y = Conv(r, w) {strides = [2]} }")
    *_, root = model.graph
    (found,) = find_matches(compile_pattern(_pattern), root, frozenset())
    return found


def test_values_are_found_by_parameter(match):
    """match[name] is the value; one left out raises KeyError there and is None with get."""
    assert match["x"].name == "x"
    assert match.get("b") is None
    assert match.get("unknown") is None
    with pytest.raises(KeyError):
        match["b"]
    with pytest.raises(KeyError, match="unknown; the pattern has x, w, b"):
        match["unknown"]


def test_constants_come_as_tensor_or_elements(match):
    """A tensor is given without reading it, its elements up to a size."""
    assert match.tensor("w").shape == (3, 2, 1)
    assert match.tensor("x") is None
    assert match.constant("w").shape == (3, 2, 1)
    assert match.constant("w", max_elements=5) is None


def test_nodes_and_attributes_are_found_by_name(match):
    """Captured nodes and attributes, the root first among all nodes."""
    assert match.node("relu").op_type == "Relu"
    assert (match.has("relu"), match.has("conv")) == (True, False)
    assert match.attribute("strides") == (2,)
    assert [node.op_type for node in match.nodes] == ["Conv", "Relu"]
    assert match.outputs == match.root.outputs


class _Trace:
    """Lists what cannot be replaced."""

    def __init__(self):
        self.seen = []

    def read_elsewhere(self, match, value):
        self.seen.append(value.name)

    def made_between(self, match):
        self.seen.append("between")


def test_a_trace_is_given_what_cannot_be_replaced():
    """The value that others read, and nodes on a path from one matched node to another."""
    trace = _Trace()
    model = model_of("graph(x) -> (y, r) { r = Relu(x) y = Neg(r) }")
    pattern = compile_pattern(lambda op, x: op.Neg(op.Relu(x)))
    assert list(find_matches(pattern, list(model.graph)[1], frozenset(), trace)) == []
    model = model_of("graph(x) -> (y, z) { a = Relu(x) m = Neg(a) y = Add(a, m) z = Sub(m, y) }")
    assert list(find_matches(compile_pattern(_two), list(model.graph)[2], frozenset(), trace)) == []
    assert trace.seen == ["r", "between"]


def _two(op, x, m):
    a = op.Relu(x)
    return op.Add(a, m), a
