"""What a session tells of its model."""

from __future__ import annotations

from support.models import model

from sardonyx.session.values import NodeArg, metadata_of, node_arg


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
