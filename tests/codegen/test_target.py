"""The level decides which features LLVM may use."""

import dataclasses
import subprocess
import sys

import pytest

from sardonyx.codegen import target as target_module
from sardonyx.codegen.llvm import binding
from sardonyx.codegen.target import Target, available_levels, emulated_target, host_target, machine_target, runnable_target
from sardonyx.errors import InvalidArgument


def _features(target: Target) -> dict[str, bool]:
    return {word[1:]: word[0] == "+" for word in target.features.split(",")}


def test_some_level_is_available_everywhere() -> None:
    """Every machine has at least its lowest level."""
    assert available_levels()


def test_the_highest_level_is_the_default() -> None:
    """AMX too, where the process may use it."""
    assert host_target().isa == available_levels()[-1]


def test_tiles_are_there_only_with_leave_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, every feature of AMX is off, and nothing else changes; without tiles nobody is asked."""
    features = {"amx-tile": True, "amx-int8": True, "avx2": True, "avx512fp16": False}
    monkeypatch.setattr(target_module, "tiles_are_permitted", lambda: True)
    assert target_module.permitted_features(features) == features
    monkeypatch.setattr(target_module, "tiles_are_permitted", lambda: False)
    assert target_module.permitted_features(features) == {**features, "amx-tile": False, "amx-int8": False}
    monkeypatch.setattr(target_module, "tiles_are_permitted", pytest.fail)
    assert target_module.permitted_features({**features, "amx-tile": False})["amx-int8"]


def test_an_unknown_level_is_refused_with_the_choices() -> None:
    """The message lists what the machine has."""
    with pytest.raises(InvalidArgument, match=available_levels()[0]):
        host_target("sse9")


def test_single_features_can_be_left_out() -> None:
    """All others stay as they are; what is no feature is refused."""
    level = available_levels()[0]
    whole = _features(host_target(level))
    name = next((name for name, has in whole.items() if has), next(iter(whole)))
    found = host_target(f"{level},-{name}")
    assert (_features(found), found.isa) == ({**whole, name: False}, level)
    for text in (f"{level},{name}", f"{level},-avx9"):
        with pytest.raises(InvalidArgument, match="features behind it"):
            host_target(text)


def test_a_lower_level_switches_the_higher_features_off(target: Target) -> None:
    """No feature of a level above the chosen one stays on."""
    on = {name for name, has in _features(target).items() if has}
    forbidden = {"portable": ("avx", "fma", "f16c"), "avx2": ("avx512", "amx"), "avx512": ("amx",)}.get(target.isa, ())
    assert not [name for name in on if name.startswith(forbidden)]


def test_llvm_confirms_every_feature_that_is_used(target: Target) -> None:
    """What the system says that the processor has, LLVM finds too; a system that is older than its processor may know fewer."""
    found = binding().get_host_cpu_features()
    assert not [name for name, has in _features(target).items() if has and not found.get(name)]


def test_lanes_follow_the_vector_width(target: Target) -> None:
    """A register holds vector_bytes of elements of any width."""
    assert target.lanes(32) == target.vector_bytes // 4
    assert target.lanes(8) == target.vector_bytes


def test_levels_have_different_keys() -> None:
    """Objects of one level are never taken for another's."""
    keys = {host_target(level).key for level in available_levels()}
    assert len(keys) == len(available_levels())


def test_code_runs_where_all_that_it_uses_is_there() -> None:
    """On the target itself and on those above it; never on those below."""
    levels = [host_target(level) for level in available_levels()]
    for index, here in enumerate(levels):
        runnable = [runnable_target(target.key, here) for target in levels]
        assert runnable == [*levels[: index + 1], *[None] * (len(levels) - index - 1)]


def test_code_for_other_machines_does_not_run() -> None:
    """Whatever is not known is not there."""
    here = host_target()
    assert runnable_target(here.key.replace(here.triple, "other"), here) is None
    assert runnable_target(f"{here.key},+unheard-of", here) is None
    assert runnable_target(f"{here.key},strange", here) is None
    assert [runnable_target(key, here) for key in ("", "|", "avx9||", "no key")] == [None] * 4


def test_a_target_can_be_that_of_another_machine() -> None:
    """Its features decide the level; what they do not name is off."""
    haswell = machine_target("x86_64", ["sse4.1", "avx", "avx2", "fma", "f16c"])
    assert (haswell.isa, haswell.vector_bytes, haswell.has_half, haswell.has_rounding) == ("avx2", 32, True, True)
    assert "-avx512bf16" in haswell.features.split(",")
    assert machine_target("aarch64", []).isa == "neon"
    oldest = machine_target("x86_64", [])
    assert (oldest.isa, oldest.has_half, oldest.has_rounding) == ("portable", False, False)
    with pytest.raises(InvalidArgument, match="the machine has portable"):
        machine_target("x86_64", ["avx2"], "avx2")


_EMULATED = """
import platform
from types import SimpleNamespace

platform.machine = lambda: "aarch64"
from sardonyx.codegen import target

target.binding = lambda: SimpleNamespace(get_host_cpu_features=lambda: {"neon": True})
print(target.host_target().isa, target.host_target().features)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/cpuinfo is Linux's")
def test_an_emulated_processor_has_no_features_of_the_one_below() -> None:
    """An aarch64 process sees the flags of the x86 machine that emulates it in /proc/cpuinfo; what LLVM says counts."""
    done = subprocess.run([sys.executable, "-c", _EMULATED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["neon", "+neon"]


def test_another_processor_is_emulated_by_its_registers_and_features() -> None:
    """Its vectors are that wide, its features the only ones, and the code runs on this machine."""
    target = emulated_target("neon", ["dotprod"])
    assert (target.isa, target.vector_bytes, target.registers) == ("neon_emulated", 16, 32)
    assert target.has_feature("dotprod")
    assert not target.has_feature("avx2")
    assert target.triple == host_target().triple
    assert target.key != dataclasses.replace(target, emulated=()).key


def test_what_is_emulated_is_named() -> None:
    """A level that there is, and a feature."""
    with pytest.raises(InvalidArgument, match="isa is 'sparc'"):
        emulated_target("sparc", ["vis"])
    with pytest.raises(InvalidArgument, match="and a feature"):
        emulated_target("neon", [])


def test_weights_stay_in_half_of_the_cache() -> None:
    """The other half is for what they are multiplied by."""
    target = dataclasses.replace(host_target(), cache_bytes=1 << 20)
    assert target.keeps(1 << 19)
    assert not target.keeps((1 << 19) + 1)
