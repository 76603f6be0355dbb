"""Facts about the machine and the process that decide how fast models run."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from pathlib import Path
from typing import Any

from sardonyx import config
from sardonyx.codegen.run.processors import available_processors, processor_quota
from sardonyx.codegen.target import available_levels, has_refused_tiles, host_target

__all__ = ["describe_machine", "describe_threads"]


def describe_machine(root: Path = Path("/")) -> dict[str, Any]:
    """Return processor, memory and instruction sets; Any because it is on its way to JSON. Files are read under `root`."""
    target = host_target(config.isa())
    features = [word[1:] for word in target.features.split(",") if word.startswith("+")]
    memory = _fields(root / "proc/meminfo", ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree"))
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _first_field(root / "proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "architecture": platform.machine(),
        "is_virtual": "hypervisor" in _first_field(root / "proc/cpuinfo", "flags").split(),
        "isa": target.isa,
        "isa_levels": list(available_levels()),
        "has_refused_tiles": has_refused_tiles(),
        "features": features,
        "memory_bytes": 1024 * memory.get("MemTotal", 0) or None,
        "available_bytes": 1024 * memory.get("MemAvailable", 0) or None,
        "swap_used_bytes": 1024 * (memory.get("SwapTotal", 0) - memory.get("SwapFree", 0)),
    }


def describe_threads(root: Path = Path("/")) -> dict[str, Any]:
    """Return processors, those that this process may use, and how many threads a session takes; Any as for the machine."""
    own = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    load = None
    with contextlib.suppress(OSError, AttributeError):
        load = os.getloadavg()[0]
    return {
        "processors": os.cpu_count(),
        "affinity": own,
        "cores": len({_siblings(root, number) for number in own}),
        "quota": processor_quota(root),
        "available": available_processors(root),
        "threads": config.num_threads() or available_processors(root),
        "load": load,
        "governors": sorted({text for number in own if (text := _governor(root, number))}),
        "is_turbo_off": _text(root / "sys/devices/system/cpu/intel_pstate/no_turbo") == "1",
        "is_free_threaded": not getattr(sys, "_is_gil_enabled", lambda: True)(),
    }


def _siblings(root: Path, number: int) -> str:
    """Return the processors that share a core with one, as the system lists them; the number itself where it does not."""
    return _text(root / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list") or str(number)


def _governor(root: Path, number: int) -> str:
    return _text(root / f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _first_field(path: Path, name: str) -> str:
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _fields(path: Path, names: tuple[str, ...]) -> dict[str, int]:
    """Return numbers of a file of lines such as `MemTotal: 1234 kB`."""
    found = {}
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        if key in names and value.split()[:1] and value.split()[0].isdigit():
            found[key] = int(value.split()[0])
    return found
