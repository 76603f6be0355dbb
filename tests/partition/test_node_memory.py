"""What nodes take of a memory, and the file of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.models import graph

from sardonyx.errors import Fail, InvalidArgument, NoSuchFile
from sardonyx.partition.node_memory import (
    NodeMemory,
    load_node_memory,
    name_of,
    node_memory,
    save_node_memory,
    weights_of,
)

TABLE = {"/a/MatMul": NodeMemory(4, 8, 12, 1), "odd, name": NodeMemory(0, 0, 2)}


def test_a_node_takes_its_weights_and_what_it_makes() -> None:
    """By the sizes of symbols; what it reads is told apart, since others make it."""
    held = graph("graph(x: float[n, 4]) -> (y: float[n, 2]) {\nw: float[4, 2] = ... 1\ny = MatMul(x, w)\n}")
    (node,) = held
    assert node_memory(node, {"n": 3}) == NodeMemory(48, 32, 24)
    assert node_memory(node, {"n": 3}).taken_bytes == 56
    assert node_memory(node, {}) == NodeMemory(0, 32, 0)
    assert (name_of(node), list(weights_of(node).values())) == ("y", [32])


def test_of_several_runs_each_largest_number_counts() -> None:
    """Field by field."""
    assert NodeMemory(1, 5, 2, 9).most(NodeMemory(3, 4, 2, 0)) == NodeMemory(3, 5, 2, 9)


def test_a_table_comes_back_from_its_file(tmp_path: Path) -> None:
    """The file has onnxruntime's columns."""
    save_node_memory(TABLE, tmp_path / "stats.csv")
    lines = (tmp_path / "stats.csv").read_text().splitlines()
    assert lines[0] == "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations"
    assert lines[1:] == ["/a/MatMul,4,8,12,1", '"odd, name",0,0,2,0']
    assert load_node_memory(tmp_path / "stats.csv") == TABLE


@pytest.mark.parametrize("text", ["a,1,2,3", "a,1,2,3,x", "a,1,2,3,-4", "\x00\xff"])
def test_what_is_no_such_file_is_told(tmp_path: Path, text: str) -> None:
    """With the line, what is expected, and what is there."""
    (tmp_path / "stats.csv").write_bytes(b"#name\n" + text.encode("latin-1"))
    with pytest.raises(InvalidArgument, match=r"stats\.csv, line 2: expected #name,input_sizes,.*, got "):
        load_node_memory(tmp_path / "stats.csv")


def test_a_file_that_is_not_there_or_cannot_be_is_told(tmp_path: Path) -> None:
    """With how to make one."""
    with pytest.raises(NoSuchFile, match="session.collect_node_memory_stats_to_file"):
        load_node_memory(tmp_path / "none.csv")
    with pytest.raises(Fail, match="cannot be written to .*none"):
        save_node_memory(TABLE, tmp_path / "none" / "stats.csv")
