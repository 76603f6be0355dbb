"""Group normalizations that are written out."""

from __future__ import annotations

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.normalize.fuse_group_norm import FUSE_GROUP_NORM, FUSE_GROUP_NORM_BIAS, FUSE_GROUP_NORM_SCALE


def written_out(split: str = "[0, 2, -1]", ones: str = "[1, 1]", back: str = "[0, 6, 3, 5]") -> str:
    """Six channels in two groups."""
    return f"""graph(x: float[batch, 6, 3, 5]) -> (y) {{
        s: int64[3] = {split} back: int64[4] = {back} one: float[2] = {ones} zero: float[2] = [0, 0]
        g = Reshape(x, s) n = InstanceNormalization(g, one, zero) {{epsilon = 0.01}} y = Reshape(n, back) }}"""


def followed(
    operator: str, constant: str = "c: float[6, 1, 1] = ... 3", version: str = "w: float[6] = ... 1 b: float[6] = ... 2"
) -> str:
    """A normalization and what follows it."""
    return f"""graph(x: float[batch, 6, 3, 5]) -> (y) {{
        {version} {constant}
        n = GroupNormalization(x, w, b) {{num_groups = 2, epsilon = 0.01}} y = {operator}(n, c) }}"""


def test_fires_with_the_same_numbers() -> None:
    """Scale and bias are for each channel, in the version whose meaning that is."""
    model, fired = apply_rule(FUSE_GROUP_NORM, written_out())
    (node,) = model.graph
    assert fired == 1
    assert (node.op_type, node.version, node.get("num_groups")) == ("GroupNormalization", 21, 2)
    assert node.get("epsilon") == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"ones": "[1, 2]"}, "the groups have a scale or bias of their own"),
        ({"split": "[-1, 2, 15]"}, "with its channels in groups"),
        ({"back": "[0, 3, 6, 5]"}, "the result is"),
    ],
)
def test_declines(options: dict[str, str], reason: str) -> None:
    """Each case that the rule leaves alone."""
    assert reason in declines(FUSE_GROUP_NORM, written_out(**options))


@pytest.mark.parametrize("constant", ["c: float[6, 1, 1] = ... 3", "c: float[1, 6, 1, 1] = ... 3", "c: float[] = 2.5"])
def test_factors_and_summands_are_taken_up(constant: str) -> None:
    """A number for each channel, or one for all."""
    for rule, operator in ((FUSE_GROUP_NORM_SCALE, "Mul"), (FUSE_GROUP_NORM_BIAS, "Add")):
        model, fired = apply_rule(rule, followed(operator, constant), rtol=1e-4)
        assert fired == 1
        assert operators(model) == ["GroupNormalization"]


@pytest.mark.parametrize("constant", ["c: float[5] = ... 3", "c: float[3, 1] = ... 3", "c: float[2, 1, 6, 3, 5] = ... 3"])
def test_other_constants_stay(constant: str) -> None:
    """Numbers for pixels, and what makes the result larger."""
    reason = declines(FUSE_GROUP_NORM_SCALE, followed("Mul", constant))
    assert "has no number for each channel" in reason or "the result is" in reason


def test_a_scale_for_each_group_stays() -> None:
    """Opset 18 means groups."""
    text = followed("Mul", version="w: float[2] = ... 1 b: float[2] = ... 2")
    assert "opset 18 has a scale for each group" in declines(FUSE_GROUP_NORM_SCALE, text, opset="18")
