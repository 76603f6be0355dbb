"""TensorProto and constant tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.protos import tensor

from sardonyx import errors
from sardonyx.config import Limits
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph, SardonyxError
from sardonyx.formats import onnx_tensor
from sardonyx.formats.external_data import ExternalData
from sardonyx.formats.files import MemoryContent, open_content
from sardonyx.formats.onnx_tensor import TensorReader, densified, write_tensor
from sardonyx.formats.wire import FLOAT_DATA, RAW_DATA, Blob
from sardonyx.ir import Tensor

READER = TensorReader(MemoryContent(memoryview(b"")), {}, ExternalData(None))
NUMERIC = [dtype for dtype in DataType if dtype not in (DataType.UNDEFINED, DataType.STRING)]


def printed(array: np.ndarray) -> str:
    """The elements as text, in which NaN equals NaN (float8e8m0 has no zero)."""
    return str(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64).tolist())


@pytest.mark.parametrize("raw", [False, True], ids=["typed", "raw"])
@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_every_element_type_is_read(dtype: DataType, raw: bool) -> None:
    """Typed fields and raw data, as the onnx package writes them, give the same elements."""
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype.numpy)
    proto = numpy_helper.from_array(values, "w") if raw else helper.make_tensor("w", int(dtype), [2, 3], values.ravel())
    found = READER.read(proto)
    assert (found.dtype, found.shape, found.name) == (dtype, (2, 3), "w")
    assert found.numpy().dtype == dtype.numpy
    assert printed(found.numpy()) == printed(numpy_helper.to_array(proto)) == printed(values)


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@pytest.mark.parametrize("shape", [(0,), (), (2, 0, 3)], ids=str)
def test_empty_tensors_and_scalars_are_read(dtype: DataType, shape: tuple[int, ...]) -> None:
    """No data is right where a dimension is 0, and one element is right where there is no dimension."""
    write_tensor(proto := TensorProto(), Tensor.from_array(np.zeros(shape, dtype.numpy)), "w")
    assert READER.read(proto).numpy().shape == shape


@pytest.mark.parametrize(
    ("dtype", "numbers", "expected"),
    [
        (TensorProto.INT8, [-1, 127], [-1, 127]),
        (TensorProto.UINT16, [65535, 0], [65535, 0]),
        (TensorProto.FLOAT16, [0x3C00, 0xBC00], [1.0, -1.0]),
        (TensorProto.BFLOAT16, [0x3F80, 0xC000], [1.0, -2.0]),
        (TensorProto.FLOAT8E4M3FN, [0x38, 0xB8], [1.0, -1.0]),
        (TensorProto.BOOL, [7, 0], [1, 0]),
    ],
)
def test_int32_data_holds_the_bits_of_narrow_types(dtype: int, numbers: list[int], expected: list[float]) -> None:
    """Types of 16 bits or fewer are stored bit-wise in int32_data."""
    proto = TensorProto(data_type=dtype, dims=[2], int32_data=numbers)
    assert READER.read(proto).numpy().astype(float).tolist() == expected


def test_strings_are_text() -> None:
    """Strings are decoded as UTF-8, and bytes that are none survive a round trip."""
    proto = TensorProto(data_type=TensorProto.STRING, dims=[2], string_data=["ä".encode(), b"\xff"])
    found = READER.read(proto)
    assert found.numpy().tolist()[0] == "ä"
    write_tensor(again := TensorProto(), found, "")
    assert list(again.string_data) == ["ä".encode(), b"\xff"]


def test_arrays_are_read_only() -> None:
    """Nobody can change a constant by accident."""
    for proto in (tensor("w", np.zeros(3)), helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])):
        assert not READER.read(proto).numpy().flags.writeable


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (TensorProto(data_type=1, dims=[3], raw_data=bytes(8)), r"'w' \(float\[3\]\) has 8 bytes of data; .* need 12"),
        (TensorProto(data_type=1, dims=[3], float_data=[1, 2]), "has 2 elements in float_data; its shape needs 3"),
        (TensorProto(data_type=1, dims=[3]), "has no data; its shape needs 3 elements"),
        (TensorProto(data_type=1, dims=[1], int64_data=[1]), "has no data"),
        (TensorProto(data_type=14, dims=[1], float_data=[1]), "has 1 elements in float_data"),
        (TensorProto(data_type=22, dims=[3], int32_data=[1]), "has 1 elements in int32_data"),
        (TensorProto(data_type=22, dims=[3], raw_data=b"123"), "has 3 bytes of data; its type and shape need 2"),
        (TensorProto(data_type=1, dims=[-2], raw_data=bytes(8)), r"has the shape \[-2\]; .* none negative"),
        (TensorProto(data_type=1, dims=[-1, -2], raw_data=bytes(8)), "none negative"),
        (TensorProto(data_type=1, dims=[1] * 65, raw_data=bytes(4)), "at most 64 dimensions"),
        (TensorProto(data_type=1, dims=[0, 1 << 62, 1 << 62]), "other than 0 may multiply"),
        (TensorProto(data_type=1, dims=[1 << 40]), "at most [0-9]+ are allowed"),
        (TensorProto(dims=[1], raw_data=bytes(4)), "has no element type"),
        (TensorProto(data_type=8, dims=[2], string_data=[b"a"]), "has 1 elements in string_data; its shape needs 2"),
        (TensorProto(data_type=8, dims=[1], raw_data=b"a"), "strings must be in string_data"),
    ],
)
def test_data_that_disagrees_with_type_or_shape_is_refused(proto: onnx.TensorProto, message: str) -> None:
    """The message names the tensor, its type and shape, and both sizes."""
    proto.name = "w"
    with pytest.raises(InvalidGraph, match=message):
        READER.read(proto)


def test_an_initializer_may_take_the_limit_but_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size is looked at before its data."""
    monkeypatch.setattr(onnx_tensor, "LIMITS", Limits(tensor_bytes=16))
    assert READER.read(TensorProto(data_type=1, dims=[4], float_data=[1, 2, 3, 4])).numpy().tolist() == [1, 2, 3, 4]
    with pytest.raises(InvalidGraph, match="has 20 bytes; at most 16 are allowed"):
        READER.read(TensorProto(data_type=1, dims=[5], float_data=[1, 2, 3, 4, 5]))


