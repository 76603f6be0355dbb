"""What makes models run, or start, more slowly than this machine could."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["slowdowns"]

_BUSY = 0.5
"""Runnable threads of others, for each processor, from which measurements scatter."""
_FULL = 0.95


def slowdowns(facts: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each finding, with what to do; `facts` are those of `sardonyx doctor`, Any as they go to JSON."""
    return [*_of_machine(facts["machine"], facts["settings"]), *_of_threads(facts), *_of_cache(facts), *_of_settings(facts)]


def _of_machine(machine: Mapping[str, Any], settings: Mapping[str, str]) -> Iterator[str]:
    levels = machine["isa_levels"]
    if machine["isa"] != levels[-1]:
        forced = f"SARDONYX_ISA={settings.get('SARDONYX_ISA')}"
        yield f"{forced} holds kernels down to {machine['isa']}, and the processor has {levels[-1]}: unset it"
    if machine["isa"] == "portable" and machine["architecture"] == "x86_64" and len(levels) == 1:
        yield (
            "the processor has no AVX2, or the system hides it: kernels use vectors of 16 bytes; where it is virtual, pass the "
            "host's features on"
        )
    if machine["has_refused_tiles"]:
        yield (
            "the processor has AMX and the system does not let this process use it (arch_prctl): products use vectors; Linux "
            "5.16 and later grants it, unless a container's filter of system calls refuses"
        )
    total, free = machine["memory_bytes"], machine["available_bytes"]
    if total and free and free < total // 20:
        yield f"only {free / 2**30:.1f} of {total / 2**30:.1f} GiB of memory are free: weights may be swapped out"
    if machine["swap_used_bytes"] > 1 << 28:
        yield f"{machine['swap_used_bytes'] / 2**30:.1f} GiB are swapped out: first runs may wait for the disk"


def _of_threads(facts: Mapping[str, Any]) -> Iterator[str]:
    threads = facts["threads"]
    count, own, quota = threads["processors"] or 1, len(threads["affinity"]), threads["quota"]
    if own < count:
        yield f"the process may use {own} of {count} processors (taskset, cpuset): widen its affinity, if that is not meant"
    if quota is not None and quota < own:
        yield f"a control group grants {quota:g} processors of {own}: with more threads than that, runs stop until the next period"
    if threads["threads"] > threads["available"]:
        yield (
            f"a session takes {threads['threads']} threads and {threads['available']} processors are there: lower "
            "SARDONYX_NUM_THREADS"
        )
    if threads["cores"] < own and threads["threads"] > threads["cores"]:
        yield (
            f"{own} processors are {threads['cores']} cores with two threads each: products gain little from the second; "
            f"try intra_op_num_threads={threads['cores']}"
        )
    slow = [name for name in threads["governors"] if name not in ("performance", "schedutil")]
    if slow:
        yield f"the frequency governor is {', '.join(slow)}: `cpupower frequency-set -g performance` keeps the speed up"
    if threads["is_turbo_off"]:
        yield "turbo frequencies are off: write 0 to /sys/devices/system/cpu/intel_pstate/no_turbo"
    if threads["load"] is not None and threads["load"] > _BUSY * count:
        load = f"the load of the last minute is {threads['load']:.1f} on {count} processors"
        yield f"{load}: others use the machine, timings will scatter"


def _of_cache(facts: Mapping[str, Any]) -> Iterator[str]:
    cache = facts["cache"]
    if cache["folder"] is None:
        yield "there is no cache of kernels: each process compiles them anew; set SARDONYX_CACHE_DIR to a folder of yours"
    elif cache["problem"]:
        yield f"the cache of kernels is not used or not written, so kernels are compiled in each process: {cache['problem']}"
    elif cache["size_bytes"] > _FULL * cache["limit_bytes"]:
        yield "the cache of kernels is full, and old ones are compiled again: raise SARDONYX_CACHE_BYTES"
    if cache["damaged"]:
        yield f"{cache['damaged']} objects of the cache are damaged and will be compiled again"


def _of_settings(facts: Mapping[str, Any]) -> Iterator[str]:
    settings, compiler = facts["settings"], facts["compiler"]
    if not compiler["is_able"]:
        yield f"kernels cannot be compiled: {compiler['problem']}"
    elif not compiler["is_apart"]:
        yield (
            "kernels are compiled in this process, which loads LLVM (80 MiB): no other could be started for them, or "
            "SARDONYX_COMPILE=inline asks for it"
        )
    if settings.get("SARDONYX_GUARD") == "1":
        yield "SARDONYX_GUARD=1 copies all inputs and outputs: it is for finding defects; unset it"
    if settings.get("SARDONYX_TRACE"):
        yield f"SARDONYX_TRACE writes each event to {settings['SARDONYX_TRACE']}: unset it"
    blas = facts["numpy"]["threads"]
    if blas is not None and blas > 1 and facts["threads"]["threads"] > 1:
        yield (
            f"NumPy's {facts['numpy']['blas']} has {blas} threads of its own, which wait for work beside those of a session where "
            "nodes run on the reference provider: set OPENBLAS_NUM_THREADS=1"
        )
