"""Products with weights of few bits."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.quantize.fuse_nbits_matmul import FUSE_NBITS_MATMUL

GRID = "[[" + "], [".join(", ".join(str((5 * row + 3 * column) % 16 - 8) for column in range(3)) for row in range(40)) + "]]"
POSITIVE = "[[" + "], [".join(", ".join(str((5 * row + 3 * column) % 16) for column in range(3)) for row in range(40)) + "]]"


def text(kind="int4", zeros=True, block=16, axis=0, scales="[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]", dtype="float"):
    grid = POSITIVE if kind.startswith("u") else GRID
    return f"""graph(a: {dtype}[2,40]) -> (y) {{ w: {kind}[40,3] = {grid} s: float[3,3] = {scales}
        z: {kind}[3,3] = [[1, 2, 3], [4, 5, 6], [7, 1, 2]]
        d = DequantizeLinear(w, s{", z" if zeros else ""}) {{axis = {axis}, block_size = {block}}} y = MatMul(a, d) }}"""


@pytest.mark.parametrize("kind", ["int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize("zeros", [True, False])
def test_fires_with_the_same_numbers(kind, zeros):
    """Signed and unsigned weights, a last block that is not full, zero points given or not."""
    model, fired = apply_rule(FUSE_NBITS_MATMUL, text(kind, zeros))
    assert fired == 1
    assert operators(model) == ["MatMulNBits"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "int16"}, "no matrix of 4 or 8 bits"),
        ({"block": 20}, "blocks of 20"),
        ({"block": 8, "scales": "[[1, 1, 1], [1, 1, 1], [1, 1, 1]]"}, "blocks of 8"),
    ],
)
def test_declines(given, reason):
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_NBITS_MATMUL, text(**given), infer=False)


def test_declines_scales_by_column():
    """There are no blocks."""
    by_column = (
        "graph(a: float[2,4]) -> (y) { w: int4[4,2] = [[1, 2], [3, 4], [5, 6], [7, 1]] s: float[2] = [0.5, 1.0] "
        "d = DequantizeLinear(w, s) {axis = 1} y = MatMul(a, d) }"
    )
    assert "along the axis of the sum" in declines(FUSE_NBITS_MATMUL, by_column)
