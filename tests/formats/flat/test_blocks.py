"""A file in blocks."""

from __future__ import annotations

import pytest

from sardonyx.formats.files import MemoryContent
from sardonyx.formats.flat.blocks import BlockContent, in_blocks

DATA = bytes(range(100))


class Counted(MemoryContent):
    """Content that counts its reads."""

    reads = 0

    def read(self, offset: int, size_bytes: int) -> memoryview:
        self.reads += 1
        return super().read(offset, size_bytes)


@pytest.mark.parametrize(("offset", "size_bytes"), [(0, 4), (14, 2), (14, 4), (16, 16), (5, 60), (98, 2), (96, 4), (3, 0)])
def test_pieces_are_those_of_the_content(offset: int, size_bytes: int) -> None:
    """Within a block, across blocks, larger than blocks, and at the end."""
    blocks = BlockContent(MemoryContent(memoryview(DATA)), block_bytes=16)
    assert bytes(blocks.read(offset, size_bytes)) == DATA[offset : offset + size_bytes]
    assert len(blocks) == 100


def test_a_block_is_read_once() -> None:
    """However many pieces of it are asked for."""
    content = Counted(memoryview(DATA))
    blocks = BlockContent(content, block_bytes=16)
    assert [blocks.read(index, 1)[0] for index in range(32)] == list(range(32))
    assert content.reads == 2


def test_what_is_in_memory_stays_as_it_is() -> None:
    """It needs no blocks."""
    content = MemoryContent(memoryview(DATA))
    assert in_blocks(content) is content
