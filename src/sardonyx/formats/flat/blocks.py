"""A file in blocks, for readers that ask for few bytes at a time: each block is read once."""

from __future__ import annotations

from sardonyx.formats.files import Content, MemoryContent

__all__ = ["BlockContent", "in_blocks"]

_BLOCK_BYTES = 64 << 10


def in_blocks(content: Content) -> Content:
    """Return content of which small pieces cost no call of the system each."""
    return content if isinstance(content, MemoryContent) else BlockContent(content)


class BlockContent:
    """Content whose pieces are taken from blocks that are kept; larger pieces are read as they are."""

    def __init__(self, content: Content, block_bytes: int = _BLOCK_BYTES) -> None:
        """Take the content to read from, and how large a block is."""
        self._content, self._block_bytes = content, block_bytes
        self._blocks: dict[int, memoryview] = {}

    def __len__(self) -> int:
        return len(self._content)

    def read(self, offset: int, size_bytes: int) -> memoryview:
        """Return the bytes [offset, offset + size_bytes), read-only; raises Fail where the file changed."""
        index, inner = divmod(offset, self._block_bytes)
        if inner + size_bytes > self._block_bytes:
            return self._content.read(offset, size_bytes)
        block = self._blocks.get(index)
        if block is None:
            start = index * self._block_bytes
            block = self._blocks[index] = self._content.read(start, min(self._block_bytes, len(self._content) - start))
        return block[inner : inner + size_bytes]
