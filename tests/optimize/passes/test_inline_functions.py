"""Function bodies take the place of calls."""

import time

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.optimizing import model_of, operators

from sardonyx.errors import InvalidGraph
from sardonyx.ir import AttributeKind
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS, InlineFunctions


def inline(text):
    model = model_of(text)
    assert INLINE_FUNCTIONS.run(model, Context())
    verify(model)
    assert not model.functions
    assert not INLINE_FUNCTIONS.run(model, Context())
    return model


SCALE = """
function f.Scale(a) {factor, shift = 1.0} -> (c) {
    opset 18
    k = Constant() {value_float: float = @factor} @k
    s = Constant() {value_float: float = @shift}
    b = Mul(a, k) @mul
    c = Add(b, s)
}
"""


def test_call_becomes_its_body():
    """The body replaces the call, with attributes of the call and defaults, under the function's opset version."""
    model = inline("opset 21\ngraph(x: float[2]) -> (y: float[2]) { h = f.Scale(x) {factor = 3.0} @one y = Neg(h) }" + SCALE)
    assert operators(model) == ["Constant", "Constant", "Mul", "Add", "Neg"]
    assert [node.version for node in model.graph] == [18, 18, 18, 18, 21]
    assert evaluate_model(model, {"x": np.float32([1, 2])})[0].tolist() == [-4.0, -7.0]


def test_nodes_are_named_after_the_call():
    """Copies are named after the call, differently for each call."""
    model = inline("opset 21\ngraph(x) -> (z) { y = f.Scale(x) {factor = 3.0} @one z = f.Scale(y) {factor = 2.0} @one }" + SCALE)
    names = [node.name for node in model.graph]
    assert names[:4] == ["one/k", "one/Constant", "one/mul", "one/Add"]
    assert names[4:6] == ["one_1/k", "one_1/Constant"]


def test_output_of_the_graph_keeps_its_name():
    """An output that a call made keeps its name, also where the function hands an input through."""
    model = inline("opset 21\ngraph(x) -> (y, z) { y, z = f.F(x) }\nfunction f.F(a) -> (b, a) { b = Neg(a) }")
    assert [value.name for value in model.graph.outputs] == ["y", "z"]
    assert operators(model) == ["Neg", "Identity"]


def test_nested_calls_are_inlined():
    """A function that calls another is inlined down to operators, references resolved on the way."""
    text = (
        """opset 21
    graph(x: float[2]) -> (y) { y = f.Twice(x) {by = 2.0} }
    function f.Twice(a) {by} -> (c) { b = f.Scale(a) {factor: float = @by} c = f.Scale(b) {factor: float = @by, shift = 0.0} }
    """
        + SCALE
    )
    model = inline(text)
    assert evaluate_model(model, {"x": np.float32([1, 2])})[0].tolist() == [6.0, 10.0]


def test_calls_in_subgraphs_are_inlined():
    """Calls inside If, also those that an inlined body brings along, are inlined; captures stay."""
    text = (
        """opset 21
    graph(x: float[2], c: bool[]) -> (y) {
        y = If(c) {then_branch = graph() -> (t) { t = f.G(x, c) }, else_branch = graph() -> (x) {}} }
    function f.G(a, c) -> (r) {
        r = If(c) {
            then_branch = graph() -> (t) { k: float[] = 2.0 u = f.Scale(a) {factor = 5.0} t = Mul(u, k) },
            else_branch = graph() -> (a) {}} }
    """
        + SCALE
    )
    model = inline(text)
    assert evaluate_model(model, {"x": np.float32([1, 2]), "c": np.array(True)})[0].tolist() == [12.0, 22.0]


def test_inputs_left_out_are_left_out_inside():
    """An optional input that the call leaves out is missing in the body."""
    model = inline("opset 21\ngraph(x) -> (y) { y = f.F(x) }\nfunction f.F(a, low, high) -> (b) { b = Clip(a, low, high) }")
    assert len(next(iter(model.graph)).inputs) == 1


def test_attributes_without_value_are_left_out():
    """A reference to an attribute that neither call nor function gives a value is dropped."""
    function = "function f.F(a) {alpha} -> (b) { b = LeakyRelu(a) {alpha: float = @alpha} }"
    model = inline(f"opset 21\ngraph(x) -> (y) {{ y = f.F(x) }}\n{function}")
    assert not next(iter(model.graph)).attributes


