"""Arrays as tensors and constants of OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import graph

from sardonyx.dtypes import DataType
from sardonyx.partition.as_model import base_versions, write_nodes
from sardonyx.providers.openvino.tensors import as_tensor, element_type, is_large, share_constants, signature_of


def test_read_only_and_strange_arrays_become_tensors() -> None:
    """OpenVINO asks for writeable memory although it only reads; dense arrays are not copied."""
    pytest.importorskip("openvino")
    dense = np.arange(6, dtype=np.float32).reshape(2, 3)
    dense.flags.writeable = False
    tensor = as_tensor(dense)
    assert tensor.data.ctypes.data == dense.ctypes.data
    unaligned = np.zeros(4 * 6 + 1, np.uint8)[1:].view(np.float32)
    assert as_tensor(unaligned).data.ctypes.data == unaligned.ctypes.data
    assert as_tensor(dense.T).data.tolist() == dense.T.tolist()
    assert as_tensor(np.zeros((0, 3), np.float32)).data.shape == (0, 3)
    assert as_tensor(np.float32(3)[...]).data.shape == ()


def test_weights_are_shared() -> None:
    """The constants of the read model are the arrays that it was given."""
    openvino = pytest.importorskip("openvino")
    held = graph("graph(x: float[n, 64]) -> (y: float[n, 64]) {\nw: float[64, 64] = ... 1\ny = MatMul(x, w)\n}")
    constants = list(held.initializers.values())
    model = openvino.Core().read_model(write_nodes(held, held.inputs, constants, held.outputs, base_versions(held), is_large))
    weight = np.ones((64, 64), np.float32)
    share_constants(model, [weight])
    constants = [item for item in model.get_ops() if item.get_type_name() == "Constant"]
    assert weight.ctypes.data in [item.data.ctypes.data for item in constants]
    assert len(model.inputs) == 1


def test_types_have_openvino_s_names() -> None:
    """Short ones, with the number of bits."""
    names = [element_type(dtype) for dtype in (DataType.FLOAT, DataType.BFLOAT16, DataType.BOOL, DataType.UINT8, DataType.INT64)]
    assert names == ["f32", "bf16", "boolean", "u8", "i64"]


def test_a_signature_has_types_and_shapes() -> None:
    """Symbols stay."""
    held = graph("graph(x: float[n, 4]) -> (y: float[n, 4]) { y = Relu(x) }")
    ((dtype, shape),) = signature_of(held.inputs)
    assert dtype is DataType.FLOAT
    assert [str(dim) for dim in shape] == ["n", "4"]
