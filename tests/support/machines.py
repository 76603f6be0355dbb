"""Processors that kernels are compiled for, by what they have: the levels of x86-64, and steps between them where code differs."""

from __future__ import annotations

from sardonyx.codegen.target import Target, host_target, machine_target

__all__ = ["MACHINES", "runnable_machines"]

_V2 = "cx16 popcnt sse3 sse4.1 sse4.2 ssse3".split()
_V3 = [*_V2, *"avx avx2 bmi bmi2 f16c fma lzcnt movbe".split()]
_V4 = [*_V3, *"avx512bw avx512cd avx512dq avx512f avx512vl".split()]
_NARROW = [*_V4, *"avx512bf16 avx512fp16 avx512vbmi avx512vbmi2 avx512vnni gfni".split()]

MACHINES: dict[str, Target] = {
    "x86-64": machine_target("x86_64", []),
    "x86-64-v2": machine_target("x86_64", _V2),
    "x86-64-v3": machine_target("x86_64", _V3),
    "x86-64-v4": machine_target("x86_64", _V4),
    "avx512-narrow": machine_target("x86_64", _NARROW),
    "aarch64": machine_target("aarch64", []),
}
"""v2 is of 2008 (Nehalem), v3 has AVX2 (Haswell, Zen 1 to 3), v4 AVX-512 (Skylake-X); Sapphire Rapids has float16 and bfloat16."""


def runnable_machines() -> dict[str, Target]:
    """Those whose code runs here, and this one."""
    here = host_target()
    has = {word for word in here.features.split(",") if word.startswith("+")}
    runs = {
        name: target
        for name, target in MACHINES.items()
        if target.triple == here.triple and {word for word in target.features.split(",") if word.startswith("+")} <= has
    }
    return {**runs, "host": here}
