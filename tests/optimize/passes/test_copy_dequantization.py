"""Units of quantized operators that share nothing."""

import pytest
from support.optimizing import apply_pass, operators

from sardonyx.optimize.passes.copy_dequantization import COPY_DEQUANTIZATION

HEAD = "graph(x: int8[3], c: bool[]) -> (y) { s: float[] = 0.5 z: int8[] = 3 d = DequantizeLinear(x, s, z)"


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ("y = Mul(d, d)", 2),
        ("a = Neg(d) b = Abs(d) m = Add(a, b) y = Mul(m, d)", 3),
    ],
)
def test_each_reader_has_its_own(lines, count):
    """Inputs of one node too; the first keeps the node."""
    model, changed = apply_pass(COPY_DEQUANTIZATION, f"{HEAD} {lines} }}")
    assert changed
    assert operators(model).count("DequantizeLinear") == count
    assert all(node.output.use_count == 1 for node in model.graph if node.op_type == "DequantizeLinear")


def test_outputs_of_the_graph_keep_the_node():
    """Its name is that of the output."""
    model, changed = apply_pass(COPY_DEQUANTIZATION, f"{HEAD.replace('(y)', '(y, d)')} y = Neg(d) }}")
    assert changed
    assert operators(model) == ["DequantizeLinear", "DequantizeLinear", "Neg"]


def test_subgraphs_keep_the_node():
    """What they read is not copied into them."""
    branch = "y = If(c) {then_branch = graph() -> (t) { t = Neg(d) }, else_branch = graph() -> (e) { e = Abs(d) }}"
    assert not apply_pass(COPY_DEQUANTIZATION, f"{HEAD} {branch} }}")[1]


def test_declines():
    """One reader is enough for one node."""
    assert not apply_pass(COPY_DEQUANTIZATION, f"{HEAD} y = Neg(d) }}")[1]