def test_a_future_element_type_is_not_implemented() -> None:
    """A number that this version does not know is unsupported, not wrong."""
    with pytest.raises(errors.NotImplemented, match="unknown element type 77"):
        READER.read(TensorProto(name="w", data_type=77, dims=[1]))


def test_blobs_are_views_of_the_model() -> None:
    """Data that the scanner took out is read in place."""
    data = np.arange(8, dtype=np.float32)
    reader = TensorReader(MemoryContent(memoryview(data).cast("B")), {b"key": Blob(8, 16, RAW_DATA)}, ExternalData(None))
    found = reader.read(TensorProto(data_type=1, dims=[2, 2], raw_data=b"key")).numpy()
    assert found.tolist() == [[2, 3], [4, 5]]
    assert np.shares_memory(found, data)


@pytest.mark.parametrize(
    ("dtype", "size_bytes", "message"), [(7, 16, "has its elements in float_data"), (1, 12, "has 12 bytes of data")]
)
def test_blobs_that_disagree_with_the_tensor_are_refused(dtype: int, size_bytes: int, message: str) -> None:
    """Data taken out is checked as data inside is."""
    reader = TensorReader(MemoryContent(memoryview(bytes(64))), {b"key": Blob(8, size_bytes, FLOAT_DATA)}, ExternalData(None))
    with pytest.raises(InvalidGraph, match=message):
        reader.read(TensorProto(data_type=dtype, dims=[4], raw_data=b"key"))


def test_external_data_is_unpacked_like_data_inside(tmp_path: Path) -> None:
    """Packed elements may lie in a file."""
    (tmp_path / "d").write_bytes(b"\x21\x43")
    proto = TensorProto(data_type=TensorProto.UINT4, dims=[3], data_location=TensorProto.EXTERNAL)
    proto.external_data.add(key="location", value="d")
    reader = TensorReader(MemoryContent(memoryview(b"")), {}, ExternalData(tmp_path))
    assert reader.read(proto).numpy().astype(int).tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", [*NUMERIC, DataType.STRING], ids=str)
def test_reading_undoes_writing(dtype: DataType) -> None:
    """Every element type survives a round trip."""
    array = np.array(["a", "", "ü"], object) if dtype is DataType.STRING else np.array([1, 0, 1]).astype(dtype.numpy)
    write_tensor(proto := TensorProto(), Tensor.from_array(array), "w")
    again = READER.read(TensorProto.FromString(proto.SerializeToString()))
    assert again.dtype is dtype
    assert str(again.numpy().tolist()) == str(array.tolist())


def sparse(values: np.ndarray, indices: np.ndarray, dims: list[int]) -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(values=tensor("s", values), indices=tensor("", indices), dims=dims)


