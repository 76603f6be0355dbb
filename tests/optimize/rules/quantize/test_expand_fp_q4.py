"""Products with weights of 4 bits between which their scales lie."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.evaluate import evaluate_model
from support.optimizing import operators

from sardonyx.formats.onnx import load
from sardonyx.ir import Model
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rules.quantize.expand_fp_q4 import EXPAND_FP_Q4


def model(kind: int, K: int, *, zeros: int = 16, left_out: int = 0) -> Model:
    """A product of a (m, K) with weights (K, 5) of kind 0, without zero points, or 1."""
    rng, blocks = np.random.default_rng(K), -(-K // 32)
    scales = rng.uniform(0.5, 1, (5, blocks, 1)).astype(np.float32).view(np.uint8)
    points = rng.integers(0, zeros, (5, blocks, kind)).astype(np.uint8)
    numbers = rng.integers(0, 256, (5, blocks, 16)).astype(np.uint8)
    b = np.concatenate([scales, points, numbers], axis=2).reshape(-1)
    graph = helper.make_graph(
        [helper.make_node("MatMulFpQ4", ["a", "b", "shape"], ["y"], domain="com.microsoft", blk_quant_type=kind)],
        "g",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, ["m", K])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", 5])],
        [numpy_helper.from_array(b[left_out:], "b"), numpy_helper.from_array(np.array([K, 5]), "shape")],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return load(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def fire(made: Model) -> int:
    """Apply the rule; how often it fired."""
    INFER_SHAPES.run(made, Context())
    return rewrite(made, RuleSet([EXPAND_FP_Q4]))["expand_fp_q4"]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("K", [32, 50, 96])
def test_fires_with_the_same_numbers(kind: int, K: int) -> None:
    """With and without zero points, also where the last block is short."""
    made, feeds = model(kind, K), {"a": np.random.default_rng(0).uniform(-1, 1, (3, K)).astype(np.float32)}
    expected = evaluate_model(made, feeds)[0]
    assert fire(made) == 1
    assert operators(made) == ["MatMulNBits"]
    np.testing.assert_allclose(evaluate_model(made, feeds)[0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_other_sizes_are_left_alone() -> None:
    """Zero points that 4 bits do not hold, bytes that the shape does not need."""
    assert fire(model(1, 96, zeros=256)) == 0
    assert fire(model(1, 96, left_out=1)) == 0
