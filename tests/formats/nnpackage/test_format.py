"""Sessions of NN packages: folders and archives, joined and single models, of any format."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.packages import ADD, MODELS, NEG, SQRT, SQRT_AND_NEG, archive_of, make_package

import sardonyx as ort
from sardonyx.formats.models import load, save
from sardonyx.formats.nnpackage.format import NN_PACKAGE
from sardonyx.ir.text import parse_model
from sardonyx.trace import Event, observe

_PAIR = {"ifm1": np.array([1, 2], np.float32), "ifm2": np.array([3, 7], np.float32)}


def _run(path: object) -> list[object]:
    return [item.tolist() for item in ort.InferenceSession(path).run(None, _PAIR)]


@pytest.mark.parametrize("kind", ["folder", "stored", "deflated", "bytes"])
def test_a_package_is_one_session(tmp_path: Path, kind: str) -> None:
    """The example of the specification with a branch, in a folder, archives, and the bytes of one."""
    package = make_package(tmp_path / "package")
    given: object = package
    if kind != "folder":
        archive = archive_of(package, tmp_path / "a.bin", zipfile.ZIP_STORED if kind == "stored" else zipfile.ZIP_DEFLATED)
        given = archive.read_bytes() if kind == "bytes" else archive
    assert _run(given) == [[2, 3], [-4, -9]]


def test_several_models_without_ends_are_run_by_the_first(tmp_path: Path) -> None:
    """As the specification has it for older manifests; the others may even be missing."""
    manifest = {"major-version": "1", "models": ["add.onnx", "gone.tflite"], "model-types": ["onnx", "tflite"]}
    assert _run(make_package(tmp_path / "p", manifest, {"add.onnx": ADD})) == [[4, 9]]


def test_models_are_joined_by_the_names_of_tensors(tmp_path: Path) -> None:
    """Where the manifest names a file of connections."""
    manifest = {**SQRT_AND_NEG, "connection": "c.json"}
    for key in ("pkg-inputs", "pkg-outputs", "model-connect"):
        del manifest[key]
    parts = [
        {"file": "add.onnx", "inputs": ["ifm1", "ifm2"], "outputs": ["add"]},
        {"file": "sqrt.onnx", "inputs": ["add"], "outputs": ["ofm1"]},
        {"file": "neg.onnx", "inputs": ["add"], "outputs": ["ofm2"]},
    ]
    source = {"file": "all.circle", "inputs": ["ifm1", "ifm2"], "outputs": ["ofm2", "ofm1"]}
    text = json.dumps({"source": source, "parts": parts})
    assert _run(make_package(tmp_path / "p", manifest, c_json=text)) == [[-4, -9], [2, 3]]
    for change, message in (
        ({"parts": parts[:1]}, "no part makes the output 'ofm2'"),
        ({"parts": [{**parts[0], "file": "x.onnx"}]}, "the manifest has no model 'x.onnx'"),
    ):
        wrong = json.dumps({"source": source, "parts": parts} | change)
        (tmp_path / "p" / "metadata" / "c.json").write_text(wrong)
        with pytest.raises(ort.InvalidGraph, match=message):
            load(tmp_path / "p")


def test_models_may_be_of_different_formats(tmp_path: Path) -> None:
    """Each is recognised by its content."""
    package = make_package(tmp_path / "p")
    save(parse_model(f"opset 21\n{SQRT}"), package / "s.ort")
    (package / "s.ort").replace(package / "sqrt.onnx")
    assert _run(package) == [[2, 3], [-4, -9]]


def test_a_configuration_places_operations(tmp_path: Path) -> None:
    """One for all models, or one for each."""
    one = make_package(tmp_path / "one", {**SQRT_AND_NEG, "configs": ["a.cfg"]}, a_cfg="OP_BACKEND_Neg=reference\n")
    places = {item.op_type: item.provider for item in ort.InferenceSession(one).explain()}
    assert places == {"Add": "CPUExecutionProvider", "Sqrt": "CPUExecutionProvider", "Neg": "ReferenceExecutionProvider"}
    configs = {"configs": ["a.cfg", "b.cfg", "a.cfg"]}
    each = make_package(tmp_path / "each", {**SQRT_AND_NEG, **configs}, a_cfg="BACKENDS=reference", b_cfg='BACKENDS="acl_cl"')
    places = {item.op_type: item.provider for item in ort.InferenceSession(each).explain()}
    assert places == {
        "Add": "ReferenceExecutionProvider",
        "Sqrt": "CPUExecutionProvider",
        "Neg": "ReferenceExecutionProvider",
    }


def test_a_change_of_any_file_is_noticed(tmp_path: Path) -> None:
    """Where the model is read again."""
    package = make_package(tmp_path / "p")
    assert {path.name for path in load(package).stamps} == {"MANIFEST", *MODELS}
    session = ort.InferenceSession(package)
    save(parse_model(f"opset 21\n{NEG.replace('Neg', 'Identity')}"), package / "neg.onnx")
    with pytest.raises(ort.Fail):
        session.get_intermediates()


@pytest.mark.parametrize(
    ("manifest", "error", "message"),
    [
        ({"models": ["../a"], "model-types": ["onnx"]}, ort.InvalidArgument, "no file below it"),
        ({"models": ["none"], "model-types": ["onnx"]}, ort.NoSuchFile, "none"),
        ({"models": ["add.onnx"], "model-types": ["onnx"], "configs": ["/a"]}, ort.InvalidArgument, "no file below it"),
        (
            {"models": ["metadata/MANIFEST"], "model-types": ["onnx"]},
            ort.InvalidProtobuf,
            "model 'metadata/MANIFEST' of the package",
        ),
    ],
)
def test_what_is_wrong_in_a_package_is_said(
    tmp_path: Path, manifest: dict[str, object], error: type[Exception], message: str
) -> None:
    """With the package and the model."""
    package = make_package(tmp_path / "p", manifest)
    with pytest.raises(error, match=message):
        ort.InferenceSession(package)


def test_packages_hold_no_packages(tmp_path: Path) -> None:
    """That could go on without end."""
    package = make_package(tmp_path / "p")
    archive_of(package, package / "neg.onnx")
    with pytest.raises(ort.InvalidGraph, match=r"model 'neg.onnx' of the package is an archive itself"):
        load(package)


@pytest.mark.parametrize("name", ["out", "out.nnpackage", "out.zip"])
def test_a_package_is_written_around_a_model(tmp_path: Path, name: str) -> None:
    """With the model in ONNX's format; what stood there before is replaced."""
    model = parse_model(f"opset 21\n{ADD}")
    for _ in range(2):
        assert save(model, tmp_path / name, "NNPackage") == ()
    assert _run(tmp_path / name) == [[4, 9]]
    assert [item.name for item in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("kind", ["file", "bytes"])
def test_large_weights_of_a_small_archive_are_read(tmp_path: Path, kind: str) -> None:
    """Of one that is not compressed, which is in memory as a whole."""
    text = "graph(x: float[n, 4]) -> (y: float[n, 9000]) { w: float[4, 9000] = ... 3\n y = MatMul(x, w) }"
    model, path = parse_model(f"opset 21\n{text}"), tmp_path / "m.zip"
    save(model, path)
    feed, plain = {"x": np.eye(4, dtype=np.float32)}, tmp_path / "m.onnx"
    save(model, plain)
    found = ort.InferenceSession(path if kind == "file" else path.read_bytes()).run(None, feed)
    assert found[0].tobytes() == ort.InferenceSession(plain).run(None, feed)[0].tobytes()


def test_other_archives_and_folders_are_no_packages(tmp_path: Path) -> None:
    """Without a manifest."""
    (tmp_path / "f").mkdir()
    with pytest.raises(ort.InvalidArgument, match="is a folder"):
        load(tmp_path / "f")
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(ort.InvalidProtobuf, match="a ZIP archive"):
        load(tmp_path / "z")
    assert NN_PACKAGE.suffixes == (".nnpackage", ".zip")


def test_a_configuration_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    """As in onert; an event names it."""
    package = make_package(tmp_path / "one", {**SQRT_AND_NEG, "configs": ["missing.cfg"]})
    events: list[Event] = []
    with observe(events.append):
        session = ort.InferenceSession(package)
    assert {item.provider for item in session.explain()} == {"CPUExecutionProvider"}
    found = [event.details["file"] for event in events if event.name == "nnpackage.no_config"]
    assert set(found) == {"metadata/missing.cfg"}
