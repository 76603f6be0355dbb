"""Elements that lie in a file."""

from pathlib import Path

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.files import MemoryContent, open_content
from sardonyx.formats.stored import stored
from sardonyx.ir.tensor import KeptSource

_NUMBERS = np.arange(6, dtype=np.float32)


def test_elements_of_a_large_file_can_be_read_again(tmp_path: Path) -> None:
    """They are no copy of the whole file."""
    path = tmp_path / "data"
    path.write_bytes(bytes(8) + _NUMBERS.tobytes() + bytes(5 << 20))
    source = stored(open_content(path, "file")[0], 8, 24, DataType.FLOAT, (2, 3))
    assert isinstance(source, KeptSource)
    assert source().tolist() == source().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert source.rows(1, 2).tolist() == [[3, 4, 5]]


def test_elements_of_a_small_file_do_not_keep_it_in_memory(tmp_path: Path) -> None:
    """They are copied out of its bytes."""
    path = tmp_path / "data"
    path.write_bytes(_NUMBERS.tobytes() + bytes(1000))
    array = stored(open_content(path, "file")[0], 0, 24, DataType.FLOAT, (6,))()
    assert array.tolist() == _NUMBERS.tolist()
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert len(owner) == 24


def test_elements_of_bytes_are_views() -> None:
    """The caller's bytes are not copied."""
    held = _NUMBERS.tobytes()
    array = stored(MemoryContent(memoryview(held)), 0, 24, DataType.FLOAT, (6,))()
    assert np.shares_memory(array, np.frombuffer(held, np.uint8))
