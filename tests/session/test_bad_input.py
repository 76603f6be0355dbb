"""What a session says to bad files: a typed error that names the file and what is wrong, and nothing else breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes

GOOD = "graph(x: float[2]) -> (y: float[2]) {\ny = Relu(x)\n}"
X, Y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")


def _model(nodes: list[Any], initializers: Sequence[Any] = (), functions: Sequence[Any] = ()) -> bytes:
    graph = helper.make_graph(nodes, "g", [X], [Y], initializers)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    made = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=9)
    content: bytes = made.SerializeToString()
    return content


def _relu(source: str = "x", result: str = "y", **attributes: Any) -> Any:
    return helper.make_node("Relu", [source], [result], name=f"relu_{result}", **attributes)


def _external(location: str, length: int) -> bytes:
    tensor = TensorProto(name="k", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    return _model([helper.make_node("Add", ["x", "k"], ["y"])], [tensor])


def _short_initializer() -> bytes:
    tensor = TensorProto(name="k", data_type=TensorProto.FLOAT, dims=[2], raw_data=b"\0" * 4)
    return _model([helper.make_node("Add", ["x", "k"], ["y"], name="sum")], [tensor])


def _recursion() -> bytes:
    body = helper.make_node("F", ["a"], ["b"], domain="local")
    function = helper.make_function("local", "F", ["a"], ["b"], [body], [helper.make_opsetid("local", 1)])
    return _model([helper.make_node("F", ["x"], ["y"], domain="local")], functions=[function])


def _wrong_attribute() -> bytes:
    return _model([helper.make_node("Softmax", ["x"], ["y"], name="soft", axis="first")])


CASES: dict[str, tuple[Callable[[], bytes], type[Exception], str]] = {
    "empty": (lambda: b"", ort.InvalidProtobuf, "empty"),
    "text": (lambda: b"hello, this is a text\n", ort.InvalidProtobuf, "looks like text"),
    "truncated": (lambda: to_bytes(model(GOOD))[:-5], ort.InvalidProtobuf, "truncated|bytes"),
    "cycle": (lambda: _model([_relu("b", "a"), _relu("a", "b"), _relu("a", "y")]), ort.InvalidGraph, "cycle"),
    "two producers": (lambda: _model([_relu(), _relu()]), ort.InvalidGraph, "'y'|\"y\""),
    "undeclared input": (lambda: _model([_relu("nowhere")]), ort.InvalidGraph, "nowhere"),
    "unknown operator": (lambda: _model([helper.make_node("Reluu", ["x"], ["y"], name="odd")]), ort.InvalidGraph, "odd.*Relu"),
    "unknown domain": (lambda: _model([helper.make_node("A", ["x"], ["y"], domain="z.z")]), ort.InvalidGraph, "z.z"),
    "attribute type": (_wrong_attribute, ort.InvalidGraph, "soft.*axis"),
    "initializer size": (_short_initializer, ort.InvalidGraph, "k.*4"),
    "external missing": (lambda: _external("no-such.bin", 8), ort.NoSuchFile, "no-such.bin"),
    "external short": (lambda: _external("short.bin", 8), ort.InvalidGraph, "short.bin"),
    "external outside": (lambda: _external("../secret.bin", 8), ort.InvalidArgument, "secret.bin"),
    "external absolute": (lambda: _external("/etc/hostname", 8), ort.InvalidArgument, "/etc/hostname"),
    "recursion": (_recursion, ort.InvalidGraph, "local.*F"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_gets_its_error_and_other_sessions_go_on(case: str, tmp_path: Path) -> None:
    """The message names the file; a session made before, and one made after, still run."""
    make, error, message = CASES[case]
    path = tmp_path / "bad.onnx"
    path.write_bytes(make())
    (tmp_path / "short.bin").write_bytes(b"\0" * 3)
    before = ort.InferenceSession(to_bytes(model(GOOD)))
    with pytest.raises(error, match=message) as caught:
        ort.InferenceSession(path)
    assert "bad.onnx" in str(caught.value)
    after = ort.InferenceSession(to_bytes(model(GOOD)))
    for held in (before, after):
        assert held.run(None, {"x": np.float32([-1, 1])})[0].tolist() == [0, 1]


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    """Both name the path."""
    with pytest.raises(ort.SardonyxError, match="folder|directory"):
        ort.InferenceSession(tmp_path)
    with pytest.raises(ort.NoSuchFile, match=r"missing\.onnx"):
        ort.InferenceSession(tmp_path / "missing.onnx")


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """External data stays inside, whatever its name says."""
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"\0" * 8)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.bin").symlink_to(secret)
    (inside / "m.onnx").write_bytes(_external("link.bin", 8))
    with pytest.raises(ort.InvalidArgument, match=r"link\.bin"):
        ort.InferenceSession(inside / "m.onnx")


def test_a_hostile_size_in_a_small_file_asks_for_no_memory() -> None:
    """ConstantOfShape of 2^60 elements is refused, not attempted."""
    held = ort.InferenceSession(to_bytes(model("graph(n: int64[1]) -> (y: float[m]) {\ny = ConstantOfShape(n) @huge\n}")))
    with pytest.raises((ort.InvalidArgument, ort.RuntimeException), match="huge"):
        held.run(None, {"n": np.int64([1 << 60])})


def test_onnx_is_the_package_that_made_these_files() -> None:
    """A ModelProto is taken as it is."""
    held = ort.InferenceSession(onnx.load_model_from_string(to_bytes(model(GOOD))))
    assert held.run(None, {"x": np.float32([-1, 1])})[0].tolist() == [0, 1]


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
@pytest.mark.parametrize(("opset", "call"), [(13, "Trilu(x)"), (11, "Gelu(x)"), (6, "Erf(x)")])
def test_an_operator_of_a_later_opset_is_refused(provider: str, opset: int, call: str) -> None:
    """Whoever would run it, as in onnxruntime: nothing says what it means in this opset."""
    text = f"graph(x: float[2, 2]) -> (y) {{\ny = {call}\n}}"
    with pytest.raises(ort.InvalidGraph, match="exists only from opset"):
        ort.InferenceSession(to_bytes(model(text, opset=opset)), providers=[provider])


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
@pytest.mark.parametrize(
    ("domain", "op_type"), [("", "LayerNormalization"), ("com.microsoft", "Gelu"), ("ai.onnx.ml", "Normalizer")]
)
@pytest.mark.parametrize("opset", [0, -1])
def test_an_opset_before_the_first_has_no_operators(domain: str, op_type: str, opset: int, provider: str) -> None:
    """Nothing says what shape their results have: what the file declares would be believed."""
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 8]) for name in "xwy"]
    node = helper.make_node(op_type, ["x"] if domain else ["x", "w"], ["y"], domain=domain)
    graph = helper.make_graph([node], "early", values[:2], values[2:])
    early = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=8)
    with pytest.raises(ort.InvalidGraph, match=rf"exists only from opset \d+ of .*, the model imports {opset}"):
        ort.InferenceSession(early.SerializeToString(), providers=[provider])


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
def test_constant_indices_out_of_range_do_not_let_a_declared_shape_be_believed(provider: str) -> None:
    """GatherND of three rows of two, of which the file says that they are one number."""
    constants = [
        numpy_helper.from_array(np.zeros((2, 3, 3), np.float32), "x"),
        numpy_helper.from_array(np.array([[0], [1], [2]]), "i"),
    ]
    node = helper.make_node("GatherND", ["x", "i"], ["y"], "the node")
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    held = ort.InferenceSession(made.SerializeToString(), providers=[provider])
    with pytest.raises(ort.InvalidArgument, match=r"the node.*GatherND"):
        held.run(None, {})
