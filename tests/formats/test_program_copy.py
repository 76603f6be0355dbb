"""Compiled partitions taken out of memory that others may change."""

from __future__ import annotations

import io

import numpy as np
import pytest
from support.cancelling import ended_by
from support.models import graph

from sardonyx.cancellation import Flag
from sardonyx.errors import EPFail, RunTerminated
from sardonyx.formats.program_archive import ProgramArchive, block_key
from sardonyx.formats.program_copy import Compared, TakenProgram, take_program
from sardonyx.formats.program_file import aligned, bytes_of, digest_of, head_of, read_program, write_program
from sardonyx.ir import Tensor, Value

_TEXT = "graph(x: float[n]) -> (y: float[n]) { y = Relu(x) }"
_WEIGHT = np.arange(300_000, dtype=np.float32)
_INDICES = np.arange(3000, dtype=np.int64)


def _written() -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """A program in memory that is aligned, as that of a mapped file is."""
    arrays = [np.array([1, -1], np.int64), _WEIGHT, np.zeros((9, 9), np.float32), _INDICES]
    content = write_program({"made": "here"}, graph(_TEXT), arrays, absent=[2], objects={"one": b"code"})
    return aligned(np.frombuffer(content, np.uint8))


def _arrays(taken: TakenProgram) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return list(read_program(taken.content, taken.weights).arrays)


@pytest.mark.parametrize("compared", Compared)
def test_what_is_taken_is_what_was_written(compared: Compared) -> None:
    """Objects, arrays and weights, under the digest of what was given."""
    content = _written()
    taken = take_program(content.data, compared)
    file = read_program(taken.content, taken.weights)
    assert taken.digest == digest_of(content.data)
    assert bytes(file.objects["one"]) == b"code"
    assert file.absent == {2}
    assert [array.tolist() for array in file.arrays] == [[1, -1], _WEIGHT.tolist(), np.zeros((9, 9)).tolist(), _INDICES.tolist()]


def test_what_is_changed_afterwards_is_not_seen() -> None:
    """But for weights, which are views."""
    content = _written()
    taken = take_program(content.data)
    content[:] = 0
    file = read_program(taken.content, taken.weights)
    assert bytes(file.objects["one"]) == b"code"
    assert [file.arrays[index].tolist() for index in (0, 3)] == [[1, -1], _INDICES.tolist()]
    assert not file.arrays[1].any()


def test_weights_that_are_taken_whole_are_not_changed_either() -> None:
    """They are copied, and the copy is compared."""
    content = _written()
    taken = take_program(content.data, Compared.ALL)
    content[:] = 0
    assert _arrays(taken)[1].tolist() == _WEIGHT.tolist()


@pytest.mark.parametrize("array", [_INDICES, np.array([1, -1], np.int64)])
def test_an_array_that_may_decide_addresses_is_under_the_digest(array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
    """However large it is."""
    content = _written()
    begin = content.tobytes().index(array.tobytes())
    for place in range(begin, begin + array.nbytes, 97):
        content[place] ^= 1
        with pytest.raises(EPFail, match="a compiled partition is damaged .*some of its bytes changed"):
            take_program(content.data)
        content[place] ^= 1
    take_program(content.data)


_CODE = "0" * 64


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (["int64", [3000], 0, 24_000, _CODE, _CODE, _CODE], r"an array of int64\[3000\] is not under the digest"),
        (["int64", [3000], "name", 7], r"an array of int64\[3000\] is not under the digest"),
        (["float", [100], 0, 400, _CODE, _CODE, _CODE], r"an array of float\[100\] is not under the digest"),
        (["float", [1000], 0, 4000, _CODE], r"an array of float\[1000\] is not under the digest"),
        (["float", [1000], 0], r"an array of float\[1000\] is not under the digest"),
        (["float", [1000], 1 << 40, 4000, _CODE, _CODE, _CODE], "lie outside of its"),
        (["float", [1000], 0, 4004, _CODE, _CODE, _CODE], r"an array of float\[1000\] has 4004 bytes"),
        (["float", "shape", 0, 4000, _CODE, _CODE, _CODE], "TypeError"),
        ([[], [], 0, 4000, _CODE, _CODE, _CODE], "AttributeError"),
        ("texts!", "KeyError"),
        (None, "TypeError"),
    ],
)
def test_a_header_that_calls_other_arrays_weights_is_an_error(entry: object, message: str) -> None:
    """Also where the digest is right: it is no secret. So is one of another form."""
    content = bytes(np.arange(8000, dtype=np.float32))
    program = head_of({"about": {}, "graph": _TEXT, "objects": {}, "arrays": [entry]}, ())
    with pytest.raises(EPFail, match=f"a compiled partition is damaged .*{message}"):
        take_program(memoryview(content + program))


