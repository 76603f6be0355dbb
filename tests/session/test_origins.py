"""From nodes of an optimized model to those of the model as it was given."""

from support.models import model

from sardonyx.session.origins import Origins

GIVEN = (
    "graph(x: float[4]) -> (y: float[4], z: float[4]) {\nc: float[1] = [2.0]\nk: float[1] = [3.0]\nf = Add(c, k) @folded\n"
    "a = Div(x, c) @div\nb = Erf(a) @erf\ny = Mul(b, f) @mul\nz = Neg(y)\n}"
)


def _origins(optimized: str) -> list[tuple[str, ...]]:
    graph = model(optimized).graph
    origins = Origins(model(GIVEN))
    return [origins.of(node, graph) for node in graph]


def test_a_fused_node_stands_for_all_between_its_output_and_its_input() -> None:
    """The nearest first; constants that are folded are not among them."""
    optimized = "graph(x: float[4]) -> (y: float[4], z: float[4]) {\ny = Gelu(x)\nz = Neg(y)\n}"
    assert _origins(optimized) == [("mul", "erf", "div"), ("z",)]


def test_values_that_are_still_there_end_the_search() -> None:
    """What lies before them belongs to the nodes that make them."""
    optimized = "graph(x: float[4]) -> (y: float[4], z: float[4]) {\na = Div(x, x)\ny = Erf(a)\nz = Neg(y)\n}"
    assert _origins(optimized) == [("div",), ("mul", "erf"), ("z",)]


def test_a_new_value_leads_to_nothing_but_its_nodes_name() -> None:
    """A node that an optimization has added has a name of its own, or one that it took over."""
    optimized = "graph(x: float[4]) -> (y: float[4], z: float[4]) {\np = Transpose(x) @erf\nq = Transpose(p) @fresh\ny = Exp(q)\nz = Neg(y)\n}"
    assert _origins(optimized)[:2] == [("erf",), ()]
