"""Random inputs that fit values of a graph."""

import numpy as np
import pytest
from support.optimizing import model_of

from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.sample import samples, unsuitable


def _inputs(text):
    return model_of(f"graph({text}) -> (y) {{ y = Constant() {{value_int = 1}} }}").graph.inputs


def test_types_and_shapes_fit():
    """Each feed has the declared types and sizes, and one size for one symbol."""
    values = _inputs("x: float16[n, 3], k: int64[n], b: bool[], s: string[2], c: complex64[m], u: uint8[4]")
    feeds = list(samples(values, 1))
    assert len(feeds) == 7
    for feed in feeds:
        x, k, b, s, c, u = (feed[value] for value in values)
        assert (x.dtype, b.dtype, s.dtype, c.dtype, u.dtype) == (np.float16, np.bool_, object, np.complex64, np.uint8)
        assert x.shape == (*k.shape, 3)
        assert (b.shape, s.shape, u.shape) == ((), (2,), (4,))


def test_same_seed_same_numbers():
    """A seed decides the numbers."""
    values = _inputs("x: float[5]")
    first, again, other = (next(samples(values, seed))[values[0]] for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


def test_later_feeds_are_tame():
    """In later feeds all symbols have one size, and integers are indices that are in range anywhere."""
    x, k = _inputs("x: float[n, m], k: int64[9]")
    feeds = list(samples([x, k], 0))
    assert feeds[1][x].shape == (8, 8)
    assert feeds[1][k].max() <= 1
    assert feeds[3][k].tolist() == [0] * 9


def test_numbers_stay_within_what_is_known():
    """A value with known bounds is drawn within them."""
    model = model_of("graph(x: bool[50]) -> (y) { o: float[] = 1 z: float[] = 0 w = Where(x, o, z) y = Neg(w) }")
    w = next(iter(model.graph)).outputs[0]
    w.type = model.graph.inputs[0].type.__class__(model.graph.initializers["o"].dtype, (50,))
    assert 0 <= next(samples([w], 0))[w].min() <= next(samples([w], 0))[w].max() <= 1


@pytest.mark.parametrize("text", ["x: seq(float[])", "x: float", "x"])
def test_what_cannot_be_drawn(text):
    """Sequences, and tensors of unknown rank, are named."""
    assert "of which no random one can be drawn" in (unsuitable(_inputs(text)) or "")


def test_tensors_can_be_drawn():
    """Tensors of known rank are suitable."""
    assert unsuitable(_inputs("x: float[n]")) is None


def test_sizes_that_make_no_tensor_are_passed_over():
    """Where small sizes would make a dimension empty or negative, larger ones are taken."""
    model = model_of("graph(x: float[1, 1, n]) -> (y) { w: float[1, 1, 400] = ... 1 c = Conv(x, w) {strides = [320]} y = Neg(c) }")
    INFER_SHAPES.run(model, Context())
    c = next(iter(model.graph)).outputs[0]
    assert [feed[c].shape for feed in samples([c], 0)] == [(1, 1, 1)]
