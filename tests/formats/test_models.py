"""Models of any format: sessions, pickles, the cache of decisions and the command line take them all."""

import contextlib
import dataclasses
import io
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.models import model as model_of
from support.toy_format import TOY, content_of

import sardonyx as ort
from sardonyx.formats import models
from sardonyx.formats.model_format import ModelFile
from sardonyx.formats.registry import register_format, unregister_format
from sardonyx.ir import Model


@contextlib.contextmanager
def _registered(added: object) -> Iterator[None]:
    register_format(added)  # type: ignore[arg-type]  # wrong on purpose
    try:
        yield
    finally:
        unregister_format(added)  # type: ignore[arg-type]  # wrong on purpose


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Path]:
    """Provide a file of the format, under a name that says nothing."""
    path = tmp_path / "model.onnx"
    path.write_bytes(content_of([1, 2]))
    with _registered(TOY):
        yield path


def _y(session: ort.InferenceSession, x: object) -> object:
    return session.run(None, {"x": np.asarray(x, np.float32)})[0].tolist()


def test_a_session_reads_any_format(toy: Path) -> None:
    """From a path, bytes and an open file."""
    content = toy.read_bytes()
    for given in (toy, str(toy), content, bytearray(content), io.BytesIO(content)):
        assert _y(ort.InferenceSession(given), [1, 1]) == [2, 3]


def test_a_session_of_any_format_is_pickled(toy: Path) -> None:
    """By its path."""
    assert _y(pickle.loads(pickle.dumps(ort.InferenceSession(toy))), [0, 0]) == [1, 2]


def test_errors_have_the_path(tmp_path: Path) -> None:
    """And what the format says."""
    path = tmp_path / "short"
    path.write_bytes(content_of([1, 2])[:-1])
    with _registered(TOY), pytest.raises(ort.InvalidGraph, match=r"short'?: .*2 floats do not fit the file"):
        ort.InferenceSession(path)


def test_a_format_that_fails_is_named() -> None:
    """Whatever it raises, and where it returns no model."""

    def fails(file: ModelFile) -> Model:
        raise KeyError("x")

    with (
        _registered(dataclasses.replace(TOY, load=fails)),
        pytest.raises(ort.Fail, match="the format TOY failed to read it: .*'x'"),
    ):
        models.load(content_of([1]))
    nothing = dataclasses.replace(TOY, load=lambda file: None)  # type: ignore[arg-type,return-value]  # wrong on purpose
    with _registered(nothing), pytest.raises(ort.Fail, match="the format TOY returned NoneType"):
        models.load(content_of([1]))


def test_the_file_is_watched(toy: Path) -> None:
    """A model that changed since the session was made is an error where it is read again."""
    session = ort.InferenceSession(toy)
    toy.write_bytes(content_of([5, 5, 5]))
    with pytest.raises(ort.Fail):
        session.get_intermediates()


def test_large_data_has_numbers(tmp_path: Path) -> None:
    """By which the cache of decisions finds it in the file again."""
    path = tmp_path / "large"
    path.write_bytes(content_of(np.arange(20_000)))
    with _registered(TOY):
        model = models.load(path)
    weight = model.graph.initializers["w"].constant
    assert weight is not None
    assert model.placed == {weight: 0}
    assert weight.numpy()[-1] == 19_999


def test_a_model_is_saved_by_suffix_and_by_name(tmp_path: Path) -> None:
    """What the format cannot express is returned."""
    with _registered(TOY):
        model = models.load(content_of([4]))
        assert [loss.where for loss in models.save(model, tmp_path / "m.toy")] == ["graph"]
        assert models.save(model, tmp_path / "m.onnx") == ()
        models.save(model, tmp_path / "named.onnx", "TOY")
    assert (tmp_path / "m.toy").read_bytes() == (tmp_path / "named.onnx").read_bytes() == content_of([4])
    assert len(models.load(tmp_path / "m.onnx").graph) == 1


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """With the path."""
    with _registered(TOY):
        model = models.load(content_of([4]))
        with pytest.raises(ort.Fail, match="cannot be saved as .*none/m.toy"):
            models.save(model, tmp_path / "none" / "m.toy")


def test_onnx_is_what_nobody_recognises(tmp_path: Path) -> None:
    """Also where formats are registered."""
    path = tmp_path / "m.bin"
    models.save(model_of("graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}"), path)
    with _registered(TOY):
        assert [node.op_type for node in models.load(path).graph] == ["Relu"]
        with pytest.raises(ort.InvalidProtobuf, match="looks like text"):
            models.load(b"hello, this is a text\n")
