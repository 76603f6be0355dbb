"""Facts about a machine."""

from __future__ import annotations

import os
from pathlib import Path

from sardonyx.cli.machine import describe_machine, describe_threads


def _files(root: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_processor_and_memory_are_read(tmp_path: Path) -> None:
    """As Linux lists them."""
    root = _files(
        tmp_path,
        proc__cpuinfo="model name\t: A Processor\nflags\t: sse3 hypervisor\n",
        proc__meminfo="MemTotal: 2048 kB\nMemAvailable: 1024 kB\nSwapTotal: 30 kB\nSwapFree: 10 kB\n",
    )
    facts = describe_machine(root)
    assert (facts["processor"], facts["is_virtual"]) == ("A Processor", True)
    assert (facts["memory_bytes"], facts["available_bytes"], facts["swap_used_bytes"]) == (2 << 20, 1 << 20, 20 << 10)
    assert facts["isa"] in facts["isa_levels"]


def test_a_system_that_says_nothing_is_fine(tmp_path: Path) -> None:
    """Sizes are not known then, and there is one core for each processor."""
    assert describe_machine(tmp_path)["memory_bytes"] is None
    facts = describe_threads(tmp_path)
    assert facts["cores"] == len(facts["affinity"])
    assert (facts["quota"], facts["governors"], facts["is_turbo_off"]) == (None, [], False)


def test_siblings_share_a_core(tmp_path: Path) -> None:
    """All processors of this process in one list are one core."""
    names = {f"sys__devices__system__cpu__cpu{number}__topology__thread_siblings_list": "0-7" for number in os.sched_getaffinity(0)}
    governors = {
        f"sys__devices__system__cpu__cpu{number}__cpufreq__scaling_governor": "powersave\n" for number in os.sched_getaffinity(0)
    }
    facts = describe_threads(_files(tmp_path, **names, **governors))
    assert (facts["cores"], facts["governors"]) == (1, ["powersave"])


def test_a_quota_is_told(tmp_path: Path) -> None:
    """Of one and a half processors."""
    root = _files(tmp_path, proc__self__cgroup="0::/\n")
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/cpu.max").write_text("150000 100000\n")
    assert describe_threads(root)["quota"] == 1.5