@pytest.mark.parametrize(
    ("indices", "dims", "expected"),
    [
        (np.array([1, 5]), [2, 3], [[0, 7, 0], [0, 0, 8]]),
        (np.array([[0, 1], [1, 2]]), [2, 3], [[0, 7, 0], [0, 0, 8]]),
        (np.array([0, 3]), [4], [7, 0, 0, 8]),
    ],
)
def test_sparse_tensors_become_dense(indices: np.ndarray, dims: list[int], expected: list[object]) -> None:
    """Places may be given in the flattened tensor or by dimension."""
    found = densified(READER.read_sparse(sparse(np.array([7.0, 8.0], np.float32), indices, dims)))
    assert (found.name, found.shape, found.dtype) == ("s", tuple(dims), DataType.FLOAT)
    assert found.numpy().tolist() == expected


@pytest.mark.parametrize("indices", [np.zeros(0, np.int64), np.zeros((0, 2), np.int64)], ids=["flat", "by dimension"])
@pytest.mark.parametrize("dims", [[2, 3], [2, 0]])
def test_a_sparse_tensor_may_have_no_values(indices: np.ndarray, dims: list[int]) -> None:
    """All its elements are zero, if there are any."""
    found = densified(READER.read_sparse(sparse(np.zeros(0, np.float32), indices, dims)))
    assert found.numpy().tolist() == np.zeros(dims).tolist()


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (sparse(np.zeros(1), np.array([6]), [2, 3]), "an index lies outside the shape"),
        (sparse(np.zeros(1), np.array([[0, 3]]), [2, 3]), "an index lies outside"),
        (sparse(np.zeros(1), np.array([-1]), [2, 3]), "an index lies outside"),
        (sparse(np.zeros(2), np.array([1]), [2, 3]), r"indices have the shape \[1\]; expected \[2\] or \[2, 2\]"),
        (sparse(np.zeros((1, 1)), np.array([1]), [2, 3]), r"expected values of shape \[NNZ\]"),
        (sparse(np.zeros(1), np.array([1], np.int32), [2, 3]), "indices of int64"),
        (sparse(np.zeros(1), np.array([1]), [2, -3]), "none negative"),
        (sparse(np.zeros(1), np.array([1]), [1 << 40, 1 << 40]), "multiply"),
    ],
)
def test_sparse_tensors_that_contradict_themselves_are_refused(proto: onnx.SparseTensorProto, message: str) -> None:
    """Shapes, types and places are checked when the tensor is read."""
    with pytest.raises(SardonyxError, match=message):
        READER.read_sparse(proto)


def test_a_sparse_tensor_that_would_be_huge_is_refused() -> None:
    """A few bytes cannot ask for gigabytes."""
    proto = sparse(np.zeros(1), np.array([1]), [1 << 20, 1 << 10])
    with pytest.raises(InvalidGraph, match="takes 8589934592 bytes when made dense"):
        densified(READER.read_sparse(proto))


def _stored(tmp_path: Path, data: bytes, data_type: int, dims: tuple[int, ...]) -> Tensor:
    """A tensor whose data begins at byte 8 of a large file."""
    path = tmp_path / "m.onnx"
    path.write_bytes(bytes(8) + data + bytes(5 << 20))
    content, _ = open_content(path, "model file")
    reader = TensorReader(content, {b"key": Blob(8, len(data), RAW_DATA)}, ExternalData(None))
    return reader.read(onnx.TensorProto(data_type=data_type, dims=dims, raw_data=b"key", name="w"))


def test_elements_in_a_file_are_read_when_asked_for(tmp_path: Path) -> None:
    """All of them, or some rows; what was read stays as it is while somebody holds it, also after a release."""
    numbers = np.arange(600, dtype=np.float32).reshape(20, 30)
    held = _stored(tmp_path, numbers.tobytes(), onnx.TensorProto.FLOAT, (20, 30))
    np.testing.assert_array_equal(held.rows(3, 7), numbers[3:7])
    first = held.numpy()
    np.testing.assert_array_equal(first, numbers)
    held.release()
    again = held.numpy()
    assert np.shares_memory(first, again)
    np.testing.assert_array_equal(held.rows(19, 20), numbers[19:])
    held.release()
    del first, again
    np.testing.assert_array_equal(held.numpy(), numbers)


def test_rows_of_small_elements_are_read_whole(tmp_path: Path) -> None:
    """Rows of 4-bit elements may begin within a byte."""
    held = _stored(tmp_path, bytes(range(15)), onnx.TensorProto.UINT4, (10, 3))
    np.testing.assert_array_equal(held.rows(1, 4), held.numpy()[1:4])
    assert held.numpy().astype(int).ravel()[:4].tolist() == [0, 0, 1, 0]
