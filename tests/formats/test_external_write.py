"""Tensor data written beside the model."""

from __future__ import annotations

import io

import numpy as np
import onnx

from sardonyx.formats.external_write import DataFile, store_where
from sardonyx.ir import Tensor


def stored(file: DataFile, array: np.ndarray) -> tuple[onnx.TensorProto, dict[str, str]]:
    proto = onnx.TensorProto()
    file.store(proto, Tensor.from_array(array), "w")
    return proto, {entry.key: entry.value for entry in proto.external_data}


def test_data_starts_on_pages() -> None:
    """Offsets are multiples of 4096, and each tensor's bytes are where its message says."""
    stream = io.BytesIO()
    file = DataFile(stream, "m.data")
    arrays = [np.arange(1025, dtype=np.float32), np.arange(5000, dtype=np.uint8)]
    for array in arrays:
        proto, entries = stored(file, array)
        start, length = int(entries["offset"]), int(entries["length"])
        assert start % 4096 == 0
        assert stream.getvalue()[start : start + length] == array.tobytes()
        assert entries["location"] == "m.data"
        assert proto.data_location == onnx.TensorProto.EXTERNAL
        assert not proto.raw_data


def test_small_tensors_and_strings_stay_in_the_message() -> None:
    """Less than a page is not worth a place of its own, and strings have no fixed size."""
    stream = io.BytesIO()
    file = DataFile(stream, "m.data")
    assert stored(file, np.zeros(8, np.float32))[0].raw_data == bytes(32)
    assert list(stored(file, np.array(["a"] * 5000))[0].string_data[:2]) == [b"a", b"a"]
    assert stream.getvalue() == b""


def test_data_that_somebody_else_wrote_is_referred_to() -> None:
    """Where it is said to be; what is said to be nowhere stays in the message."""
    store = store_where(lambda name, tensor: ("mine.bin", 24, tensor.size_bytes) if name == "w" else None)
    protos = {name: onnx.TensorProto() for name in ("w", "b")}
    for name, proto in protos.items():
        store(proto, Tensor.from_array(np.ones((2, 3), np.float32)), name)
    entries = {entry.key: entry.value for entry in protos["w"].external_data}
    assert entries == {"location": "mine.bin", "offset": "24", "length": "24"}
    assert (protos["w"].name, list(protos["w"].dims), protos["w"].data_type) == ("w", [2, 3], onnx.TensorProto.FLOAT)
    assert protos["b"].raw_data == np.ones(6, np.float32).tobytes()
