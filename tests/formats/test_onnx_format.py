"""ONNX as one format among others."""

from pathlib import Path

from sardonyx.formats.files import MemoryContent
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.onnx_format import ONNX
from sardonyx.ir.text import parse_model, print_model

_TEXT = "opset 21\ngraph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}"


def test_a_model_is_written_and_read(tmp_path: Path) -> None:
    """From a file, and from its bytes."""
    path = tmp_path / "m.onnx"
    assert ONNX.save is not None
    assert ONNX.save(parse_model(_TEXT), path) == ()
    content = path.read_bytes()
    from_bytes = ONNX.load(ModelFile(None, MemoryContent(memoryview(content))))
    from_path = ONNX.load(ModelFile(path, MemoryContent(memoryview(content))))
    assert print_model(from_bytes) == print_model(from_path)
    assert [node.op_type for node in from_path.graph] == ["Relu"]
