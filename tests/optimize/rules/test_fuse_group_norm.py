"""Group normalizations that are written out."""

from __future__ import annotations

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.fuse_group_norm import FUSE_GROUP_NORM


def text(split: str = "[0, 2, -1]", ones: str = "[1, 1]", scale: str = "float[6, 1, 1]", bias: str = "float[1, 6, 1, 1]",
         shape: str = "batch, 6, 3, 5") -> str:  # fmt: skip
    """Six channels in two groups."""
    return f"""graph(x: float[{shape}]) -> (y) {{
        s: int64[3] = {split} back: int64[4] = [0, 6, 3, 5] one: float[2] = {ones} zero: float[2] = [0, 0]
        w: {scale} = ... 1 b: {bias} = ... 2
        g = Reshape(x, s) n = InstanceNormalization(g, one, zero) {{epsilon = 0.01}} r = Reshape(n, back)
        m = Mul(r, w) y = Add(m, b) }}"""


@pytest.mark.parametrize("bias", ["float[1, 6, 1, 1]", "float[1, 1, 1]"])
def test_fires_with_the_same_numbers(bias: str) -> None:
    """Scale and bias are for each channel, in the version whose meaning that is."""
    model, fired = apply_rule(FUSE_GROUP_NORM, text(bias=bias))
    (node,) = model.graph
    assert fired == 1
    assert operators(model) == ["GroupNormalization"]
    assert (node.version, node.get("num_groups")) == (21, 2)
    assert node.get("epsilon") == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"ones": "[1, 2]"}, "the groups have a scale or bias of their own"),
        ({"scale": "float[5]"}, "have no number for each channel"),
        ({"scale": "float[3, 1]"}, "have no number for each channel"),
        ({"split": "[-1, 2, 15]"}, "with its channels in groups"),
    ],
)
def test_declines(options: dict[str, str], reason: str) -> None:
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_GROUP_NORM, text(**options))
