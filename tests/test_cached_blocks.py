"""Files with a head and a block."""

import os
from pathlib import Path

import pytest

from sardonyx.cached_blocks import pieces_of, read_blocks

_KEY = "ab" * 32
_BLOCK = bytes(range(256)) * 5000
_HEADER = 8 + 32 + 64 + 8 + 8 + 32


def _allocate(size_bytes: int) -> memoryview:
    return memoryview(bytearray(size_bytes))


def _content(head: bytes = b"head", *blocks: bytes) -> bytes:
    return b"".join(pieces_of(_KEY, head, [memoryview(block) for block in blocks]))


def _read(path: Path, content: bytes, key: str = _KEY) -> tuple[bytes, bytes] | None:
    path.write_bytes(content)
    with path.open("rb", buffering=0) as stream:
        found = read_blocks(stream, key, _allocate)
    return None if found is None else (found[0], bytes(found[1]))


@pytest.mark.parametrize("blocks", [(), (b"",), (b"abc",), (_BLOCK, b"", b"def")])
def test_what_was_written_is_read(tmp_path: Path, blocks: tuple[bytes, ...]) -> None:
    """Blocks lie one behind the other, without gaps."""
    assert _read(tmp_path / "f", _content(b"head", *blocks)) == (b"head", b"".join(blocks))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 100_000])
def test_the_block_is_aligned(tmp_path: Path, size: int) -> None:
    """It begins at a multiple of 64, whatever the head is."""
    content = _content(bytes(size), b"xyz")
    assert (len(content) - 3) % 64 == 0
    assert _read(tmp_path / "f", content) == (bytes(size), b"xyz")


def test_another_key_is_refused(tmp_path: Path) -> None:
    """A file that was renamed holds something else."""
    assert _read(tmp_path / "f", _content(), "cd" * 32) is None


def test_every_byte_counts(tmp_path: Path) -> None:
    """A change of any byte but those that fill up is seen; of these it changes nothing."""
    head, block = b"head" * 5, b"block" * 9
    whole = _content(head, block)
    fill = range(_HEADER + len(head), len(whole) - len(block))
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x10
        assert _read(tmp_path / "f", bytes(changed)) == ((head, block) if place in fill else None), place


def test_a_file_that_is_too_short_or_too_long_is_refused(tmp_path: Path) -> None:
    """Its size is in its head, so that no more memory is asked for than the file has."""
    whole = _content(b"head", _BLOCK)
    for content in (b"", whole[:20], whole[:_HEADER], whole[:-1], whole + b"x"):
        assert _read(tmp_path / "f", content) is None


def test_a_file_that_ends_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its size was."""
    whole = _content(b"head", _BLOCK)
    status = os.stat_result((0, 0, 0, 0, 0, 0, len(whole), 0, 0, 0))
    (tmp_path / "f").write_bytes(whole[:-100])
    with (tmp_path / "f").open("rb", buffering=0) as stream:
        monkeypatch.setattr(os, "fstat", lambda descriptor: status)
        assert read_blocks(stream, _KEY, _allocate) is None
