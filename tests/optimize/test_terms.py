"""Terms, as far as test_pattern.py does not show them through the notation."""

from support.optimizing import model_of

from sardonyx.optimize.terms import AnyValue, Found, Place, attribute_value

NOTHING = Found({}, {}, {})
NOWHERE = Place(None, frozenset())


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
