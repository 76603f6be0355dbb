"""The machine that kernels are compiled for: instruction set level, vector width, LLVM's names for both.

    level      vectors   registers   needs
    portable   128 bit   16          any x86-64 (SSE up to 4.2 where the host has it)
    avx2       256 bit   16          AVX2, FMA, F16C
    avx512     512 bit   32          AVX-512 F, BW, CD, DQ, VL
    amx        512 bit   32          avx512, and AMX tiles of int8 and bfloat16
    neon       128 bit   32          any aarch64

A level is chosen by the features that the processor reports, never by its name, which can be wrong in a virtual machine. On
Linux they are read from the system, elsewhere LLVM is asked, which must be loaded for it. AMX is there where the system lets the
process use it too, which it is asked for.
A lower level switches the features of the higher ones off, so that code for it can be tested on any machine; single features of a
level can be left out too.
"""

from __future__ import annotations

import contextlib
import functools
import platform
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.caches import USUAL_BYTES, second_level_bytes
from sardonyx.codegen.llvm import binding
from sardonyx.codegen.tile_permission import tiles_are_permitted
from sardonyx.errors import InvalidArgument

__all__ = [
    "Target",
    "available_levels",
    "emulated_target",
    "has_refused_tiles",
    "host_target",
    "machine_target",
    "permitted_features",
    "read_processor",
    "runnable_target",
]


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """The facts about a machine that kernel generators and LLVM need."""

    isa: str
    """Name of the level: portable, avx2, avx512, amx or neon."""
    vector_bytes: int
    """Width of one vector register."""
    registers: int
    """Number of vector registers."""
    has_fma: bool
    """Whether a fused multiply-add is one instruction."""
    has_masks: bool
    """Whether any vector load, store or select takes a mask at no cost."""
    features: str
    """LLVM's feature string: every feature of the host, those above the level switched off."""
    triple: str
    """LLVM's name of architecture and system, such as x86_64-unknown-linux-gnu."""
    emulated: tuple[str, ...] = ()
    """Features whose instructions are written as what they compute; where there are any, no others are taken."""
    cache_bytes: int = USUAL_BYTES
    """Size of a core's second-level cache, by which work is cut; no code depends on it."""

    def lanes(self, bits: int) -> int:
        """Return how many elements of `bits` bits one register holds."""
        return self.vector_bytes * 8 // bits

    def keeps(self, size_bytes: int) -> bool:
        """Return whether weights of this size stay in a core's second-level cache, beside what they are multiplied by."""
        return size_bytes <= self.cache_bytes // 2

    def has_feature(self, name: str) -> bool:
        """Return whether instructions of a feature, by LLVM's name, may be written: the target has or emulates it."""
        if self.emulated:
            return name in self.emulated
        return f"+{name}" in self.features.split(",") or (name == "sse2" and self.triple.startswith("x86_64"))

    @property
    def has_half(self) -> bool:
        """Whether float16 is converted to float32 and back by instructions."""
        return "+f16c" in self.features or self.isa == "neon"

    @property
    def has_rounding(self) -> bool:
        """Whether a float is rounded to a whole number by one instruction."""
        return "+sse4.1" in self.features.split(",") or not self.triple.startswith("x86_64")

    @property
    def key(self) -> str:
        """All that compiled code depends on, as text: equal keys can share objects."""
        return "|".join([self.isa, self.triple, self.features, *self.emulated])


@dataclasses.dataclass(frozen=True, slots=True)
class _Level:
    vector_bytes: int
    registers: int
    has_fma: bool
    has_masks: bool
    needs: tuple[str, ...]
    """Features without which the level is not available."""
    drops: tuple[str, ...]
    """Prefixes of the features that belong to a higher level."""


