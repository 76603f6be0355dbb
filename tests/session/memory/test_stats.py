"""Recording what nodes need of memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from support.models import model

from sardonyx.ops.infer import infer_graph
from sardonyx.partition.node_memory import NodeMemory, load_node_memory
from sardonyx.session.memory.stats import MemoryRecorder

TEXT = """graph(x: float[n, 4], c: bool[]) -> (y: float[n, 4]) {
    w: float[4] = ... 1
    a = Mul(x, w) @first
    y = If(c) {
        then_branch = graph() -> (t) {\nt = Neg(a) @inner\n}, else_branch = graph() -> (e) {\ne = Exp(a)\n}
    } @choice
}"""


def _recorder(folder: Path) -> MemoryRecorder:
    held = model(TEXT)
    infer_graph(held)
    return MemoryRecorder(held, folder / "stats.csv")


def test_the_largest_run_is_kept(tmp_path: Path) -> None:
    """For nodes of bodies too; a smaller run changes nothing."""
    recorder = _recorder(tmp_path)
    for count in (1, 3, 2):
        recorder.record([np.zeros((count, 4), np.float32), np.array(True)])
    found = load_node_memory(tmp_path / "stats.csv")
    assert found["first"] == NodeMemory(48, 16, 48)
    assert set(found) == {"first", "inner", "e", "choice"}


def test_a_run_that_needs_no_more_leaves_the_file_alone(tmp_path: Path) -> None:
    """It is not written again."""
    recorder = _recorder(tmp_path)
    given = [np.zeros((1, 4), np.float32), np.array(True)]
    recorder.record(given)
    (tmp_path / "stats.csv").unlink()
    recorder.record(given)
    assert not (tmp_path / "stats.csv").exists()
