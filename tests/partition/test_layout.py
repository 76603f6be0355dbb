"""The layout step."""

from __future__ import annotations

from support.models import graph

from sardonyx.ir.text import print_graph
from sardonyx.partition.layout import lay_out, to_first, to_last


def test_permutations_of_the_two_layouts_undo_each_other() -> None:
    """For four dimensions they are the ones of NCHW and NHWC."""
    assert (to_last(4), to_first(4)) == ((0, 2, 3, 1), (0, 3, 1, 2))
    assert tuple(to_last(5)[axis] for axis in to_first(5)) == (0, 1, 2, 3, 4)


def test_a_convolution_is_wrapped_in_transposes() -> None:
    """X -> Conv -> Y becomes X -> Transpose -> nhwc.Conv -> Transpose -> Y, and Y keeps its name."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float[1, 4, 8, 6]) {
        w: float[4, 3, 1, 1] = ... 1
        y: float[1, 4, 8, 6] = Conv(x, w)
    }""")
    converted = lay_out(held, list(held))
    assert [f"{node.domain}.{node.op_type}" for node in held] == [".Transpose", "sardonyx.nhwc.Conv", ".Transpose"]
    assert converted[0].output.shape == (1, 8, 6, 4)
    assert held.outputs[0].name == "y"


def test_transposes_between_two_converted_nodes_cancel() -> None:
    """Two convolutions in a row need one transpose at either end."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float[1, 4, 8, 6]) {
        w: float[4, 3, 1, 1] = ... 1
        v: float[4, 4, 1, 1] = ... 2
        a: float[1, 4, 8, 6] = Conv(x, w)
        y: float[1, 4, 8, 6] = Conv(a, v)
    }""")
    lay_out(held, list(held))
    assert [node.op_type for node in held] == ["Transpose", "Conv", "Conv", "Transpose"]


def test_a_value_that_others_read_too_keeps_its_transpose() -> None:
    """Cancelling for one reader leaves the other's transpose."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float[1, 4, 8, 6], a: float[1, 4, 8, 6]) {
        w: float[4, 3, 1, 1] = ... 1
        v: float[4, 4, 1, 1] = ... 2
        a: float[1, 4, 8, 6] = Conv(x, w)
        y: float[1, 4, 8, 6] = Conv(a, v)
    }""")
    lay_out(held, list(held))
    assert [node.op_type for node in held] == ["Transpose", "Conv", "Transpose", "Conv", "Transpose"]
    assert [value.name for value in held.outputs] == ["y", "a"]


def test_a_node_of_unknown_rank_stays() -> None:
    """Without a rank there is no permutation to write down."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float) {
        a = Mystery(x)
        y = Relu(a)
        g = GlobalAveragePool(a)
    }""")
    before = print_graph(held)
    assert lay_out(held, list(held)) == []
    assert print_graph(held) == before


def test_max_pool_with_indices_stays() -> None:
    """Indices count in NCHW order, so a pool whose indices are read is not converted."""
    held = graph("""graph(x: float[1, 3, 8, 6]) -> (y: float[1, 3, 7, 5], i: int64[1, 3, 7, 5]) {
        y, i = MaxPool(x) {kernel_shape = [2, 2]}
    }""")
    assert lay_out(held, list(held)) == []
