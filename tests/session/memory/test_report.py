"""Reports of memory, made of what sessions keep."""

from __future__ import annotations

import json

from sardonyx.held_memory import HeldKind, HeldMemory
from sardonyx.session.memory.report import MemoryUse, process_report, session_report


def _use(label: str, *blocks: tuple[HeldKind, int, int], arenas: dict[str, int] | None = None, shared: int = 0) -> MemoryUse:
    held = tuple(HeldMemory(kind, address, size) for kind, address, size in blocks)
    return MemoryUse(label, held, arenas or {}, shared, 5, 7, 11, 2, ("OtherExecutionProvider",))


def test_what_lies_in_blocks_of_two_kinds_counts_once() -> None:
    """A packed weight that is a part of a weight's block adds nothing."""
    report = session_report(_use("m", (HeldKind.WEIGHTS, 100, 50), (HeldKind.PACKED_WEIGHTS, 120, 60), (HeldKind.CODE, 500, 4)))
    assert (report.weights_bytes, report.packed_bytes, report.code_bytes) == (50, 30, 4)
    assert report.total_bytes == 50 + 30 + 4 + 5 + 7


def test_what_another_session_holds_is_named_as_shared() -> None:
    """Blocks of two sessions count for each as shared, and once for the process."""
    uses = [_use("a", (HeldKind.WEIGHTS, 100, 50)), _use("b", (HeldKind.WEIGHTS, 100, 50), (HeldKind.CODE, 500, 4))]
    report = process_report(uses, 1000)
    assert [session.shared_bytes for session in report.sessions] == [50, 50]
    assert (report.weights_bytes, report.total_bytes, report.shared_bytes) == (50, 50 + 4 + 2 * 12, 50)


def test_arenas_that_sessions_share_count_once() -> None:
    """For each session as shared, and once for the process."""
    report = process_report([_use("a", shared=100), _use("b", shared=100), _use("c")], 1000)
    assert [session.shared_bytes for session in report.sessions] == [100, 100, 0]
    assert report.arena_bytes == 100


def test_devices_and_mapped_files_are_named_besides() -> None:
    """The total is of the host's own memory."""
    report = session_report(_use("m", (HeldKind.MAPPED, 100, 50), arenas={"cpu": 3, "Npu": 1000}))
    assert (report.total_bytes, report.mapped_bytes, dict(report.device_arenas)) == (3 + 5 + 7, 50, {"Npu": 1000})
    assert "arenas of Npu, besides" in str(report)
    assert "OtherExecutionProvider does not say" in str(report)


def test_reports_fit_80_columns_and_json() -> None:
    """However long a label is: its end is shown, where the name of the file is."""
    report = process_report([_use("/a/folder" * 20 + "/model.onnx")], 10**12)
    assert max(len(line) for line in [*str(report).splitlines(), *str(report.sessions[0]).splitlines()]) <= 80
    assert "/model.onnx" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["sessions"][0]["cache_bytes"] == 5


def test_a_report_of_no_session_is_empty() -> None:
    """The total of nothing is 0."""
    assert process_report([], 5).total_bytes == 0
