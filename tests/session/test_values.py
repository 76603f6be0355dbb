"""What a session tells of its model."""

from __future__ import annotations

from support.models import model

from sardonyx import InferenceSession
from sardonyx.dtypes import DataType
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import TensorType, Value
from sardonyx.session.values import NodeArg, completed, metadata_of, node_arg


def test_dimensions_are_sizes_names_or_none() -> None:
    """A symbol shows its name, an unknown dimension None."""
    held = model("graph(x: float[batch, 3, ?]) -> (x) {\n}")
    assert node_arg(held.graph.inputs[0]) == NodeArg("x", "tensor(float)", ["batch", 3, None])


def test_types_are_printed_as_onnxruntime_does() -> None:
    """Sequences and maps nest."""
    held = model("graph(x: seq(map(int64, float[])), s: string[]) -> (x) {\n}")
    assert [node_arg(value).type for value in held.graph.inputs] == ["seq(map(int64,tensor(float)))", "tensor(string)"]


def test_metadata_comes_from_the_file() -> None:
    """Every field has its counterpart in the model."""
    held = model("graph(x: float[]) -> (x) {\n}")
    held.producer_name, held.version, held.metadata = "maker", 3, {"a": "b"}
    found = metadata_of(held)
    assert (found.producer_name, found.version, found.custom_metadata_map, found.graph_name) == ("maker", 3, {"a": "b"}, "main")


def test_what_an_output_leaves_open_is_inferred() -> None:
    """Types, sizes and names of symbols; a size that is computed has no name, and what is declared stays."""
    text = """graph(x: float[n, k]) -> (t, y, z, d: float[batch, ?]) {
        t = Transpose(x) {perm = [1, 0]}
        y = Concat(t, t) {axis = 0}
        z = NonZero(x)
        d = Relu(x)
    }"""
    found = [(item.type, item.shape) for item in InferenceSession(to_bytes(model(text))).get_outputs()]
    assert found[:2] == [("tensor(float)", ["k", "n"]), ("tensor(float)", [None, "n"])]
    assert found[2:] == [("tensor(int64)", [2, None]), ("tensor(float)", ["batch", "k"])]


def test_an_output_of_unknown_rank_stays_open() -> None:
    """Its type is known."""
    (found,) = completed([NodeArg("y", "tensor(float)", [])], [TensorType(DataType.FLOAT, None)], [Value("y", None)])
    assert (found.type, found.shape) == ("tensor(float)", [])


def test_arguments_can_be_members_of_sets() -> None:
    """Equal ones are one."""
    assert len({NodeArg("x", "tensor(float)", [1]), NodeArg("x", "tensor(float)", [1])}) == 1


def test_metadata_can_be_changed() -> None:
    """By who asked for it."""
    metadata = metadata_of(model("graph(x: float[]) -> (x) {\n}"))
    metadata.producer_name = "mine"
    metadata.custom_metadata_map = {"a": "b"}
    assert (metadata.producer_name, metadata.custom_metadata_map) == ("mine", {"a": "b"})
