"""Computing in float what half types store."""

import pytest
from support.optimizing import model_of, operators

from sardonyx.optimize.helpers.half_types import in_float, rounded_to
from sardonyx.optimize.rule import Builder


@pytest.mark.parametrize(("kind", "casts"), [("float", 0), ("float16", 2), ("bfloat16", 2)])
def test_half_types_are_cast_both_ways(kind, casts):
    """Floats are left as they are."""
    model = model_of(f"graph(x: {kind}[4]) -> (y) {{ y = Neg(x) }}")
    root = next(iter(model.graph))
    op = Builder(root, model.opset_imports, lambda name: name)
    rounded_to(op, in_float(op, root.inputs[0]), root.inputs[0])
    assert operators(model).count("Cast") == casts
