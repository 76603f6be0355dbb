"""Transposed operands and scaled products."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.fuse_matmul_transpose import FUSE_MATMUL_SCALE, FUSE_MATMUL_TRANSPOSE

OPSET = "21, com.microsoft 1"
LAST = "{perm = [0, 2, 1]}"


def turned(nodes, kind="float"):
    return f"""graph(a: {kind}[2, 3, 4], b: {kind}[2, 3, 5], c: {kind}[2, 5, 3], m: {kind}[3, 5], v: {kind}[3])
        -> (y) {{ {nodes} }}"""


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        (f"t = Transpose(a) {LAST} y = MatMul(t, b)", ["FusedMatMul"]),
        (f"t = Transpose(a) {LAST} u = Transpose(c) {LAST} y = MatMul(t, u)", ["FusedMatMul"]),
        (f"t = Transpose(a) {LAST} y = MatMul(t, m)", ["FusedMatMul"]),
        (f"t = Transpose(a) {LAST} e = MatMul(t, b) y = Concat(t, e) {{axis = 2}}", ["Transpose", "FusedMatMul", "Concat"]),
        (f"u = Transpose(c) {LAST} y = com.microsoft.FusedMatMul(a, u) {{transA = 1, alpha = 0.5}}", ["FusedMatMul"]),
    ],
)
def test_reads_transposed_operands(nodes, left):
    """Either, both, of a product that reads one so already; shared ones stay."""
    model, fired = apply_rule(FUSE_MATMUL_TRANSPOSE, turned(nodes), opset=OPSET)
    assert fired
    assert operators(model) == left


@pytest.mark.parametrize(
    ("nodes", "kind", "reason"),
    [
        (
            "t = Transpose(a) {perm = [1, 2, 0]} u = Transpose(b) {perm = [1, 0, 2]} y = MatMul(t, u)",
            "float",
            "moves other dimensions",
        ),
        (f"t = Transpose(a) {LAST} y = MatMul(t, v)", "float", "is no matrix"),
        ("t = Transpose(v) y = MatMul(t, m)", "float", "moves other dimensions"),
        (f"t = Transpose(a) {LAST} y = MatMul(t, b)", "double", "expected float or float16"),
    ],
)
def test_leaves_operands(nodes, kind, reason):
    """Other orders, vectors, other types."""
    assert reason in declines(FUSE_MATMUL_TRANSPOSE, turned(nodes, kind), opset=OPSET)


def scaled(nodes, result="y", kind="float"):
    return f"""graph(a: {kind}[n, 3], b: {kind}[3, 5], v: {kind}[3], o: {kind}[]) -> ({result}) {{
        k: {kind}[] = 4 z: {kind}[1] = [0] w: {kind}[5] = ... 1 t: {kind}[1, 1, 1] = [[[2]]] {nodes} }}"""


@pytest.mark.parametrize(
    ("nodes", "alpha"),
    [
        ("p = MatMul(a, b) y = Mul(p, k)", 4),
        ("p = MatMul(a, b) y = Mul(k, p)", 4),
        ("p = MatMul(a, b) y = Div(p, k)", 0.25),
        ("p = com.microsoft.FusedMatMul(a, b) {alpha = 0.5} y = Mul(p, k)", 2),
        ("p = MatMul(a, b) y = Mul(p, z)", 0),
    ],
)
def test_scales_where_it_stores(nodes, alpha):
    """By a number, or one over it, times what it scales by already."""
    model, fired = apply_rule(FUSE_MATMUL_SCALE, scaled(nodes), opset=OPSET)
    assert fired == 1
    assert [(node.op_type, node.get("alpha")) for node in model.graph] == [("FusedMatMul", alpha)]


@pytest.mark.parametrize(
    ("nodes", "result", "reason"),
    [
        ("p = MatMul(a, b) y = Mul(p, w)", "y", "expected one number"),
        ("p = MatMul(a, b) y = Mul(p, t)", "y", "expected one number"),
        ("p = MatMul(a, b) y = Div(p, z)", "y", "not finite"),
        ("p = MatMul(a, b) y = Mul(p, k)", "y, p", "no match"),
        ("p = MatMul(a, b) y = Mul(p, o)", "y", "no match"),
        ("p = MatMul(a, v) y = Mul(p, k)", "y", "is no matrix"),
    ],
)
def test_leaves_factors(nodes, result, reason):
    """One for each column, of a larger rank, one over zero, other users, no constant, vectors."""
    assert reason in declines(FUSE_MATMUL_SCALE, scaled(nodes, result), opset=OPSET)
