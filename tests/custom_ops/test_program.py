"""Partitions of custom operators."""

from __future__ import annotations

import numpy as np
from onnx import helper
from support.custom_ops import DOMAIN, library_path, session_of

import sardonyx


def _chain(*operators: str) -> bytes:
    """X through `operators`, each of which reads what the one before made; also the first result is given out."""
    names = ["x", *(f"y{index}" for index in range(len(operators)))]
    nodes = [
        helper.make_node(kind, [names[index]], [names[index + 1]], domain=DOMAIN, factor=2.0, offset=1, times=2)
        if kind != "Neg"
        else helper.make_node(kind, [names[index]], [names[index + 1]])
        for index, kind in enumerate(operators)
    ]
    given = helper.make_tensor_value_info("x", 1, ["n"])
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in dict.fromkeys((names[1], names[-1]))]
    graph = helper.make_graph(nodes, "chain", [given], outputs)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    content: bytes = helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()
    return content


def test_operators_in_a_row_are_one_step() -> None:
    """What one makes the next reads; results that others read are given out too."""
    session = session_of(_chain("Scale", "Twice", "Leaky", "Scale"))
    for size in (3, 1, 3, 0):
        x = np.arange(size, dtype=np.float32)
        first, last = session.run(None, {"x": x})
        assert first.tolist() == (2 * x + 1).tolist()
        assert last.tolist() == np.repeat(2 * (2 * x + 1) + 1, 2).tolist()


def test_other_operators_may_stand_between() -> None:
    """They run on the providers of the session."""
    session = session_of(_chain("Scale", "Neg", "Scale"))
    assert session.run(None, {"x": np.ones(2, np.float32)})[1].tolist() == [-5, -5]
    assert {row.provider for row in session.explain()} >= {"CustomOperators"}
    assert "CustomOperators" not in session.get_providers()


def test_large_values_between_operators_are_right() -> None:
    """They are not kept from run to run."""
    session = session_of(_chain("Twice", "Scale", "Scale"))
    x = np.arange(100_000, dtype=np.float32)
    for _ in range(3):
        assert (session.run(None, {"x": x})[1] == 4 * np.repeat(x, 2) + 3).all()


def test_options_keep_libraries_when_copied() -> None:
    """What is added to the copy is not in the original."""
    options = sardonyx.SessionOptions()
    options.register_custom_ops_library(library_path())
    copied = options.copy()
    copied.register_custom_ops_library(library_path())
    assert (len(options.custom_ops), len(copied.custom_ops)) == (1, 2)
