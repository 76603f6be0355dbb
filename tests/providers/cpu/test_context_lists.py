"""Long lists of attributes as arrays of a compiled partition's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cpu_run import assert_same_bits
from support.forests import features, forest_model, named_trees

import sardonyx
from sardonyx.errors import EPFail
from sardonyx.formats.onnx import save
from sardonyx.ir import ArrayAttribute, Attribute, AttributeKind, Node
from sardonyx.providers.cpu.context_lists import put_lists, take_lists

VALUES: dict[str, Any] = {
    "ints": tuple(range(-300, 300)),
    "floats": (0.5, float("inf"), -0.0) * 100,
    "strings": ("LEAF", "BRANCH_LEQ") * 200,
    "short": (1, 2),
    "double": (0.1,) * 300,
    "number": 7,
}


def _node() -> Node:
    attributes = {name: Attribute.of(value) for name, value in VALUES.items()}
    attributes["array"] = ArrayAttribute(AttributeKind.INTS, np.arange(3))
    return Node("Custom", [], 1, attributes, version=1)


def test_long_lists_are_taken_out_and_put_back() -> None:
    """Short ones stay, and numbers that no float32 is."""
    node = _node()
    arrays, entries = take_lists([node])
    assert sorted(node.attributes) == ["double", "number", "short"]
    put_lists([node], arrays, entries)
    assert {name: node.attributes[name].value for name in VALUES} == VALUES
    assert node.attributes["array"].value == (0, 1, 2)


@pytest.mark.parametrize(
    "entry",
    [[1, "a", 7, []], [0, "a", 99, []], [0, "a", 6, []], [0, "a", 8, ["x"]], [0, "a", 7, ["x"]], [0, "a", 7], ["0", "a", 7, []]],
)
def test_what_cannot_be_is_an_error(entry: list[object]) -> None:
    """A node, a kind, a type or a text that is not there."""
    dtype = np.int32 if entry[2] == 8 else np.int64
    with pytest.raises(EPFail, match="make the context anew"):
        put_lists([_node()], [np.array([0, 1], dtype)], [entry])


@pytest.mark.parametrize("packed", ["1", "0"])
def test_a_forest_is_loaded_as_it_was_compiled(tmp_path: Path, packed: str) -> None:
    """With lists that are long, for all forms of votes; with weights in the file as without."""
    for votes in ("one", "dense", "list"):
        attributes = named_trees("class", 30, 20, targets=3, votes=votes, missing=True)
        source, made = tmp_path / f"{votes}.onnx", tmp_path / f"{votes}_context.onnx"
        save(forest_model("TreeEnsembleClassifier", attributes), source)
        options = sardonyx.SessionOptions()
        options.add_session_config_entry("ep.context_enable", "1")
        options.add_session_config_entry("ep.context_embed_mode", packed)
        options.add_session_config_entry("ep.context_file_path", str(made))
        first = sardonyx.InferenceSession(source, options)
        second = sardonyx.InferenceSession(made)
        x = features(90, 5, special=True)
        for left, right in zip(first.run(None, {"x": x}), second.run(None, {"x": x}), strict=True):
            assert_same_bits(left, right)
        assert b"BRANCH_LEQ, " not in made.read_bytes()
