"""What passes on packed weights ask of nodes."""

from support.optimizing import model_of

from sardonyx.optimize.contract import Context
from sardonyx.optimize.helpers.packed_projections import is_packed, normalization_before, packing, weights_of
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES

TEXT = """opset 23, com.microsoft 1
    graph(h: float[n, 32], r: float[n, 32]) -> (y) { w: float[32] = ... 1 a: uint8[4, 1, 16] = ... 2 s: float[4] = ... 3
    d: float[4] = ... 4 z: uint8[4] = ... 5 t = Add(h, r) x = RMSNormalization(t, w) {epsilon = 0.5}
    p = com.microsoft.MatMulNBits(x, a, s, _, _, d) {K = 32, N = 4, block_size = 32}
    q = com.microsoft.MatMulNBits(t, a, s, z) {K = 32, N = 4, block_size = 32, accuracy_level = 4} y = Add(p, q) }"""


def nodes():
    model = model_of(TEXT)
    INFER_SHAPES.run(model, Context())
    return model, list(model.graph)


def test_packed_weights():
    """Without zero points; how they are packed has defaults."""
    _, (_, norm, first, second, _) = nodes()
    assert [is_packed(node) for node in (norm, first, second, None)] == [False, True, False, False]
    assert (packing(first), packing(second)) == ((32, 4, 32, 0), (32, 4, 32, 4))
    assert [value.name for value in weights_of(first)] == ["a", "s", "d"]


def test_normalization():
    """With the sum in front of it, where just those read it that may."""
    _, (add, norm, first, second, _) = nodes()
    found = normalization_before(norm.output, [first])
    assert found.nodes == (add, norm)
    assert [value.name for value in found.inputs] == ["h", "r", "w"]
    assert (found.epsilon, found.total.name) == (0.5, "t")
    assert normalization_before(norm.output, [second]) is None
    assert normalization_before(add.output, [norm, second]) is None
