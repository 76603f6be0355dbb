"""Global averages whose dimensions of one element are left out."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.fuse_pool_flatten import FUSE_POOL_FLATTEN


def text(last="Flatten(p)", shape="n, 3, 4, 5", result="y", x="x"):
    return f"""graph(x: float[{shape}], q: uint8[2, 3, 4, 5]) -> ({result}) {{ both: int64[2] = [-1, 2] one: int64[1] = [3]
        s: float[] = 0.1 d = DequantizeLinear(q, s) p = GlobalAveragePool({x}) y = {last} }}"""


@pytest.mark.parametrize("given", [{}, {"last": "Flatten(p) {axis = -3}"}, {"last": "Squeeze(p, both)"}])
@pytest.mark.parametrize("opset", ["13", "21"])
def test_fires_with_the_same_numbers(given, opset):
    """Both ways to leave out the dimensions, at opsets that have the axes as attribute and as input."""
    model, fired = apply_rule(FUSE_POOL_FLATTEN, text(**given), opset=opset)
    assert fired == 1
    assert "ReduceMean" in operators(model)
    assert "GlobalAveragePool" not in operators(model)


def test_a_signal():
    """One axis for each dimension behind the channels."""
    model, fired = apply_rule(FUSE_POOL_FLATTEN, text(shape="n, 3, 4"))
    assert fired == 1
    assert [node.op_type for node in model.graph if node.output.name == "y"] == ["ReduceMean"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"last": "Flatten(p) {axis = 2}"}, "another axis"),
        ({"last": "Squeeze(p, one)"}, "it squeezes"),
        ({"result": "y, p"}, "no match"),
        ({"x": "d"}, "it is quantized"),
    ],
)
def test_declines(given, reason):
    """Other axes, other users, integers."""
    assert reason in declines(FUSE_POOL_FLATTEN, text(**given))
