"""Models with channels in blocks compute in the plain layout what ONNX Runtime computed in blocks."""

from collections.abc import Mapping

import numpy as np
import pytest
from support.evaluate import evaluate_model

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Model, Tensor
from sardonyx.ir.text import parse_model
from sardonyx.ir.verify import verify
from sardonyx.optimize.blocked_layout import BLOCKED_DOMAIN, make_plain

_X = np.random.default_rng(3).standard_normal((1, 3, 5, 5)).astype(np.float32)


def _blocks(weights: Array, block: int, inner: int) -> Array:
    """Return weights [O, I, H, W] as MLAS stores them, with channels of zeros that fill the last blocks."""
    outputs, inputs, height, width = weights.shape
    padded = np.zeros((-(-outputs // block) * block, -(-inputs // inner) * inner, height, width), np.float32)
    padded[:outputs, :inputs] = weights
    shape = padded.shape
    parts = padded.reshape(shape[0] // block, block, shape[1] // inner, inner, height, width)
    return np.ascontiguousarray(parts.transpose(0, 2, 4, 5, 3, 1)).reshape(shape)


def _weights(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _model(text: str, constants: Mapping[str, Array], opset: int = 13) -> Model:
    found = parse_model(f"ir_version 8\nopset {opset}, {BLOCKED_DOMAIN} 1, com.microsoft 1\ngraph g{text}")
    for name, array in constants.items():
        value = found.graph.add_initializer(Tensor.from_array(array, name), name)
        for node in found.graph:
            for index, read in enumerate(node.inputs):
                if read is not None and read.name == name and read is not value:
                    node.replace_input(index, value)
    found.graph.inputs = [value for value in found.graph.inputs if value.name not in constants]
    return found


def _pair(blocked: str, plain: str, inputs: str, constants: Mapping[str, tuple[Array, Array]], opset: int = 13) -> list[Model]:
    """Return a model in blocks, and what it was made of; constants have a form for each."""
    declared = "".join(f", {name}: float[?, ?, ?, ?]" for name in constants)
    return [
        _model(
            f"({inputs}{declared}) -> (y: float[?, ?, ?, ?]) {{\n{text}\n}}",
            {key: pair[side] for key, pair in constants.items()},
            opset,
        )
        for side, text in enumerate((blocked, plain))
    ]


def _same(models: list[Model], block: int | None, x: Array = _X) -> Model:
    blocked, plain = models
    assert make_plain(blocked, block)
    verify(blocked)
    assert BLOCKED_DOMAIN not in {node.domain for node in blocked.graph} | blocked.opset_imports.keys()
    found, expected = (evaluate_model(model, {"x": x})[0] for model in (blocked, plain))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    return blocked


@pytest.mark.parametrize(("block", "outputs"), [(8, 8), (8, 24), (16, 16), (16, 20), (16, 32)])
def test_a_first_convolution_reads_the_plain_input(block: int, outputs: int) -> None:
    """Its weights are in blocks of output channels only, and the last block is cut off again."""
    weights = _weights(outputs, 3, 3, 3)
    found = _pair(
        f"a = {BLOCKED_DOMAIN}.Conv(x, w) {{pads = [1, 1, 1, 1]}}\ny = {BLOCKED_DOMAIN}.ReorderOutput(a) {{channels = {outputs}}}",
        "y = Conv(x, w) {pads = [1, 1, 1, 1]}",
        "x: float[1, 3, 5, 5]",
        {"w": (_blocks(weights, block, 1), weights)},
    )
    _same(found, block)


@pytest.mark.parametrize(("block", "channels"), [(8, 16), (8, 12), (16, 32), (16, 20)])
def test_a_convolution_in_blocks_reads_blocks(block: int, channels: int) -> None:
    """Of input channels too; an input that is brought into blocks has channels of zeros behind its own."""
    weights = _weights(2 * block, channels, 1, 1)
    x = _weights(1, channels, 4, 3, seed=5)
    found = _pair(
        f"r = {BLOCKED_DOMAIN}.ReorderInput(x)\na = {BLOCKED_DOMAIN}.Conv(r, w)\n"
        f"y = {BLOCKED_DOMAIN}.ReorderOutput(a) {{channels = {2 * block}}}",
        "y = Conv(x, w)",
        f"x: float[1, {channels}, 4, 3]",
        {"w": (_blocks(weights, block, block), weights)},
    )
    _same(found, block, x)


def test_a_depthwise_convolution_has_a_group_for_each_channel() -> None:
    """Those that fill the last block too."""
    weights = _weights(12, 1, 3, 3)
    x = _weights(1, 12, 4, 4, seed=6)
    found = _pair(
        f"r = {BLOCKED_DOMAIN}.ReorderInput(x)\na = {BLOCKED_DOMAIN}.Conv(r, w) {{group = 12}}\n"
        f"y = {BLOCKED_DOMAIN}.ReorderOutput(a) {{channels = 12}}",
        "y = Conv(x, w) {group = 12}",
        "x: float[1, 12, 4, 4]",
        {"w": (_blocks(weights, 8, 1), weights)},
    )
    _same(found, 8, x)


def test_channels_last_on_both_sides() -> None:
    """An input is brought to channels first, an output back."""
    weights = _weights(8, 8, 1, 1)
    x = _weights(1, 4, 3, 8, seed=7)
    found = _pair(
        f"r = {BLOCKED_DOMAIN}.ReorderInput(x) {{channels_last = 1}}\na = {BLOCKED_DOMAIN}.Conv(r, w)\n"
        f"y = {BLOCKED_DOMAIN}.ReorderOutput(a) {{channels = 8, channels_last = 1}}",
        "t = Transpose(x) {perm = [0, 3, 1, 2]}\nc = Conv(t, w)\ny = Transpose(c) {perm = [0, 2, 3, 1]}",
        "x: float[1, 4, 3, 8]",
        {"w": (_blocks(weights, 8, 8), weights)},
    )
    _same(found, 8, x)


def test_activations_and_sums_stay_in_the_convolution() -> None:
    """It becomes a FusedConv."""
    weights = _weights(8, 3, 3, 3)
    conv = f'{BLOCKED_DOMAIN}.Conv(x, w, _, s) {{pads = [1, 1, 1, 1], activation = "Relu"}}'
    found = _pair(
        f"s = {BLOCKED_DOMAIN}.Conv(x, w) {{pads = [1, 1, 1, 1]}}\na = {conv}\ny = {BLOCKED_DOMAIN}.ReorderOutput(a) {{channels = 8}}",
        "s = Conv(x, w) {pads = [1, 1, 1, 1]}\na = Add(s, s)\ny = Relu(a)",
        "x: float[1, 3, 5, 5]",
        {"w": (_blocks(weights, 8, 1), weights)},
    )
    plain = _same(found, 8)
    assert [node.op_type for node in plain.graph] == ["Conv", "FusedConv"]


@pytest.mark.parametrize(
    "pool",
    [
        "MaxPool({}) {{kernel_shape = [2, 2]}}",
        "AveragePool({}) {{kernel_shape = [2, 2]}}",
        "GlobalAveragePool({})",
        "GlobalMaxPool({})",
    ],
)
def test_pools_are_those_of_the_standard(pool: str) -> None:
    """On values whose element-wise operators were in blocks too."""
    weights = _weights(12, 3, 1, 1)
    found = _pair(
        f"a = {BLOCKED_DOMAIN}.Conv(x, w)\nb = Relu(a)\nc = {BLOCKED_DOMAIN}.{pool.format('b')}\n"
        f"y = {BLOCKED_DOMAIN}.ReorderOutput(c) {{channels = 12}}",
        f"a = Conv(x, w)\nb = Relu(a)\ny = {pool.format('b')}",
        "x: float[1, 3, 5, 5]",
        {"w": (_blocks(weights, 8, 1), weights)},
    )
    _same(found, 8)


@pytest.mark.parametrize(
    ("opset", "plain"),
    [
        (13, 'Resize(a, _, f) {coordinate_transformation_mode = "asymmetric", mode = "nearest", nearest_mode = "floor"}'),
        (10, 'Resize(a, f) {mode = "nearest"}'),
        (9, 'Upsample(a, f) {mode = "nearest"}'),
    ],
)
def test_upsampling_is_the_operator_of_the_operator_set(opset: int, plain: str) -> None:
    """By whole factors."""
    weights = _weights(12, 3, 1, 1)
    found = _pair(
        f'a = {BLOCKED_DOMAIN}.Conv(x, w)\nb = {BLOCKED_DOMAIN}.Upsample(a) {{scales = [1, 1, 2, 3], mode = "nearest"}}\n'
        f"y = {BLOCKED_DOMAIN}.ReorderOutput(b) {{channels = 12}}",
        f"a = Conv(x, w)\nf: float[4] = [1, 1, 2, 3]\ny = {plain}",
        "x: float[1, 3, 5, 5]",
        {"w": (_blocks(weights, 8, 1), weights)},
        opset,
    )
    _same(found, 8)


@pytest.mark.parametrize(("channels", "inner", "block"), [(24, 8, 8), (48, 8, 8), (32, 12, 16)])
def test_channels_show_how_many_a_block_has(channels: int, inner: int, block: int) -> None:
    """A number that is no multiple of 16 is of blocks of 8, and 8 to 15 plain input channels are fewer than a block of 16."""
    inputs = 24 if channels == 48 else 3 if channels == 24 else inner
    weights = _weights(channels, inputs, 1, 1)
    x = _weights(1, inputs, 2, 2, seed=8)
    is_plain = inputs < block
    text = "a = {0}.Conv(x, w)" if is_plain else "r = {0}.ReorderInput(x)\na = {0}.Conv(r, w)"
    found = _pair(
        f"{text.format(BLOCKED_DOMAIN)}\ny = {BLOCKED_DOMAIN}.ReorderOutput(a) {{channels = {channels}}}",
        "y = Conv(x, w)",
        f"x: float[1, {inputs}, 2, 2]",
        {"w": (_blocks(weights, block, 1 if is_plain else block), weights)},
    )
    _same(found, None, x)


def test_what_has_no_such_operators_stays() -> None:
    """But for the import."""
    model = _model("(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}", {})
    assert not make_plain(model)
    assert BLOCKED_DOMAIN not in model.opset_imports


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"y = {BLOCKED_DOMAIN}.Mine(x)", "by an operator that is not known; save it again"),
        (f"y = {BLOCKED_DOMAIN}.Conv(x, x)", "its weights are blocks of a constant of float32 with 4 dimensions"),
        (f"a = Reshape(x, _)\ny = {BLOCKED_DOMAIN}.ReorderInput(a)", "the number of channels of its input 'a' is not known"),
        (
            f"w: float[12, 3, 1, 1] = ...\ny = {BLOCKED_DOMAIN}.Conv(x, w)",
            r"weights of shape \[12, 3, 1, 1\] are no whole blocks of",
        ),
    ],
)
def test_what_cannot_be_in_blocks_is_refused(text: str, message: str) -> None:
    """With the node."""
    with pytest.raises(InvalidGraph, match=message):
        make_plain(_model(f"(x: float[1, 3, 5, 5]) -> (y: float[?, ?, ?, ?]) {{\n{text}\n}}", {}))
