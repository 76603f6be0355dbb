"""What nothing reads goes."""

from support.optimizing import apply_pass, body, model_of, operators

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.eliminate_dead_nodes import ELIMINATE_DEAD_NODES


def clean(text, **options):
    return apply_pass(ELIMINATE_DEAD_NODES, text, **options)


def test_chains_and_their_constants_go():
    """A chain that leads nowhere goes in one run, with its constants; unused inputs stay."""
    model, changed = clean("graph(x: float[2], u: float[2]) -> (y) { c: float[] = 1.0 a = Add(u, c) b = Neg(a) y = Relu(x) }")
    assert changed
    assert operators(model) == ["Relu"]
    assert not model.graph.initializers
    assert len(model.graph.inputs) == 2


def test_nothing_to_do_is_no_change():
    """A graph without dead parts is left alone."""
    _, changed = clean("graph(x: float[2]) -> (y) { y = Relu(x) }")
    assert not changed


def test_random_operators_go_like_others():
    """A node that draws random numbers has no other effect and goes."""
    model, _ = clean("graph(x: float[2]) -> (y) { r = RandomNormal() {shape = [2]} y = Relu(x) }")
    assert operators(model) == ["Relu"]


def test_initializer_that_is_an_input_or_output_stays():
    """Initializers that the interface names stay."""
    model, changed = clean("graph(d: float[1]) -> (c) { d: float[1] = [1] c: float[1] = [2] }", compare=False)
    assert not changed
    assert list(model.graph.initializers) == ["d", "c"]


def test_unused_output_of_if_goes_with_what_makes_it():
    """An output of If that nothing reads goes from both branches, and what only it needed goes too, outside as well."""
    text = """graph(x: float[2], c: bool[]) -> (y) {
        only = Exp(x)
        y, z = If(c) {then_branch = graph() -> (a, b) { a = Neg(x) b = Neg(only) }, else_branch = graph() -> (d, d) { d = Abs(x) }}
    }"""
    model, _ = clean(text)
    assert operators(model) == ["If"]
    node = next(iter(model.graph))
    assert [len(branch) for branch in node.subgraphs] == [1, 1]
    assert len(node.outputs) == 1


def test_unused_scan_output_of_loop_goes_and_states_stay():
    """A scan output of Loop that nothing reads goes; a carried state stays though nothing reads its last value."""
    text = """graph(x: float[2], n: int64[], c: bool[]) -> (y) {
        last, a, b = Loop(n, c, x) {body = graph(i: int64[], k: bool[], s: float[2]) -> (k, t, u, v) {
            t = Neg(s) u = Exp(s) v = Abs(s) }}
        y = Relu(b)
    }"""
    model, _ = clean(text)
    loop = next(iter(model.graph))
    assert [value.name for value in loop.outputs] == ["last", "b"]
    assert [node.op_type for node in loop.subgraphs[0]] == ["Neg", "Abs"]


def test_bodies_of_functions_are_cleaned():
    """Dead nodes in function bodies go too."""
    model = model_of("opset 21\ngraph(x) -> (y) { y = f.F(x) }\nfunction f.F(a) -> (b) { c = Neg(a) b = Abs(a) }")
    assert ELIMINATE_DEAD_NODES.run(model, Context())
    assert len(model.functions["f", "F", ""].graph) == 1


def test_dead_control_flow_releases_what_it_captures():
    """When an If goes, what its branches captured goes too."""
    text = """graph(x: float[2], c: bool[]) -> (y) {
        e = Exp(x)
        z = If(c) {then_branch = graph() -> (a) { a = Neg(e) }, else_branch = graph() -> (e) {}}
        y = Relu(x)
    }"""
    model, _ = clean(text)
    assert "If" not in body(model)
    assert operators(model) == ["Relu"]
