"""Shape inference as a pass."""

from support.optimizing import model_of

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES


def test_types_are_set_and_facts_kept():
    """Values get types, and the context the elements of small tensors."""
    model, context = model_of("graph(x: float[2, 3]) -> (y) { s = Shape(x) y = Neg(s) }"), Context()
    assert not INFER_SHAPES.run(model, context)
    shape, _ = model.graph
    assert shape.output.shape == (2,)
    assert context.facts[shape.output].constant.tolist() == [2, 3]
