"""Convolutions of one value whose results are added."""

import pytest
from support.optimizing import apply_rule, declines, operators

from sardonyx.optimize.rules.conv.fuse_parallel_convs import FUSE_PARALLEL_CONVS, FUSE_PARALLEL_NORMALIZATION


def parallel(first="pads = [1, 1, 1, 1]", second="", weights=("6, 4, 3, 3", "6, 4, 1, 1"), kind="float", operands="w", others="v"):
    biases = ", ".join(f"{name}: {kind}[6] = ... {seed}" for name, seed in (("b", 3), ("c", 4))).replace(",", "")
    return f"""graph(x: {kind}[2, 4, 7, 6], z: {kind}[2, 4, 7, 6]) -> (y) {{ w: {kind}[{weights[0]}] = ... 1
        v: {kind}[{weights[1]}] = ... 2 {biases} p = Conv(x, {operands}) {{{first}}} q = Conv(x, {others}) {{{second}}}
        y = Add(p, q) }}"""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"operands": "w, b"},
        {"others": "v, c"},
        {"operands": "w, b", "others": "v, c"},
        {"first": "pads = [1, 1, 1, 1], strides = [2, 1]", "second": "strides = [2, 1]"},
        {"first": "", "second": "pads = [1, 1, 1, 1]", "weights": ("6, 4, 1, 1", "6, 4, 3, 3")},
        {"first": "pads = [2, 2, 2, 2], dilations = [2, 2]"},
        {"first": "pads = [0, 1, 2, 1]"},
        {"first": "pads = [2, 2, 2, 2]", "second": "pads = [1, 1, 1, 1]", "weights": ("6, 4, 5, 5", "6, 4, 3, 3")},
        {"first": "group = 2, pads = [1, 1, 1, 1]", "second": "group = 2", "weights": ("6, 2, 3, 3", "6, 2, 1, 1")},
        {"first": "pads = [1, 1, 1, 1]", "second": "pads = [1, 1, 1, 1]", "weights": ("6, 4, 3, 3", "6, 4, 3, 3")},
    ],
)
def test_fires_with_the_same_numbers(options):
    """Kernels of any sizes that lie within one another, moved alike, with or without bias."""
    model, fired = apply_rule(FUSE_PARALLEL_CONVS, parallel(**options))
    assert fired == 1
    assert operators(model) == ["Conv"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"first": "pads = [1, 1, 1, 1], strides = [2, 2]", "second": 'strides = [2, 2], auto_pad = "SAME_UPPER"'},
            "pads are computed",
        ),
        ({"weights": ("6, 4, 3, 3", "6, 4, 1, 3"), "second": "pads = [0, 2, 0, 0]"}, "does not lie within the first"),
        (
            {
                "first": "pads = [2, 2, 2, 2]",
                "second": "pads = [1, 1, 1, 1], dilations = [1, 1]",
                "weights": ("6, 4, 5, 5", "6, 4, 3, 3"),
            },
            None,
        ),
        (
            {
                "first": "pads = [2, 2, 2, 2], dilations = [2, 2]",
                "second": "pads = [1, 1, 1, 1]",
                "weights": ("6, 4, 3, 3", "6, 4, 3, 3"),
            },
            "does not lie within the first",
        ),
        ({"first": "group = 2, pads = [1, 1, 1, 1]", "weights": ("6, 2, 3, 3", "6, 4, 1, 1")}, "the weights are"),
        ({"others": "w", "second": "pads = [1, 1, 1, 1]"}, "the weights have other users"),
    ],
)
def test_declines(options, reason):
    """Kernels that are moved otherwise or reach beyond one another, other groups, shared weights."""
    if reason is None:
        assert apply_rule(FUSE_PARALLEL_CONVS, parallel(**options))[1] == 1
    else:
        assert reason in declines(FUSE_PARALLEL_CONVS, parallel(**options))


def test_convolutions_of_other_values_stay():
    """Each branch must read the same value."""
    assert declines(FUSE_PARALLEL_CONVS, parallel().replace("q = Conv(x", "q = Conv(z")) == "no match"


def normalized(convolution="pads = [1, 1, 1, 1]", weights="4, 4, 3, 3", shape="2, 4, 7, 6", mode=""):
    return f"""graph(x: float[{shape}]) -> (y) {{ w: float[{weights}] = ... 1 s: float[4] = ... 2 h: float[4] = ... 3
        m: float[4] = ... 4 u: float[4] = [0.5, 1.0, 1.5, 2.0] p = Conv(x, w) {{{convolution}}}
        q = BatchNormalization(x, s, h, m, u) {{epsilon = 0.01{mode}}} y = Add(p, q) }}"""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"convolution": "", "weights": "4, 4, 1, 1"},
        {"convolution": "group = 4, pads = [1, 1, 1, 1]", "weights": "4, 1, 3, 3"},
        {"convolution": "group = 2, pads = [0, 1, 2, 1]", "weights": "4, 2, 3, 3"},
        {"convolution": "pads = [2, 2], dilations = [2]", "weights": "4, 4, 3", "shape": "2, 4, 7"},
    ],
)
def test_a_normalization_is_a_kernel(options):
    """A factor for each channel, where the element itself lies."""
    model, fired = apply_rule(FUSE_PARALLEL_NORMALIZATION, normalized(**options))
    assert fired == 1
    assert operators(model) == ["Conv"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"convolution": "pads = [1, 1, 1, 1], strides = [1, 2]", "shape": "2, 4, 7, 1"}, "or the size"),
        ({"convolution": "pads = [2, 1, 1, 1]", "shape": "2, 4, 7, 6", "weights": "4, 4, 4, 3"}, None),
        ({"weights": "4, 1, 3, 3", "shape": "2, 1, 7, 6"}, "changes the number of channels"),
        ({"mode": ", training_mode = 1"}, "in training mode"),
    ],
)
def test_normalization_declines(options, reason):
    """Convolutions of another size or number of channels, and training."""
    if reason is None:
        assert apply_rule(FUSE_PARALLEL_NORMALIZATION, normalized(**options))[1] == 1
    else:
        assert reason in declines(FUSE_PARALLEL_NORMALIZATION, normalized(**options), infer=False)
