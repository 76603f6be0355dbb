"""Terms, as far as test_pattern.py does not show them through the notation."""

from support.optimizing import model_of

from sardonyx.optimize.pattern import compile_pattern
from sardonyx.optimize.terms import AnyValue, Found, MatchScope, attribute_value

NOTHING = Found({}, {}, {})
NOWHERE = MatchScope(None, frozenset())


def test_binding_again_needs_the_same_value():
    """A name that is bound takes only the value that it has."""
    model = model_of("graph(x, y) -> (x) {}")
    x, y = model.graph.inputs
    found = NOTHING.bind("a", x)
    assert found is not None
    assert found.bind("a", x) is found
    assert found.bind("a", y) is None


def test_what_is_found_does_not_change():
    """Binding leaves the match so far as it was."""
    (x,) = model_of("graph(x) -> (x) {}").graph.inputs
    list(AnyValue("a").match(x, NOTHING, NOWHERE))
    assert not NOTHING.values


def test_attribute_falls_back_to_the_schemas_default():
    """attribute_value gives what the node has, else the default in force at its opset, else None."""
    model = model_of("graph(x) -> (c) { a = Softmax(x) b = Softmax:11(a) c = custom.Op(b) {k = 2} }")
    new, old, custom = model.graph
    assert attribute_value(new, "axis") == -1
    assert attribute_value(old, "axis") == 1
    assert attribute_value(custom, "k") == 2
    assert attribute_value(custom, "other") is None


def test_the_quick_look_is_never_stricter_than_the_match():
    """Producers of inputs decide at first sight; alternatives, commuted inputs and left out ones count."""

    def root(function):
        return compile_pattern(function).roots[0].operation

    graph = model_of("graph(x, y) -> (s, c) { a = Neg(x) b = Exp(y) s = Sub(a, b) m = Add(b, a) c = Clip(m) }").graph
    nodes = {node.op_type: node for node in graph}
    assert root(lambda op, x, y: op.Sub(op.Neg(x), op.Exp(y))).may_match(nodes["Sub"])
    assert not root(lambda op, x, y: op.Sub(op.Exp(x), op.Neg(y))).may_match(nodes["Sub"])
    assert root(lambda op, x, y: op.Sub(op.any_of(op.Exp(x), op.Neg(x)), y)).may_match(nodes["Sub"])
    assert root(lambda op, x, y: op.Add(op.Neg(x), op.Exp(y))).may_match(nodes["Add"])
    assert not root(lambda op, x, y: op.Add(op.Neg(x), op.Neg(y))).may_match(nodes["Add"])
    assert root(lambda op, x: op.Clip(op.Add(x, x), op.optional("low"))).may_match(nodes["Clip"])
    assert not root(lambda op, x, y: op.Clip(x, op.Neg(y))).may_match(nodes["Clip"])
