"""The optimizer's rules as tools apply them."""

from __future__ import annotations

import onnx

from sardonyx.tools.fusing import LEVELS, fuse, optimized
from sardonyx.tools.fusion_options import FusionOptions

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
main (float[n, 4] x) => (float[n, 4] y) {
    c = Constant<value = float {1.4142135}>()
    h = Constant<value = float {0.5}>()
    one = Constant<value = float {1}>()
    d = Div(x, c)
    e = Erf(d)
    p = Add(e, one)
    m = Mul(x, p)
    y = Mul(m, h)
}"""


def operators(model: onnx.ModelProto) -> list[str]:
    """Return the operators of a model's nodes."""
    return [node.op_type for node in model.graph.node]


def test_levels_are_those_of_sessions() -> None:
    """Constants are initializers everywhere; fusions are of the levels 2 and 99."""
    model = onnx.parser.parse_model(TEXT)
    before = model.SerializeToString()
    assert [len(operators(optimized(model, level, ()))) for level in LEVELS] == [5, 5, 1, 1]
    assert model.SerializeToString() == before


def test_options_leave_rules_out() -> None:
    """A fusion that is off is not made."""
    options = FusionOptions("bert")
    model = onnx.parser.parse_model(TEXT)
    assert operators(fuse(model, options)) == ["Gelu"]
    options.enable_gelu = False
    assert "Erf" in operators(fuse(model, options))
