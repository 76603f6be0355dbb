"""Packed weights whose rows have groups in any order."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.evaluate import evaluate_model
from support.optimizing import operators

from sardonyx.dtypes import Array
from sardonyx.formats.onnx import load
from sardonyx.ir import Model
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.quantize.sort_nbits_groups import SORT_NBITS_GROUPS

RNG = np.random.default_rng(0)


def model(groups: Array, *, K: int = 80, bits: int = 4, has_bias: bool = False) -> Model:
    """A product of a (m, K) with weights (K, 5) in blocks of 16."""
    blocks = -(-K // 16)
    constants = {
        "b": RNG.integers(0, 256, (5, blocks, 2 * bits)).astype(np.uint8),
        "scales": RNG.uniform(0.5, 1, (5, blocks)).astype(np.float32),
        "zeros": RNG.integers(0, 256, (5, -(-blocks * bits // 8))).astype(np.uint8),
        "groups": groups.astype(np.int32),
    }
    if has_bias:
        constants["bias"] = RNG.uniform(-1, 1, 5).astype(np.float32)
    node = helper.make_node("MatMulNBits", ["a", *constants], ["y"], domain="com.microsoft", K=K, N=5, bits=bits, block_size=16)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, ["m", K])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", 5])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return load(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def fire(made: Model) -> int:
    """Apply the rule; how often it fired."""
    INFER_SHAPES.run(made, Context())
    return rewrite(made, RuleSet([SORT_NBITS_GROUPS]))["sort_nbits_groups"]


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("K", [80, 72, 4096])
@pytest.mark.parametrize("has_bias", [False, True])
def test_fires_with_the_same_numbers(bits: int, K: int, has_bias: bool) -> None:
    """Also where the last block is short."""
    made = model(RNG.permutation(np.arange(K) // 16), K=K, bits=bits, has_bias=has_bias)
    feeds = {"a": RNG.uniform(-1, 1, (3, K)).astype(np.float32)}
    expected = evaluate_model(made, feeds)[0]
    assert fire(made) == 1
    assert operators(made) == ["Gather", "MatMulNBits"]
    np.testing.assert_allclose(evaluate_model(made, feeds)[0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_groups_that_say_what_the_blocks_say_go() -> None:
    """Nothing is moved."""
    made = model(np.arange(80) // 16)
    assert fire(made) == 1
    assert operators(made) == ["MatMulNBits"]


@pytest.mark.parametrize("groups", [np.zeros(80), np.arange(80) // 16 - 1, np.arange(79) // 16])
def test_groups_of_other_sizes_are_left_alone(groups: Array) -> None:
    """Blocks would have rows of several groups."""
    assert fire(model(groups)) == 0