def test_graphs_handed_over_as_attributes_are_copied():
    """A graph attribute of the call may be used by several nodes of the body."""
    text = """opset 21
    graph(x: float[2], c: bool[]) -> (y) { y = f.F(c) {g = graph() -> (t) { t = Neg(x) }} }
    function f.F(c) {g} -> (r) { p = If(c) {then_branch: graph = @g, else_branch: graph = @g} r = Neg(p) }
    """
    model = inline(text)
    branches = next(iter(model.graph)).subgraphs
    assert branches[0] is not branches[1]
    assert next(iter(model.graph)).attributes["then_branch"].kind is AttributeKind.GRAPH
    assert evaluate_model(model, {"x": np.float32([1, 2]), "c": np.array(True)})[0].tolist() == [1.0, 2.0]


def test_overloads_are_told_apart():
    """A call takes the function with its overload."""
    text = """opset 21
    graph(x) -> (y) { a = f.F<one>(x) y = f.F(a) }
    function f.F<one>(a) -> (b) { b = Neg(a) }
    function f.F(a) -> (b) { b = Exp(a) }"""
    assert operators(inline(text)) == ["Neg", "Exp"]


def test_initializers_of_bodies_move_out():
    """Constants of a body become constants of the graph, once for each call."""
    text = "opset 21\ngraph(x) -> (z) { y = f.F(x) z = f.F(y) }\nfunction f.F(a) -> (b) { k: float[] = 2.0 b = Mul(a, k) }"
    assert len(inline(text).graph.initializers) == 2


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ("function f.F(a) -> (b) { b = f.F(a) }", r"functions call themselves without end: f\.F -> f\.F"),
        ("function f.F(a) -> (b) { b = f.G(a) }\nfunction f.G(a) -> (b) { b = f.F(a) }", r"f\.F -> f\.G -> f\.F"),
        ("function f.F() -> (b) { b = Constant() {value_int = 1} }", "the function 'F' takes 0 and gives 1"),
    ],
)
def test_calls_that_cannot_be_inlined_are_named(functions, message):
    """A recursion and a call with too many inputs raise InvalidGraph."""
    with pytest.raises(InvalidGraph, match=message):
        INLINE_FUNCTIONS.run(model_of(f"opset 21\ngraph(x) -> (y) {{ y = f.F(x) }}\n{functions}"), Context())


def test_depth_is_limited():
    """A chain of calls deeper than the limit raises InvalidGraph."""
    chain = "\n".join(f"function f.F{i}(a) -> (b) {{ b = f.F{i + 1}(a) }}" for i in range(70))
    with pytest.raises(InvalidGraph, match="deeper than 64"):
        INLINE_FUNCTIONS.run(model_of(f"opset 21\ngraph(x) -> (y) {{ y = f.F0(x) }}\n{chain}"), Context())


def test_functions_that_double_are_refused_before_anything_is_copied():
    """Forty functions that each call the next twice would be 2 ** 40 nodes: InvalidGraph gives the number at once."""
    chain = "\n".join(f"function f.F{i}(a) -> (c) {{ b = f.F{i + 1}(a) c = f.F{i + 1}(b) }}" for i in range(40))
    model = model_of(f"opset 21\ngraph(x) -> (y) {{ y = f.F0(x) }}\n{chain}\nfunction f.F40(a) -> (b) {{ b = Relu(a) }}")
    start = time.process_time()
    with pytest.raises(InvalidGraph, match=f"would make {2**40} nodes"):
        INLINE_FUNCTIONS.run(model, Context())
    assert time.process_time() - start < 1


@pytest.mark.parametrize(("doublings", "copies"), [(17, 1), (10, 60)], ids=["one file", "many calls"])
def test_growth_is_bounded_by_the_nodes_of_the_file(doublings, copies):
    """Functions may make a model a hundred times larger, or have 100,000 nodes; the message says how many and what to do."""
    chain = "\n".join(f"function f.F{i}(a) -> (c) {{ b = f.F{i + 1}(a) c = f.F{i + 1}(b) }}" for i in range(doublings))
    calls = "\n".join(f"x{i + 1} = f.F0(x{i})" for i in range(copies))
    last = f"function f.F{doublings}(a) -> (c) {{ b = Relu(a) c = Neg(b) }}"
    model = model_of(f"opset 21\ngraph(x0) -> (x{copies}) {{ {calls} }}\n{chain}\n{last}")
    given, made = copies + 2 * doublings + 2, copies * 2 ** (doublings + 1)
    with pytest.raises(InvalidGraph, match=f"make {made} nodes of the {given} that the file has.*inline_local_functions"):
        INLINE_FUNCTIONS.run(model, Context())


def test_values_are_named_after_their_calls_where_that_is_asked_for():
    """As nodes are; else they go unnamed until they are saved."""
    text = "graph(x: float[2]) -> (y: float[2]) { y = f.Twice(x) @call }\nfunction f.Twice(a) -> (c) { b = Neg(a) c = Neg(b) }"
    model = model_of(text)
    assert InlineFunctions(names_values=True).run(model, Context())
    assert [node.output.name for node in model.graph] == ["call/b", "y"]
