"""The number of processors, from the affinity mask and from files that control groups of both versions show."""

import os
from pathlib import Path

import pytest

from sardonyx.codegen.run.processors import available_processors


@pytest.fixture(autouse=True)
def _many_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with sixteen processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)


def _files(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_without_control_groups_the_affinity_counts(tmp_path: Path) -> None:
    """No file, no quota."""
    assert available_processors(tmp_path) == 16


@pytest.mark.parametrize(
    ("content", "expected"), [("max 100000", 16), ("400000 100000", 4), ("150000 100000", 1), ("1000 100000", 1)]
)
def test_a_quota_of_version_2(tmp_path: Path, content: str, expected: int) -> None:
    """Whole processors count, and there is always one."""
    root = _files(tmp_path, proc__self__cgroup="0::/job\n", sys__fs__cgroup__job__cpu_dot_max=content)
    assert available_processors(root) == expected


def test_the_quota_of_a_parent_holds(tmp_path: Path) -> None:
    """The least of all groups above counts."""
    root = _files(
        tmp_path,
        proc__self__cgroup="0::/a/b\n",
        sys__fs__cgroup__a__cpu_dot_max="300000 100000",
        sys__fs__cgroup__a__b__cpu_dot_max="800000 100000",
    )
    assert available_processors(root) == 3


def test_in_a_container_the_root_counts(tmp_path: Path) -> None:
    """The path of the host is not there: the mounted root has the quota."""
    root = _files(tmp_path, proc__self__cgroup="0::/docker/1\n", sys__fs__cgroup__cpu_dot_max="200000 100000")
    assert available_processors(root) == 2


@pytest.mark.parametrize(("quota", "expected"), [("-1", 16), ("500000", 5), ("nonsense", 16)])
def test_a_quota_of_version_1(tmp_path: Path, quota: str, expected: int) -> None:
    """-1 is no quota; a file that makes no sense is none either."""
    root = tmp_path
    group = root / "sys/fs/cgroup/cpu,cpuacct/job"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text(quota)
    (group / "cpu.cfs_period_us").write_text("100000")
    _files(root, proc__self__cgroup="5:memory:/job\n4:cpu,cpuacct:/job\n")
    assert available_processors(root) == expected
