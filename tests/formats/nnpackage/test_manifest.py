"""What manifests of NN packages say, and what is wrong with one."""

import json

import pytest

from sardonyx.errors import InvalidGraph
from sardonyx.errors import NotImplemented as NotImplementedHere
from sardonyx.formats.nnpackage.manifest import Connection, End, Manifest, read_connections, read_manifest

_ONE = {"major-version": "1", "minor-version": "1", "patch-version": "0", "models": ["add.tflite"], "model-types": ["tflite"]}
_TWO = {
    **_ONE,
    "minor-version": "3",
    "configs": [],
    "models": ["mv1.0.tflite", "mv1.1.tflite"],
    "model-types": ["tflite", "tflite"],
    "pkg-inputs": ["0:0:0"],
    "pkg-outputs": ["1:0:0"],
    "model-connect": [{"from": "0:0:0", "to": ["1:0:0"]}],
}


def _read(table: object) -> Manifest:
    return read_manifest(json.dumps(table).encode())


def test_the_examples_of_the_specification_are_read() -> None:
    """One model with a configuration, and two in a row."""
    one = _read({**_ONE, "configs": ["config.cfg"]})
    assert (one.models, one.types, one.configs, one.inputs) == (("add.tflite",), ("tflite",), ("config.cfg",), ())
    two = _read(_TWO)
    assert two.connections == (Connection(End(0, 0), End(1, 0)),)
    assert (two.inputs, two.outputs) == ((End(0, 0),), (End(1, 0),))


def test_edges_have_two_names() -> None:
    """`model-connect` and `model-edges`."""
    table = {key: value for key, value in _TWO.items() if key != "model-connect"} | {"model-edges": _TWO["model-connect"]}
    assert _read(table).connections == _read(_TWO).connections


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": []}, "models: it names no model"),
        ({"models": ["a"] * 17, "model-types": ["onnx"] * 17}, "models: it names 'a' 17 times; at most 16 are allowed"),
        ({"models": "a"}, "models: expected a list, got 'a'"),
        ({"models": [3, "b"]}, r"models\[0\]: expected a text, got 3"),
        ({"model-types": ["tflite"]}, "model-types: it has 1 types for 2 models"),
        ({"pkg-inputs": []}, "pkg-inputs: it is empty; a package has both or neither"),
        ({"pkg-inputs": ["0:0"]}, r'pkg-inputs\[0\]: expected "MODEL:SUBGRAPH:PLACE", three numbers, got \'0:0\''),
        ({"pkg-inputs": ["5:0:0"]}, r"pkg-inputs\[0\]: there is no model 5; the package has 2"),
        ({"model-connect": [3]}, r"model-connect\[0\]: expected {\"from\": END"),
        ({"model-connect": [{"from": "0:0:0", "to": ["x"]}]}, r"model-connect\[0\].to\[0\]: expected \"MODEL"),
        ({"connection": 3}, "connection: expected the name of a file, got 3"),
    ],
)
def test_a_part_that_is_wrong_is_named(change: dict[str, object], message: str) -> None:
    """With what was expected."""
    with pytest.raises(InvalidGraph, match=f"metadata/MANIFEST: {message}"):
        _read({**_TWO, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"major-version": "2"}, "major-version is '2'; packages of version 1 are read"),
        ({"model-types": ["bin", "tflite"]}, "model 'mv1.0.tflite' is of type 'bin'; tflite, circle, onnx, ort are read"),
        ({"pkg-inputs": ["0:1:0"]}, "subgraph 1 of a model cannot be joined"),
    ],
)
def test_what_is_not_read_is_said(change: dict[str, object], message: str) -> None:
    """Other versions, compiled models, subgraphs."""
    with pytest.raises(NotImplementedHere, match=message):
        _read({**_TWO, **change})


@pytest.mark.parametrize(
    "content", [b'{\n  "major-version" : "1"\n  "minor-version" : "0"\n}', b"\xff", b"[" * 100_000, b"[]", b""]
)
def test_what_is_no_json_is_refused(content: bytes) -> None:
    """The example add_invalid_manifest has no commas."""
    with pytest.raises(InvalidGraph, match="metadata/MANIFEST: (it is no JSON|expected an object)"):
        read_manifest(content)


def test_connections_may_be_by_name() -> None:
    """In a file of their own, before version 1.3."""
    table = {
        "source": {"file": "a.circle", "inputs": ["x"], "outputs": ["y"]},
        "parts": [{"file": "a.0.circle", "inputs": ["x"], "outputs": ["y"]}],
    }
    whole, parts = read_connections(json.dumps(table).encode(), "metadata/a.conn.json")
    assert (whole.inputs, [part.file for part in parts]) == (("x",), ["a.0.circle"])
    for wrong, message in (
        ({**table, "parts": 3}, "parts: expected a list"),
        ({**table, "parts": [3]}, r"parts\[0\]: expected an object"),
        ({**table, "source": {}}, "source: expected a file, and lists of names"),
    ):
        with pytest.raises(InvalidGraph, match=f"metadata/a.conn.json: {message}"):
            read_connections(json.dumps(wrong).encode(), "metadata/a.conn.json")
