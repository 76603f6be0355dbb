"""Which operators can be quantized."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.quantizing import PRODUCTS, operators, saved

from sardonyx.quantization import quantize_dynamic
from sardonyx.quantization.registry import IntegerOpsRegistry, QDQRegistry, QLinearOpsRegistry


def test_keys_are_operators_that_the_tools_take(tmp_path: Path) -> None:
    """As packages pass them on."""
    quantize_dynamic(saved(PRODUCTS, tmp_path), tmp_path / "q.onnx", op_types_to_quantize=list(IntegerOpsRegistry))
    assert operators(tmp_path / "q.onnx")["MatMulInteger"] == 2


def test_all_operators_of_onnxruntimes_tools_are_taken() -> None:
    """But those that only one of its forms knows as a whole node of com.microsoft."""
    peer = pytest.importorskip("onnxruntime.quantization.registry")
    assert set(peer.IntegerOpsRegistry) <= set(IntegerOpsRegistry)
    assert set(peer.QDQRegistry) <= set(QDQRegistry)
    assert set(peer.QLinearOpsRegistry) - {"EmbedLayerNormalization"} <= set(QLinearOpsRegistry)


def test_both_forms_of_static_quantization_take_the_same() -> None:
    """Products, moves and others."""
    assert set(QDQRegistry) == set(QLinearOpsRegistry) >= {"Conv", "Gemm", "MatMul", "Reshape", "Softmax"}
