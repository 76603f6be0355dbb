"""Where a model comes from, and what is kept of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from support.models import model

from sardonyx.errors import Fail
from sardonyx.formats.onnx import load, save, to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.source import Source

TEXT = "graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}"
LOAD = read_settings(SessionOptions()).load


def test_every_kind_can_be_read_twice(tmp_path: Path) -> None:
    """Also a file object, and a model, which stays as it is."""
    save(model(TEXT), tmp_path / "m.onnx")
    content = (tmp_path / "m.onnx").read_bytes()
    for given in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), content, io.BytesIO(content), load(content)):
        source = Source.of(given)
        for _ in range(2):
            found = source.read(LOAD)
            assert [node.op_type for node in found.graph] == ["Relu"]
            found.graph.dismantle()


def test_a_path_is_always_kept(tmp_path: Path) -> None:
    """It is small."""
    source = Source.of(tmp_path)
    assert source.kept(for_variants=False, for_failures=False) is source


def test_small_bytes_are_kept() -> None:
    """They are worth no care."""
    source = Source.of(to_bytes(model(TEXT)))
    assert source.kept(for_variants=False, for_failures=False) is source


def test_large_bytes_are_kept_where_they_are_needed() -> None:
    """They are as large as the model."""
    source = Source.of(bytes((1 << 20) + 1))
    assert source.kept(for_variants=False, for_failures=False) is None
    assert source.kept(for_variants=True, for_failures=False) is source
    assert source.kept(for_variants=False, for_failures=True) is source


def test_what_was_read_from_a_file_object_is_kept_for_failures_only() -> None:
    """Nobody else holds these bytes."""
    source = Source.of(io.BytesIO(to_bytes(model(TEXT))))
    assert source.kept(for_variants=True, for_failures=False) is None
    assert source.kept(for_variants=False, for_failures=True) is source


def test_a_file_that_has_changed_is_told(tmp_path: Path) -> None:
    """Once it is known what it was."""
    path = tmp_path / "m.onnx"
    save(model(TEXT), path)
    source = Source.of(path)
    source.check()
    again = source.after(source.read(LOAD).stamps)
    again.check()
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(Fail, match="was replaced or written to"):
        again.check()


def test_the_functions_of_a_model_are_copied_too() -> None:
    """What becomes of the copy does not concern the caller's."""
    given = parse_model(
        """ir_version 10
        opset 21
        opset local 1
        graph main(x: float[2]) -> (y: float[2]) {
            y = local.Twice(x)
        }
        function local.Twice(a) -> (b) {
            opset 21
            b = Add(a, a)
        }"""
    )
    found = Source.of(given).read(LOAD)
    assert found.functions.keys() == given.functions.keys()
    found.dismantle()
    assert [len(function.graph) for function in given.functions.values()] == [1]


@pytest.mark.parametrize(("size_bytes", "is_large"), [(1 << 10, False), (1 << 16, True)])
def test_models_of_64_kibibytes_may_have_thousands_of_nodes(size_bytes: int, is_large: bool, tmp_path: Path) -> None:
    """As bytes or as a file; one that is not there has none."""
    content = bytes(size_bytes)
    (tmp_path / "model.onnx").write_bytes(content)
    assert Source(content).may_be_large() is is_large
    assert Source(tmp_path / "model.onnx").may_be_large() is is_large
    assert not Source(tmp_path / "none.onnx").may_be_large()