_AMX = ("amx",)
_TILES = "amx-tile"
_AVX512 = (*_AMX, "avx512", "avx10", "egpr", "push2pop2", "ppx", "ndd", "ccmp", "nf", "cf", "zu")
_AVX = (*_AVX512, "avx", "fma", "f16c", "xop", "vaes", "vpclmulqdq", "gfni", "sha512", "sm3", "sm4")
_NEEDS_AVX2 = ("avx2", "fma", "f16c")
_NEEDS_AVX512 = (*_NEEDS_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

_X86_FEATURES = (
    "adx",
    "aes",
    "amx-bf16",
    "amx-fp16",
    "amx-int8",
    "amx-tile",
    "avx",
    "avx2",
    "avx512bf16",
    "avx512bitalg",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512f",
    "avx512fp16",
    "avx512ifma",
    "avx512vbmi",
    "avx512vbmi2",
    "avx512vl",
    "avx512vnni",
    "avx512vpopcntdq",
    "avxvnni",
    "bmi",
    "bmi2",
    "cx16",
    "f16c",
    "fma",
    "gfni",
    "lzcnt",
    "movbe",
    "pclmul",
    "popcnt",
    "sse3",
    "sse4.1",
    "sse4.2",
    "ssse3",
    "vaes",
    "vpclmulqdq",
)
"""Features that kernels may profit from, by LLVM's names."""

_FIRST_PROCESSOR_BYTES = 1 << 13
"""What suffices for the flags of one processor."""

_LINUX_NAMES: Mapping[str, str] = {
    "amx-bf16": "amx_bf16",
    "amx-fp16": "amx_fp16",
    "amx-int8": "amx_int8",
    "amx-tile": "amx_tile",
    "avx512bf16": "avx512_bf16",
    "avx512bitalg": "avx512_bitalg",
    "avx512fp16": "avx512_fp16",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avxvnni": "avx_vnni",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "pclmul": "pclmulqdq",
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
}
"""Linux's names of those that it calls otherwise (arch/x86/include/asm/cpufeatures.h)."""

_X86: dict[str, _Level] = {
    "portable": _Level(16, 16, False, False, (), _AVX),
    "avx2": _Level(32, 16, True, False, _NEEDS_AVX2, _AVX512),
    "avx512": _Level(64, 32, True, True, _NEEDS_AVX512, _AMX),
    "amx": _Level(64, 32, True, True, (*_NEEDS_AVX512, "amx-tile", "amx-int8", "amx-bf16"), ()),
}
_ARM: dict[str, _Level] = {"neon": _Level(16, 32, True, False, (), ("sve", "sme"))}
_OTHER: Mapping[str, _Level] = {"portable": _Level(16, 16, False, False, (), ())}


@functools.cache
def available_levels() -> tuple[str, ...]:
    """Return the levels that this machine can run, lowest first."""
    return _levels_with(_triple(), _host_features())


@functools.cache
def host_target(isa: str | None = None) -> Target:
    """Return the target of this machine at level `isa`, or at its highest level if None.

    Args:
        isa: the name of a level, with features that are not to be used behind it: avx512,-avx512bf16.

    Raises:
        InvalidArgument: the machine does not have the level, or what follows it is no feature that could be left out.
    """
    level, *hidden = (isa or "").split(",")
    features = {**_host_features(), **dict.fromkeys((word[1:] for word in hidden), False)}
    for word in hidden:
        if not word.startswith("-") or word[1:] not in _host_features():
            raise InvalidArgument(f"isa is {isa!r}: a level and features behind it to do without, such as avx512,-avx512bf16")
    return dataclasses.replace(_target(level or None, _triple(), features), cache_bytes=_second_level_bytes())


def machine_target(architecture: str, features: Collection[str], isa: str | None = None) -> Target:
    """Return the target of a Linux machine that need not be this one: kernels can be compiled for it, not run.

    Args:
        architecture: x86_64 or aarch64.
        features: what its processor has, by LLVM's names; every other feature is off.
        isa: the level, as for `host_target`.

    Raises:
        InvalidArgument: the features do not suffice for the level.
    """
    known = {**dict.fromkeys(_X86_FEATURES if architecture == "x86_64" else (), False), **dict.fromkeys(features, True)}
    return _target(isa, f"{architecture}-unknown-linux-gnu", known)


def emulated_target(isa: str, features: Collection[str]) -> Target:
    """Return a target of this machine with the registers of level `isa`, and with `features` that are emulated.

    Kernels for processors that are not at hand run on it, slowly: what they compute can be tested, not how fast.

    Args:
        isa: any level, also of another architecture.
        features: by LLVM's names, at least one; kernels choose their instructions among these only.

    Raises:
        InvalidArgument: there is no such level, or `features` is empty.
    """
    level = (_X86 | _ARM).get(isa)
    if level is None or not features:
        raise InvalidArgument(f"isa is {isa!r}, features {list(features)}: expected one of {', '.join(_X86 | _ARM)}, and a feature")
    return dataclasses.replace(
        host_target(),
        isa=f"{isa}_emulated",
        vector_bytes=level.vector_bytes,
        registers=level.registers,
        has_masks=level.has_masks,
        emulated=tuple(features),
    )


def _target(isa: str | None, triple: str, features: Mapping[str, bool]) -> Target:
    available = _levels_with(triple, features)
    chosen = isa or available[-1]
    if chosen not in available:
        raise InvalidArgument(f"isa is {isa!r}, the machine has {', '.join(available)}: choose one of these")
    level = _levels(triple)[chosen]
    return Target(
        isa=chosen,
        vector_bytes=level.vector_bytes,
        registers=level.registers,
        has_fma=level.has_fma,
        has_masks=level.has_masks,
        features=_feature_string(level, features),
        triple=triple,
    )


def runnable_target(key: str, here: Target) -> Target | None:
    """Return the target of a `key`, where code for it runs on a machine that has what `here` uses; else None."""
    isa, _, rest = key.partition("|")
    triple, _, features = rest.partition("|")
    words = features.split(",") if features else []
    lacking = {word for word in words if not word.startswith("-")} - set(here.features.split(","))
    if isa not in available_levels() or triple != here.triple or lacking:
        return None
    return dataclasses.replace(host_target(isa), features=features)


def _levels(triple: str) -> Mapping[str, _Level]:
    return {"x86_64": _X86, "aarch64": _ARM, "arm64": _ARM}.get(triple.partition("-")[0], _OTHER)


def _levels_with(triple: str, features: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the levels for which the features suffice, lowest first."""
    return tuple(name for name, level in _levels(triple).items() if all(features.get(need) for need in level.needs))


@functools.cache
def _triple() -> str:
    if sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64"):
        return f"{platform.machine()}-unknown-linux-gnu"
    return str(binding().get_process_triple())


@functools.cache
def _host_features() -> Mapping[str, bool]:
    return permitted_features(_processor_features())


def permitted_features(features: Mapping[str, bool]) -> Mapping[str, bool]:
    """Return the features that this process may use: AMX only where the system grants it, which is asked here."""
    if not features.get(_TILES) or tiles_are_permitted():
        return features
    return {name: has and not name.startswith(_AMX) for name, has in features.items()}


def has_refused_tiles() -> bool:
    """Return whether the processor has AMX, and the system does not let this process use it."""
    return bool(_processor_features().get(_TILES)) and not tiles_are_permitted()


@functools.cache
def _processor_features() -> Mapping[str, bool]:
    flags = _linux_flags(Path("/proc/cpuinfo"))
    if flags and _levels(_triple()) is _X86:  # under emulation the file is that of the machine below
        return {name: (_LINUX_NAMES.get(name, name)) in flags for name in _X86_FEATURES}
    return dict(binding().get_host_cpu_features())


def read_processor() -> None:
    """Read what the processor is from files of the system, where they say it; targets are made of that."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        _processor_features()
        _second_level_bytes()


@functools.cache
def _second_level_bytes() -> int:
    return second_level_bytes()


def _linux_flags(cpuinfo: Path) -> frozenset[str]:
    """Return the features of an x86 processor as Linux names them; none on other systems and processors."""
    with contextlib.suppress(OSError), cpuinfo.open("rb", buffering=0) as stream:
        text = stream.read(_FIRST_PROCESSOR_BYTES)  # the file is written while it is read, processor by processor
        for line in text.split(b"\n")[:-1]:
            if line.startswith(b"flags"):
                return frozenset(line.decode().partition(":")[2].split())
    return frozenset()


def _feature_string(level: _Level, features: Mapping[str, bool]) -> str:
    """Return the features in the order of their names, then those of higher levels as off: LLVM obeys the last mention."""
    kept = [(name, has and not name.startswith(level.drops)) for name, has in sorted(features.items())]
    on = [f"+{name}" for name, has in kept if has]
    off = [f"-{name}" for name, has in kept if not has]
    return ",".join(on + off)
