"""Which nodes are sizes, and what their elements are."""

from support.models import graph

from sardonyx.ir.shape import symbol
from sardonyx.ops.infer import infer_graph
from sardonyx.providers.cpu.size_values import size_values

_N = symbol("N")


def _found(body: str) -> dict[str, object]:
    made = graph(body)
    infer_graph(made)
    return {node.outputs[0].name: elements for node, elements in size_values(made).items()}


def test_chains_that_begin_with_shapes_are_sizes() -> None:
    """Whatever the operators are."""
    found = _found("""graph(x: float[N, 3]) -> (r) {
        i: int64[] = 0
        k: int64[] = 4
        s = Shape(x)
        n = Gather(s, i)
        m = Mul(n, k)
        r = Expand(m, s)
    }""")
    assert found == {"s": ((_N, 3),), "n": ((_N,),), "m": ((4 * _N,),)}


def test_comparisons_are_sizes_where_they_are_certain() -> None:
    """Bools count as numbers; what depends on the sizes is computed."""
    found = _found("graph(x: float[N, 3]) -> (a) { k: int64[2] = [5, 3] s = Shape(x) a = Equal(s, k) }")
    assert found == {"s": ((_N, 3),)}
    found = _found("graph(x: float[2, 3]) -> (a) { k: int64[2] = [5, 3] s = Shape(x) a = Equal(s, k) }")
    assert found == {"s": ((2, 3),), "a": ((0, 1),)}


def test_data_is_no_size() -> None:
    """Nodes that read tensors of data, large ones, and bodies are not looked at."""
    assert _found("graph(x: int64[2]) -> (y) { y = Add(x, x) }") == {}
    assert set(_found("graph(x: float[N, 3]) -> (y) { s = Shape(x) y = ConstantOfShape(s) }")) == {"s"}