@pytest.mark.parametrize("compared", [Compared.ALL, Compared.SUMS])
def test_one_changed_byte_of_a_weight_is_found(compared: Compared) -> None:
    """By the digest and by sums; samples find what changes much: a weight of another file, one cut short, or blocks of zeros."""
    content = _written()
    begin = content.tobytes().index(_WEIGHT.tobytes())
    for place in (*range(begin, begin + _WEIGHT.nbytes, 99_991), begin + _WEIGHT.nbytes - 1):
        content[place] ^= 1
        with pytest.raises(EPFail, match=r"other elements in its weight 1, float\[300000\], than it was written with"):
            take_program(content.data, compared)
        content[place] ^= 1
    content[begin + 30_000] ^= 1
    take_program(content.data, Compared.SAMPLES)
    content[begin : begin + 4096] = 0
    with pytest.raises(EPFail, match="other elements in its weight 1"):
        take_program(content.data, Compared.SAMPLES)


def test_pages_of_a_weight_that_changed_places_are_found() -> None:
    """Sums are of 4 KiB each, in their order."""
    content = _written()
    begin = content.tobytes().index(_WEIGHT.tobytes())
    first, second = content[begin : begin + 4096].copy(), content[begin + 4096 : begin + 8192].copy()
    content[begin : begin + 4096], content[begin + 4096 : begin + 8192] = second, first
    with pytest.raises(EPFail, match="other elements in its weight 1"):
        take_program(content.data)


def test_comparing_large_weights_is_ended() -> None:
    """By whatever ends the load."""
    content = write_program({}, graph(_TEXT), [np.zeros(5 << 20, np.float32)])
    with ended_by(Flag(True)), pytest.raises(RunTerminated):
        take_program(memoryview(content))


@pytest.mark.parametrize("size", [2048, 9000])
def test_every_byte_of_few_weights_is_compared(size: int) -> None:
    """Up to 1 MiB in all."""
    weight = np.ones(size, np.float32)
    content = bytearray(write_program({}, graph(_TEXT), [weight]))
    begin = content.index(weight.tobytes())
    for place in range(begin, begin + weight.nbytes, 61):
        content[place] ^= 1
        with pytest.raises(EPFail, match="other elements in its weight 0"):
            take_program(memoryview(content))
        content[place] ^= 1
    take_program(memoryview(content))


def test_weights_of_the_model_are_named() -> None:
    """No weight of the file gets the name of one of them."""
    stream = io.BytesIO()
    content = memoryview(write_program({}, graph(_TEXT), [_WEIGHT, _WEIGHT * 2]))
    ProgramArchive().add(stream, content, {block_key(bytes_of(_WEIGHT)): "#1"})
    taken = take_program(memoryview(stream.getvalue().rstrip(b"\0")))
    assert taken.elsewhere == ("#1",)
    assert [value.name for value in taken.weights] == ["##1"]
    given = Value("#1", constant=Tensor.from_array(_WEIGHT))
    arrays = read_program(taken.content, [*taken.weights, given]).arrays
    assert [array.tolist() for array in arrays] == [_WEIGHT.tolist(), (_WEIGHT * 2).tolist()]


def test_bytes_of_another_kind_are_copied_and_digested_whole() -> None:
    """What a provider writes in a form of its own may hold anything anywhere."""
    content = bytearray(b"some other program")
    taken = take_program(memoryview(content))
    content[:] = bytes(len(content))
    assert (bytes(taken.content), taken.weights) == (b"some other program", ())
    assert taken.digest == digest_of(memoryview(b"some other program"))
