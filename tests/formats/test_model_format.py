"""Files as formats see them."""

from pathlib import Path

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.formats.files import MemoryContent
from sardonyx.formats.model_format import ModelFile

_CONTENT = MemoryContent(memoryview(b"mark" + np.arange(300, dtype=np.float32).tobytes()))


def test_the_start_is_at_most_512_bytes() -> None:
    """Enough to recognise a file by."""
    assert ModelFile(None, _CONTENT).start == bytes(_CONTENT.read(0, 512))
    assert ModelFile(None, MemoryContent(memoryview(b"ab"))).start == b"ab"


def test_a_tensor_has_the_elements_at_its_place() -> None:
    """Read when they are asked for."""
    tensor = ModelFile(None, _CONTENT).tensor(DataType.FLOAT, (2, 3), 8, 24, "w")
    assert (tensor.name, tensor.numpy().tolist()) == ("w", [[1, 2, 3], [4, 5, 6]])


def test_a_tensor_of_large_data_has_its_number() -> None:
    """By offset and length, which both must fit."""
    file = ModelFile(None, _CONTENT, places={(4, 1200): 7})
    large, other = file.tensor(DataType.FLOAT, (300,), 4, 1200), file.tensor(DataType.FLOAT, (299,), 4, 1196)
    assert file.placed.get(large) == 7
    assert other not in file.placed


def test_files_beside_a_model_are_in_its_folder(tmp_path: Path) -> None:
    """Bytes have none, unless it is given."""
    assert ModelFile(tmp_path / "m.bin", _CONTENT).folder == tmp_path
    assert ModelFile(None, _CONTENT).folder is None
    assert ModelFile(None, _CONTENT, external_dir=tmp_path).folder == tmp_path
    assert ModelFile(tmp_path, _CONTENT).is_folder


def test_messages_call_a_file_by_its_path() -> None:
    """And bytes a model."""
    assert ModelFile(Path("a/m.bin"), _CONTENT).label == "'a/m.bin'"
    assert ModelFile(None, _CONTENT).label == "model"
