"""Constants of TensorFlow Lite models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidFlatBuffer
from sardonyx.formats.tflite.constants import transposed
from sardonyx.ir import Tensor


def _given_out(sketch: Sketch, index: int) -> Any:
    return run(sketch.model([index]))[0]


def test_strings_are_unpacked() -> None:
    """From their offsets, whatever characters they have."""
    sketch = Sketch()
    words = np.array([["a", ""], ["grün", "xyz"]], object)
    assert _given_out(sketch, sketch.constant(words)).tolist() == words.tolist()


def test_a_sparse_matrix_is_made_dense() -> None:
    """Of compressed rows."""
    sketch = Sketch()
    sparsity = {
        "traversal_order": [0, 1],
        "dim_metadata": [
            {"format": "DENSE", "dense_size": 3},
            {
                "format": "SPARSE_CSR",
                "array_segments": ("Int32Vector", {"values": [0, 2, 2, 3]}),
                "array_indices": ("Uint8Vector", {"values": [0, 3, 1]}),
            },
        ],
    }
    index = sketch.constant(np.array([1, 2, 3], np.float32), shape=(3, 4), sparsity=sparsity)
    np.testing.assert_array_equal(_given_out(sketch, index), [[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]])


def test_sparse_blocks_are_made_dense() -> None:
    """Each block of 2 x 2 lies row by row."""
    sketch = Sketch()
    sparsity = {
        "traversal_order": [0, 1, 2, 3],
        "block_map": [0, 1],
        "dim_metadata": [
            {"format": "DENSE", "dense_size": 2},
            {
                "format": "SPARSE_CSR",
                "array_segments": ("Uint8Vector", {"values": [0, 1, 2]}),
                "array_indices": ("Uint8Vector", {"values": [1, 0]}),
            },
            {"format": "DENSE", "dense_size": 2},
            {"format": "DENSE", "dense_size": 2},
        ],
    }
    index = sketch.constant(np.arange(1, 9, dtype=np.float32), shape=(4, 4), sparsity=sparsity)
    np.testing.assert_array_equal(_given_out(sketch, index), [[0, 0, 1, 2], [0, 0, 3, 4], [5, 6, 0, 0], [7, 8, 0, 0]])


def test_a_buffer_behind_the_tables_is_read() -> None:
    """Large models have their data outside of the tables, by offset and size."""
    sketch = Sketch()
    index = sketch.constant(np.zeros(3, np.float32))
    sketch.buffers[-1] = {"offset": 1 << 40, "size": 12}
    size_bytes = len(sketch.model([index]))
    sketch.buffers[-1] = {"offset": size_bytes, "size": 12}
    sketch.subgraphs[0]["outputs"] = []
    data = sketch.model([index]) + np.array([1, 2, 3], np.float32).tobytes()
    np.testing.assert_array_equal(run(data)[0], [1, 2, 3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda sketch: sketch.buffers.__setitem__(1, {"data": bytes(11)}), r"tensors\[0\].buffer: it has 11 bytes, and FLOAT32"),
        (
            lambda sketch: sketch.buffers.__setitem__(1, {"offset": 2, "size": 1 << 60}),
            r"buffers\[1\].offset: \d+ bytes at byte 2 end",
        ),
        (lambda sketch: sketch.subgraphs[0]["tensors"][0].update(buffer=9), r"tensors\[0\].buffer: there is no buffer 9"),
        (lambda sketch: sketch.subgraphs[0]["tensors"][0].update(type="STRING"), "strings, and the shape is"),
        (lambda sketch: sketch.subgraphs[0]["tensors"][0].update(sparsity={"traversal_order": [5]}), "traversal_order: "),
    ],
)
def test_buffers_that_do_not_fit_are_refused(change: Any, message: str) -> None:
    """With the table and the field."""
    sketch = Sketch()
    index = sketch.constant(np.zeros(3, np.float32))
    change(sketch)
    with pytest.raises(InvalidFlatBuffer, match=message):
        run(sketch.model([index]))


def test_a_transposed_constant_is_made_when_it_is_asked_for() -> None:
    """From the tensor, reshaped before."""
    tensor = transposed(Tensor.from_array(np.arange(6, dtype=np.int8)), (1, 0), (2, 3))
    assert (tensor.dtype, tensor.shape) == (DataType.INT8, (3, 2))
    np.testing.assert_array_equal(tensor.numpy(), [[0, 3], [1, 4], [2, 5]])
