"""How many processors this process may keep busy: its affinity mask, and the CPU quota of its control group.

    version 2    /sys/fs/cgroup/<path>/cpu.max                          "max 100000" or "150000 100000"
    version 1    /sys/fs/cgroup/cpu/<path>/cpu.cfs_quota_us, …period_us -1 or 150000, 100000

<path> is in /proc/self/cgroup; a quota of any parent holds too. Inside a container the path may not exist: then the root counts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["available_processors", "processor_quota"]


_Reader = Callable[[Path], float]


def available_processors(root: Path = Path("/")) -> int:
    """Return the number of available processors, at least 1; a quota of one and a half processors counts as one.

    Files are read under `root`.
    """
    quotas = [int(quota) for quota in _quotas(root)]
    return max(1, min([_affinity(), *quotas]))


def processor_quota(root: Path = Path("/")) -> float | None:
    """Return how many processors the control groups of this process grant it, such as 1.5; None where they set no limit."""
    return min(_quotas(root), default=None)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(root: Path) -> Iterator[float]:
    """Yield processors granted by each group that this process is in."""
    groups = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield from _climb(groups, path, _quota_v2)
        elif "cpu" in controllers.split(","):
            for mount in ("cpu", controllers):
                yield from _climb(groups / mount, path, _quota_v1)


def _climb(mount: Path, path: str, read: _Reader) -> Iterator[float]:
    """Read the group at `path` and all above it."""
    folder = mount / path.strip("/")
    for group in [folder, *folder.parents]:
        with contextlib.suppress(OSError, ValueError, IndexError, ZeroDivisionError):
            yield read(group)
        if group == mount:
            return


def _quota_v2(group: Path) -> float:
    quota, period = _lines(group / "cpu.max")[0].split()
    return int(quota) / int(period)


def _quota_v1(group: Path) -> float:
    quota = int(_lines(group / "cpu.cfs_quota_us")[0])
    if quota <= 0:
        raise ValueError(quota)
    return quota / int(_lines(group / "cpu.cfs_period_us")[0])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
