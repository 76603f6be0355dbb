"""Where elements of weights are found again."""

from pathlib import Path

import numpy as np
import pytest
from support.models import model

from sardonyx.errors import InvalidArgument, InvalidGraph
from sardonyx.formats.models import load
from sardonyx.formats.onnx import save
from sardonyx.formats.opened import open_model
from sardonyx.session.decisions.elements import Elements

_TEXT = (
    "graph(x: float[4]) -> (y: float[4]) { w: float[4] = [1, 2, 3, 4]\n v: float[20000] = ... 3\n a = Mul(x, w)\n y = Add(a, w) }"
)


@pytest.mark.parametrize("is_external", [False, True])
def test_elements_are_found_where_the_model_has_them(tmp_path: Path, is_external: bool) -> None:
    """By number in its own file, and by location, offset and length in another."""
    path = tmp_path / "m.onnx"
    save(model(_TEXT), path, external_data=is_external, least_bytes=0)
    found = load(path)
    elements = Elements(open_model(path, path))
    tensors = [tensor for tensor in found.placed if tensor.size_bytes > 0]
    assert tensors
    for tensor in tensors:
        content, offset, size_bytes = elements.find(found.placed[tensor])
        assert bytes(content.read(offset, size_bytes)) == tensor.numpy().tobytes()
    assert dict(elements.stamps) == {other: stamp for other, stamp in found.stamps.items() if other != path}


def test_places_that_are_not_there_are_errors(tmp_path: Path) -> None:
    """As when the model is loaded."""
    path = tmp_path / "m.onnx"
    save(model(_TEXT), path)
    (tmp_path / "m.data").write_bytes(np.zeros(4, np.uint8).tobytes())
    elements = Elements(open_model(path, path))
    with pytest.raises(IndexError):
        elements.find(9)
    with pytest.raises(InvalidGraph, match="cut short"):
        elements.find(("m.data", 0, 5))
    with pytest.raises(InvalidArgument):
        elements.find(("../m.data", 0, 4))
