"""Weights that stay in the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.models import model
from support.sessions import settings_of

from sardonyx import errors
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.program_archive import block_key
from sardonyx.formats.program_file import bytes_of
from sardonyx.ir import Tensor
from sardonyx.session.context.weights import SourceModel, external_infos, name_beside, names_by_content


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model with a large and a small weight."""
    path = tmp_path / "model.onnx"
    nodes = "w: float[16, 32] = ... 1\nb: float[32] = ... 2\nm = MatMul(x, w)\ny = Add(m, b)"
    onnx_format.save(model(f"graph(x: float[n, 16]) -> (y: float[n, 32]) {{\n{nodes}\n}}"), path)
    return path


LOAD = settings_of().load


def test_weights_are_known_by_their_elements(source: Path) -> None:
    """Small ones are not: they are kept in programs."""
    found = names_by_content(source, LOAD)
    weight = onnx_format.load(source).graph.initializers["w"].constant
    assert weight is not None
    assert found == {block_key(bytes_of(weight.numpy())): "w"}


@pytest.mark.parametrize(("kind", "operator"), [("float16", "MatMul"), ("bfloat16", "MatMul"), ("int8", "MatMulInteger")])
def test_narrow_weights_are_known_in_float32_too(kind: str, operator: str, tmp_path: Path) -> None:
    """Providers run them so: float16 where they have no kernels for it, and quantized ones with the scales put off."""
    path = tmp_path / "narrow.onnx"
    text = f"graph(x: {kind}[n, 64]) -> (y: {'int32' if kind == 'int8' else kind}[n, 64]) {{"
    onnx_format.save(model(f"{text} w: {kind}[64, 64] = ... 1 y = {operator}(x, w) }}"), path)
    weight = onnx_format.load(path).graph.initializers["w"].constant
    assert weight is not None
    keys = [block_key(bytes_of(array)) for array in (weight.numpy(), weight.numpy().astype(np.float32))]
    assert names_by_content(path, LOAD) == dict.fromkeys(keys, "w")


def test_the_model_is_found_below_the_context_s_folder_or_by_name(tmp_path: Path) -> None:
    """Folders above are not written into files."""
    assert name_beside(tmp_path / "models" / "a.onnx", tmp_path / "a_ctx.onnx") == "models/a.onnx"
    assert name_beside(tmp_path / "a.onnx", tmp_path / "out" / "a_ctx.onnx") == "a.onnx"


def test_weights_are_read_by_name(source: Path) -> None:
    """From where the node says, or where the user says; one that is not there is left out."""
    for model_given in (SourceModel("", source.parent, LOAD), SourceModel(str(source), None, LOAD)):
        (value,) = model_given.values(["w", "nothing"], "model.onnx")
        assert value.name == "w"
        assert value.constant is not None
        assert value.constant.shape == (16, 32)


def test_a_model_that_is_not_there_is_told_with_the_option(tmp_path: Path) -> None:
    """So is one that nobody names."""
    with pytest.raises(errors.NoSuchFile, match="gone.onnx.* or set the config entry ep.context_source_model_path to where it is"):
        SourceModel("", tmp_path, LOAD).values(["w"], "gone.onnx")
    with pytest.raises(errors.EPFail, match="set the config entry ep.context_source_model_path to its path"):
        SourceModel("", tmp_path, LOAD).values(["w"], "")
    with pytest.raises(errors.NoSuchFile, match="the model that weights are left in"):
        SourceModel(str(tmp_path / "gone.onnx"), None, LOAD).values(["w"], "")


def test_a_node_s_name_for_it_does_not_lead_out_of_the_folder(source: Path) -> None:
    """Only the user's own path does."""
    folder = source.parent / "contexts"
    folder.mkdir()
    for location in ("../model.onnx", str(source)):
        with pytest.raises(errors.InvalidArgument, match="lies outside the model's folder"):
            SourceModel("", folder, LOAD).values(["w"], location)


def test_a_file_that_is_no_model_is_an_error(tmp_path: Path) -> None:
    """It says what it was to be."""
    (tmp_path / "model.onnx").write_bytes(b"no model at all")
    with pytest.raises(errors.InvalidProtobuf, match="the model that weights are left in"):
        SourceModel("", tmp_path, LOAD).values(["w"], "model.onnx")


def test_arrays_equal_those_of_the_model(source: Path) -> None:
    """They are views of the file."""
    (value,) = SourceModel("", source.parent, LOAD).values(["w"], "model.onnx")
    expected = onnx_format.load(source).graph.initializers["w"].constant
    assert value.constant is not None
    assert expected is not None
    np.testing.assert_array_equal(value.constant.numpy(), expected.numpy())


def test_the_model_s_own_data_may_lie_in_a_folder_that_an_option_names(source: Path, tmp_path: Path) -> None:
    """As when the model itself is loaded."""
    folder = tmp_path / "data"
    folder.mkdir()
    onnx_format.save(onnx_format.load(source), source, data_name="weights.bin", least_bytes=0)
    source.with_name("weights.bin").rename(folder / "weights.bin")
    with pytest.raises(errors.NoSuchFile, match="weights.bin"):
        SourceModel(str(source), None, LOAD).values(["w"], "")
    load = settings_of(session__model_external_initializers_file_folder_path=str(folder)).load
    assert [value.name for value in SourceModel(str(source), None, load).values(["w", "b"], "")] == ["w", "b"]


def test_places_of_data_in_other_files_are_told_for_what_is_unchanged(source: Path) -> None:
    """Elsewhere the optimizer has made something else of it, or it lay in the model."""
    onnx_format.save(onnx_format.load(source), source, data_name="weights.bin", least_bytes=1024)
    info_of = external_infos(source, LOAD)
    tensors = {name: value.constant for name, value in onnx_format.load(source).graph.initializers.items()}
    assert tensors["w"] is not None
    assert tensors["b"] is not None
    found = info_of("w", tensors["w"])
    assert found is not None
    assert (found.filepath, found.file_offset, found.byte_size) == ("weights.bin", 0, 16 * 32 * 4)
    assert info_of("b", tensors["b"]) is None
    assert info_of("w", Tensor.from_array(tensors["w"].numpy() + 1)) is None
