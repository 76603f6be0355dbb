"""Indices of OneHot in integers."""

import pytest
from support.cpu_run import declined
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.movement.cast_one_hot_indices import CAST_ONE_HOT_INDICES


def one_hot(kind):
    return f"""graph(i: {kind}[n, 3], v: float[2]) -> (y) {{ d: int64[] = 4 y = OneHot(i, d, v) {{axis = 1}} }}"""


@pytest.mark.parametrize("kind", ["float", "double", "float16", "int8", "uint8", "uint32"])
def test_fires_with_the_same_numbers(kind):
    """Of floats and of small integers; all of it is compiled then."""
    model, fired = apply_rule(CAST_ONE_HOT_INDICES, one_hot(kind), rtol=0)
    assert fired == 1
    assert operators(model) == ["Cast", "OneHot"]
    assert not declined(one_hot(kind))


@pytest.mark.parametrize("kind", ["int32", "int64", "uint64"])
def test_declines(kind):
    """Each case that the rule leaves alone."""
    assert f"indices of type {kind}" in declines(CAST_ONE_HOT_INDICES, one_hot(kind))
