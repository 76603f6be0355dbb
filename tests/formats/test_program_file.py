"""Compiled partitions in bytes."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from support.models import graph

from sardonyx.errors import EPFail
from sardonyx.formats.program_file import digest_of, read_program, write_program

_TEXT = "graph(x: float[n, ?]) -> (y: float[2*n + 1]) {\na: float[n] = ReduceSum(x)\ny = Concat(a, a, a) {axis = 0}\n}"


def _written() -> bytes:
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(1000, np.int8), np.zeros((0, 4), np.int64)]
    return write_program({"made": "here"}, graph(_TEXT), arrays, absent=[1], objects={"one": b"code", "two": b""})


def test_what_is_written_is_read() -> None:
    """Arrays, objects, the graph with its symbols, and what it is for."""
    file = read_program(memoryview(_written()))
    assert file.about == {"made": "here"}
    assert file.arrays[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert file.arrays[2].shape == (0, 4)
    assert {name: bytes(content) for name, content in file.objects.items()} == {"one": b"code", "two": b""}
    assert [node.op_type for node in file.graph] == ["ReduceSum", "Concat"]
    assert str(file.graph.outputs[0].shape) == str(graph(_TEXT).outputs[0].shape)


def test_an_absent_array_has_a_shape_and_no_memory() -> None:
    """It stands for weights that are there in another form."""
    file = read_program(memoryview(_written()))
    assert file.absent == {1}
    assert (file.arrays[1].shape, file.arrays[1].strides) == ((1000,), (0,))


def test_arrays_are_aligned() -> None:
    """Kernels may load whole vectors from them."""
    content = _written()
    for shift in (0, 1):
        moved = memoryview(b"x" * shift + content)[shift:]
        assert read_program(moved).arrays[0].ctypes.data % 64 == 0


@pytest.mark.parametrize("cut", [0, 5, 40, 200, -1])
def test_incomplete_bytes_are_an_error(cut: int) -> None:
    """Whatever is missing."""
    with pytest.raises(EPFail, match="do not end as one: they were cut short, .*; make the context anew"):
        read_program(memoryview(_written()[:cut]))


def test_a_changed_byte_of_what_is_run_is_an_error() -> None:
    """Header, graph and objects are under the digest."""
    content = _written()
    for place in (*range(content.index(b"code"), content.index(b"code") + 4), *range(content.index(b'{"about"'), len(content), 7)):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(EPFail, match="make the context anew"):
            read_program(memoryview(bytes(changed)))


@pytest.mark.parametrize("entry", [[-64, 4], [0, 1 << 40], [0, -4], [0], "one", None, [0.5, 4]])
def test_places_outside_of_the_bytes_are_an_error(entry: object) -> None:
    """Also where the digest is right: it is no secret."""
    content = _written()
    end = len(content) - 32 - 8 - 11
    begin = end - int.from_bytes(content[-19:-11], "little")
    header = json.loads(content[begin:end])
    header["objects"]["one"] = entry
    text = json.dumps(header).encode()
    digest = hashlib.sha256(text).digest()
    with pytest.raises(EPFail, match="a compiled partition is damaged"):
        read_program(memoryview(content[:begin] + text + digest + len(text).to_bytes(8, "little") + content[-11:]))


def test_equal_programs_have_equal_digests() -> None:
    """The digest is in the bytes."""
    assert digest_of(memoryview(_written())) == digest_of(memoryview(_written()))
    assert digest_of(memoryview(_written())) in _written()
