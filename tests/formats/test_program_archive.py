"""Programs one after another in a file."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from support.models import graph

from sardonyx.errors import EPFail
from sardonyx.formats.program_archive import ProgramArchive, block_key
from sardonyx.formats.program_copy import take_program
from sardonyx.formats.program_file import bytes_of, digest_of, read_program, write_program
from sardonyx.ir import Tensor, Value

_WEIGHT = np.arange(600, dtype=np.float32).reshape(20, 30)


def _program(*arrays: Any, code: bytes = b"code") -> memoryview:
    held = graph("graph(x: float[n]) -> (y: float[n]) { y = Relu(x) }")
    return memoryview(write_program({"made": "here"}, held, arrays, objects={"one": code, "two": b"another"}))


def test_equal_blocks_lie_once_and_each_program_is_whole() -> None:
    """The second has nothing of its own but its header and one object."""
    stream, archive = io.BytesIO(), ProgramArchive()
    first = archive.add(stream, _program(_WEIGHT), {})
    second = archive.add(stream, _program(_WEIGHT, np.ones(2, np.int8), code=b"more code"), {})
    assert first is not None
    assert second is not None
    content = memoryview(stream.getvalue())
    assert len(content) < 2 * _WEIGHT.nbytes
    for added, code in ((first, b"code"), (second, b"more code")):
        file = read_program(content[: added.end])
        np.testing.assert_array_equal(file.arrays[0], _WEIGHT)
        assert {name: bytes(item) for name, item in file.objects.items()} == {"one": code, "two": b"another"}
        assert digest_of(content[: added.end]) == added.digest


def test_what_is_there_stays_as_it_is() -> None:
    """A file that is read already may grow."""
    stream, archive = io.BytesIO(), ProgramArchive()
    archive.add(stream, _program(_WEIGHT), {})
    before = stream.getvalue()
    archive.add(stream, _program(_WEIGHT * 2), {})
    assert stream.getvalue().startswith(before)
    assert archive.size_bytes == len(stream.getvalue())


def test_weights_of_the_model_are_named_not_written() -> None:
    """They are read by their names, and must be what they were."""
    stream = io.BytesIO()
    added = ProgramArchive().add(stream, _program(_WEIGHT, _WEIGHT * 2), {block_key(bytes_of(_WEIGHT)): "w"})
    assert added is not None
    content = memoryview(stream.getvalue())[: added.end]
    assert take_program(content).elsewhere == ("w",)
    value = Value("w", constant=Tensor.from_array(_WEIGHT))
    np.testing.assert_array_equal(read_program(content, [value]).arrays[0], _WEIGHT)
    with pytest.raises(EPFail, match="needs the weight 'w' of the model"):
        read_program(content)
    value.constant = Tensor.from_array(_WEIGHT.reshape(5, -1))
    np.testing.assert_array_equal(read_program(content, [value]).arrays[0], _WEIGHT)
    value.constant = Tensor.from_array(_WEIGHT[:, 1:])
    with pytest.raises(EPFail, match=r"'w' is float32\[20, 29\], but float32\[20, 30\] was compiled; give the model"):
        read_program(content, [value])
    value.constant = Tensor.from_array(_WEIGHT + 1)
    with pytest.raises(EPFail, match="'w' has other elements than when it was compiled; give the model"):
        read_program(content, [value])


def test_weights_may_be_narrower_in_the_model() -> None:
    """They are converted as they were when they were compiled."""
    narrow = (_WEIGHT / 7).astype(np.float16)
    stream = io.BytesIO()
    added = ProgramArchive().add(stream, _program(narrow.astype(np.float32)), {block_key(bytes_of(narrow.astype(np.float32))): "w"})
    assert added is not None
    value = Value("w", constant=Tensor.from_array(narrow))
    (found,) = read_program(memoryview(stream.getvalue())[: added.end], [value]).arrays
    np.testing.assert_array_equal(found, narrow.astype(np.float32))
    assert found.dtype == np.float32


def test_objects_are_never_taken_for_weights() -> None:
    """Machine code comes from where it was checked."""
    stream = io.BytesIO()
    added = ProgramArchive().add(stream, _program(code=b"code"), {block_key(memoryview(b"code")): "w"})
    assert added is not None
    assert bytes(read_program(memoryview(stream.getvalue())[: added.end]).objects["one"]) == b"code"


def test_bytes_of_another_kind_are_left_to_the_caller() -> None:
    """Nothing is written."""
    stream = io.BytesIO()
    assert ProgramArchive().add(stream, memoryview(b"something else"), {}) is None
    assert stream.getvalue() == b""


def test_a_damaged_program_is_not_written() -> None:
    """It is an error at once, not when it is loaded."""
    changed = bytearray(_program(_WEIGHT))
    changed[changed.index(b"code")] ^= 1
    with pytest.raises(EPFail, match="some of its bytes changed"):
        ProgramArchive().add(io.BytesIO(), memoryview(bytes(changed)), {})
