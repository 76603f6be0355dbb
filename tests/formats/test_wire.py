"""The scanner that takes large tensor data out of a serialised model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from support.protos import info, model, node, tensor

from sardonyx.formats.files import MemoryContent, open_content
from sardonyx.formats.onnx import load
from sardonyx.formats.wire import DOUBLE_DATA, FLOAT_DATA, RAW_DATA, Stripped, strip
from sardonyx.ir import AttributeKind

LARGE = np.arange(600, dtype=np.float32)


def _content(data: bytes) -> MemoryContent:
    return MemoryContent(memoryview(data))


def stripped(proto: onnx.ModelProto) -> tuple[bytes, Stripped]:
    data = proto.SerializeToString()
    result = strip(_content(data))
    assert result is not None
    return data, result


def with_initializer(value: onnx.TensorProto) -> onnx.ModelProto:
    return model([node("Add", ["x", value.name], ["y"])], initializers=[value])


def test_large_raw_data_is_replaced_by_its_place() -> None:
    """An initializer keeps a short key, and the blob of that key spans its bytes."""
    data, result = stripped(with_initializer(tensor("w", LARGE)))
    (found,) = onnx.ModelProto.FromString(result.data).graph.initializer
    blob = result.blobs[found.raw_data]
    assert data[blob.offset : blob.offset + blob.size_bytes] == LARGE.tobytes()
    assert blob.field == RAW_DATA
    assert len(result.data) < 300


def test_small_data_stays() -> None:
    """Data below the threshold is left to protobuf."""
    data, result = stripped(with_initializer(tensor("w", LARGE[:8])))
    assert result.data == data
    assert not result.blobs


@pytest.mark.parametrize(("dtype", "field"), [(TensorProto.FLOAT, FLOAT_DATA), (TensorProto.DOUBLE, DOUBLE_DATA)])
def test_typed_floats_are_elements_too(dtype: int, field: int) -> None:
    """float_data and double_data are taken out, and the field is remembered."""
    data, result = stripped(with_initializer(helper.make_tensor("w", dtype, [600], LARGE)))
    (blob,) = result.blobs.values()
    expected = LARGE.astype(np.float32 if field == FLOAT_DATA else np.float64).tobytes()
    assert data[blob.offset : blob.offset + blob.size_bytes] == expected
    assert blob.field == field


def test_all_else_is_kept() -> None:
    """Putting the data back gives the message that protobuf reads from the original."""
    proto = with_initializer(tensor("w", LARGE))
    proto.graph.node[0].doc_string = "d" * 5000
    data, result = stripped(proto)
    again = onnx.ModelProto.FromString(result.data)
    for value in again.graph.initializer:
        blob = result.blobs[value.raw_data]
        value.raw_data = data[blob.offset : blob.offset + blob.size_bytes]
    assert again == proto


def test_data_is_found_in_attributes_subgraphs_functions_and_sparse_tensors() -> None:
    """Wherever onnx.proto allows a tensor, its data is found."""
    constant = node("Constant", [], ["c"], value=tensor("", LARGE))
    branch = helper.make_graph([constant], "branch", [], [info("c")], [tensor("b", LARGE)])
    sparse = helper.make_sparse_tensor(tensor("s", LARGE), tensor("", np.arange(600)), [600])
    function = helper.make_function("f", "F", [], ["c"], [constant], [helper.make_opsetid("", 21)])
    proto = model(
        [node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)], initializers=[tensor("w", LARGE)], functions=[function]
    )
    proto.graph.sparse_initializer.append(sparse)
    _, result = stripped(proto)
    assert len(result.blobs) == 1 + 2 * 2 + 1 + 2


def test_long_lists_of_attributes_are_taken_out() -> None:
    """Numbers and texts; a file that is read has them as they were written. Short ones stay, and those with more than a list."""
    lists = {"numbers": list(range(9000)), "floats": [0.5, -0.0] * 4000, "texts": ["LEAF", "BRANCH"] * 3000, "short": [1, 2, 3]}
    proto = model([node("Custom", ["x"], ["y"], domain="custom", **lists)])
    documented = proto.graph.node[0].attribute.add()
    documented.CopyFrom(next(item for item in proto.graph.node[0].attribute if item.name == "numbers"))
    documented.name, documented.doc_string = "documented", "it has a text too"
    _, result = stripped(proto)
    assert sorted(tuple(found.value) for found in result.lists.values() if found.kind is AttributeKind.INTS) == [tuple(range(9000))]
    assert len(result.lists) == 3
    padding = proto.graph.node[0].attribute.add()
    padding.name, padding.type, padding.s = "padding", onnx.AttributeProto.STRING, b"x" * (4 << 20)
    attributes = next(iter(load(proto.SerializeToString()).graph)).attributes
    assert {name: list(attributes[name].value) for name in lists} == lists
    assert list(attributes["documented"].value) == lists["numbers"]


def test_keys_are_drawn_anew() -> None:
    """No file can know a key, since each call draws its own."""
    data = with_initializer(tensor("w", LARGE)).SerializeToString()
    keys = {key for _ in range(2) for key in (strip(_content(data)) or Stripped(b"", {})).blobs}
    assert len(keys) == 2


def test_two_payloads_in_one_tensor_are_left_to_protobuf() -> None:
    """Which of two payloads counts is not for the scanner to decide."""
    value = helper.make_tensor("w", TensorProto.FLOAT, [600], LARGE)
    value.raw_data = LARGE.tobytes()
    assert strip(_content(with_initializer(value).SerializeToString())) is None


@pytest.mark.parametrize("cut", [1, 500, 2000])
def test_a_truncated_model_is_left_to_protobuf(cut: int) -> None:
    """A field that leaves its message makes the scanner give up."""
    data = with_initializer(tensor("w", LARGE)).SerializeToString()
    assert strip(_content(data[:-cut])) is None


@pytest.mark.parametrize("data", [b"\x3b" * 20, b"\xff" * 40, b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80"])
def test_groups_and_endless_numbers_are_left_to_protobuf(data: bytes) -> None:
    """Wire types and numbers that no ONNX file has make the scanner give up."""
    assert strip(_content(data)) is None


def test_deep_nesting_is_left_to_protobuf() -> None:
    """Subgraphs nested beyond what protobuf reads do not exhaust the stack."""
    payload = b"\x00" * 2000
    for _ in range(400):
        for tag in (0x32, 0x2A, 0x0A):  # g of an attribute, attribute of a node, node of a graph
            payload = _field(tag, payload)
    assert strip(_content(_field(0x3A, payload))) is None


def _field(tag: int, payload: bytes) -> bytes:
    size, encoded = len(payload), bytearray([tag])
    while size >= 0x80:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*encoded, size]) + payload


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2700), st.integers(0, 255)), min_size=1, max_size=4))
def test_the_scanner_never_accepts_what_protobuf_refuses(edits: list[tuple[int, int]]) -> None:
    """Whatever bytes are damaged, what is left after stripping parses only if the original does."""
    data = bytearray(with_initializer(tensor("w", LARGE)).SerializeToString())
    for place, byte in edits:
        data[place % len(data)] = byte
    result = strip(_content(bytes(data)))
    if result is None:
        return
    try:
        onnx.ModelProto.FromString(result.data)
    except DecodeError:
        with pytest.raises(DecodeError):
            onnx.ModelProto.FromString(bytes(data))
    else:
        onnx.ModelProto.FromString(bytes(data))


@pytest.mark.parametrize("shift", [0, 1, 7, 19, 20, 21])
def test_a_file_is_seen_through_a_window(tmp_path: Path, shift: int) -> None:
    """A model that is read from a file by pieces is stripped as one in memory, wherever fields lie in the pieces."""
    initializers = [tensor(f"w{number}", np.full(number * 37 % 900, number, np.float32)) for number in range(200)]
    nodes = [node("Add", ["x", f"w{number}"], [f"y{number}"], doc_string="d" * (number * 13 % 400)) for number in range(200)]
    proto = model(nodes, outputs=["y0"], initializers=[*initializers, tensor("big", np.zeros(2 << 20, np.float32))])
    proto.doc_string, proto.producer_name = "d" * shift, "p" * 20_000
    data = proto.SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    content, _ = open_content(path, "model file")
    assert not isinstance(content, MemoryContent)
    seen, expected = strip(content), strip(_content(data))
    assert seen is not None
    assert expected is not None
    assert list(seen.blobs.values()) == list(expected.blobs.values())
    assert len(seen.data) == len(expected.data)
    for key, other in zip(seen.blobs, expected.blobs, strict=True):
        assert seen.data.find(key) == expected.data.find(other) > 0
