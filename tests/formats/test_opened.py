"""Models as bytes that are not parsed."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.toy_format import TOY, content_of

from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.formats.opened import open_model
from sardonyx.formats.registry import register_format, unregister_format


def _bytes(*, weight: float = 1.0, small: float = 1.0, op_type: str = "Add", columns: int = 20_000) -> bytes:
    tensors = [
        numpy_helper.from_array(np.full(columns, weight, np.float32), "w"),
        numpy_helper.from_array(np.full(2, small, np.float32), "s"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [columns]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(op_type, ["x", "w"], ["y"])], "g", values[:1], values[1:], tensors)
    return helper.make_model(graph).SerializeToString()


def _digest(content: bytes) -> str:
    return open_model(content, None).digest()


def test_large_data_is_left_where_it_is() -> None:
    """The message has a key in its place."""
    opened = open_model(_bytes(), None)
    (blob,) = opened.blobs.values()
    assert blob.size_bytes == 80_000
    assert opened.message is not None
    assert len(opened.message) < 1000


def test_the_digest_is_that_of_the_message() -> None:
    """Keys, which are new each time, and large data do not count."""
    assert _digest(_bytes()) == _digest(_bytes()) == _digest(_bytes(weight=2.0))


@pytest.mark.parametrize("change", [{"small": 2.0}, {"op_type": "Mul"}, {"columns": 20_001}])
def test_the_digest_differs_where_the_message_does(change: dict[str, object]) -> None:
    """By an operator, a size, or an element of a small tensor."""
    assert _digest(_bytes()) != _digest(_bytes(**change))


def test_a_small_model_is_its_own_message() -> None:
    """So all its bytes count."""
    opened = open_model(_bytes(columns=300), None)
    assert (opened.message, opened.blobs) == (None, {})
    assert opened.digest() != _digest(_bytes(columns=300, weight=2.0))


def test_a_file_has_a_stamp(tmp_path: Path) -> None:
    """By which a change of it is found."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_bytes())
    status = os.stat(path)
    assert open_model(path, path).stamp == (status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """As when it is loaded."""
    with pytest.raises(NoSuchFile):
        open_model("gone", tmp_path / "gone")


def test_what_holds_no_bytes_is_an_error() -> None:
    """The message says what is expected."""
    with pytest.raises(InvalidArgument, match="expected a path, bytes"):
        open_model(3, None)


def test_long_lists_of_attributes_are_in_the_digest() -> None:
    """They are taken out of the message, but may decide anything."""

    def content(last: float) -> bytes:
        numbers = [*map(float, range(50_000)), last]
        node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", nodes_values=numbers)
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
        return helper.make_model(helper.make_graph([node], "g", values[:1], values[1:])).SerializeToString()

    assert open_model(content(1.0), None).stripped is not None
    assert _digest(content(1.0)) == _digest(content(1.0)) != _digest(content(2.0))


def test_other_formats_say_where_their_large_data_lies() -> None:
    """The digest is of the rest."""
    register_format(TOY)
    try:
        first, second = (open_model(content_of(np.arange(20_000) + base), None) for base in (0, 1))
        assert first.format is TOY
        assert [(blob.offset, blob.size_bytes) for blob in first.blobs.values()] == [(8, 80_000)]
        assert first.digest() == second.digest() != _digest(content_of(np.arange(20_001)))
    finally:
        unregister_format(TOY)


@pytest.mark.parametrize("places", [[(8, 100), (50, 10)], [(8, 1 << 40)], [(8, -1)], None])
def test_large_data_that_cannot_be_is_not_believed(places: list[tuple[int, int]] | None) -> None:
    """Overlapping, outside the file, of a negative length, or an error: the digest is of the whole file."""
    register_format(wrong := dataclasses.replace(TOY, large_data=lambda file: places))  # type: ignore[arg-type,return-value]  # wrong on purpose
    try:
        opened = open_model(content_of(np.arange(20_000)), None)
        assert (opened.format, opened.blobs) == (wrong, {})
    finally:
        unregister_format(wrong)
