"""Weights in the 4-bit types of bitsandbytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.models import model
from support.quantizing import PRODUCTS, numbers, operators, relative_error, saved

from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import save
from sardonyx.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer, main

_KINDS = (MatMulBnb4Quantizer.FP4, MatMulBnb4Quantizer.NF4)


@pytest.mark.parametrize("kind", _KINDS)
def test_results_are_near_those_in_floats(kind: int, tmp_path: Path) -> None:
    """MatMul is quantized, Gemm and tables are not."""
    main(["--input_model", str(saved(PRODUCTS, tmp_path)), "--output_model", str(tmp_path / "b.onnx"), "--quant_type", str(kind)])
    assert operators(tmp_path / "b.onnx")["MatMulBnb4"] == 1
    assert relative_error(tmp_path / "float.onnx", tmp_path / "b.onnx", numbers) < 0.2


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(32, 6), (7, 5), (1, 1), (33, 3)])
def test_codes_are_those_that_onnxruntime_makes(shape: tuple[int, int], dtype: type, kind: int) -> None:
    """Blocks may end within a row, and the last one and the last byte may be short."""
    peer = pytest.importorskip("onnxruntime.quantization.matmul_bnb4_quantizer")
    weights = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    proto = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], []))
    found = MatMulBnb4Quantizer(proto, kind, 16).bnb4_block_quant(weights)
    wanted = peer.MatMulBnb4Quantizer(proto, kind, 16).bnb4_block_quant(weights)
    for own, other in zip(found, wanted, strict=True):
        assert own.dtype == other.dtype
        np.testing.assert_array_equal(own, other)


def test_a_matrix_of_two_products_is_stored_once(tmp_path: Path) -> None:
    """Also where one of them is in a body; a node that is named stays as it is."""
    text = """graph(x: float[n, 32], c: bool) -> (y: float[n, 32], z: float[n, 32]) {
        w: float[32, 32] = ... 1
        a = MatMul(x, w) @first
        z = MatMul(a, w) @kept
        y = If(c) {
            then_branch = graph() -> (t: float[n, 32]) { t = MatMul(a, w) @inner },
            else_branch = graph() -> (e: float[n, 32]) { e = Relu(a) }
        }
    }"""
    save(model(text), tmp_path / "a.onnx")
    quantizer = MatMulBnb4Quantizer(str(tmp_path / "a.onnx"), MatMulBnb4Quantizer.NF4, 16, ["kept"])
    quantizer.process()
    proto = quantizer.model.model
    assert [node.op_type for node in proto.graph.node] == ["MatMulBnb4", "MatMul", "If"]
    assert proto.graph.node[2].attribute[0].g.node[0].op_type == "MatMulBnb4"
    assert sorted(tensor.name for tensor in proto.graph.initializer) == ["w", "w_Bnb4", "w_absmax"]


def test_arguments_are_checked(tmp_path: Path) -> None:
    """Types, blocks, ranks and what is at the path of the result."""
    proto = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], []))
    with pytest.raises(InvalidArgument, match="0 for FP4 or 1 for NF4, got 2"):
        MatMulBnb4Quantizer(proto, 2, 64)
    with pytest.raises(InvalidArgument, match="a power of 2, at least 16, got 48"):
        MatMulBnb4Quantizer(proto, 1, 48)
    with pytest.raises(ValueError, match=r"a matrix \(K, N\), got the shape \(3,\)"):
        MatMulBnb4Quantizer(proto, 1, 64).bnb4_block_quant(np.ones(3, np.float32))
    path = str(saved(PRODUCTS, tmp_path))
    with pytest.raises(InvalidArgument, match="is there already"):
        main(["--input_model", path, "--output_model", path])


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    """The message names the weight."""
    save(
        model("graph(x: float[1, 2]) -> (y: float[1, 2]) { w: float[2, 2] = [1, nan, 2, 3] y = MatMul(x, w) @p }"),
        tmp_path / "a.onnx",
    )
    with pytest.raises(InvalidArgument, match="weight 'w' holds NaN"):
        MatMulBnb4Quantizer(str(tmp_path / "a.onnx"), 1, 64).process()
