"""Products to which a number is added."""

import pytest
from support.cpu_run import declined
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.matmul.expand_gemm_scalar import EXPAND_GEMM_SCALAR


def gemm(kind="float", c="1", attributes="", b="4, 5", opset=13):
    return f"""opset {opset} graph(a: {kind}[n, 4], b: {kind}[{b}], c: {kind}[{c}]) -> (y) {{
        y = Gemm(a, b, c) {{{attributes}}} }}"""


@pytest.mark.parametrize("c", ["", "1", "1, 1"])
@pytest.mark.parametrize("attributes", ["", "beta = 0.5, alpha = 2.0"])
@pytest.mark.parametrize(("kind", "rtol"), [("float", 1e-5), ("double", 1e-12), ("float16", 2e-3)])
def test_fires_with_the_same_numbers(kind, rtol, attributes, c):
    """Of each rank, with factors."""
    text = gemm(kind, c, attributes)
    model, fired = apply_rule(EXPAND_GEMM_SCALAR, text, rtol=rtol)
    assert fired == 1
    assert "Add" in operators(model)
    assert not declined(text.removeprefix("opset 13 "), opset=13)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"c": "5"}, "expected one element"),
        ({"c": "k"}, "expected one element"),
        ({"b": "4, 1"}, "may be a row"),
        ({"kind": "int32"}, "it is of int32"),
    ],
)
def test_declines(options, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(EXPAND_GEMM_SCALAR, gemm(**options), opset="13")


@pytest.mark.parametrize("opset", [7, 9])
def test_a_product_whose_c_may_not_be_left_out_is_of_a_later_version(opset):
    """Before 11 it may not."""
    model, fired = apply_rule(EXPAND_GEMM_SCALAR, gemm(opset=opset))
    assert fired == 1
    assert [node.version for node in model.graph if node.op_type == "Gemm"] == [11]
