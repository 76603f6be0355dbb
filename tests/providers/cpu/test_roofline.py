"""The peak of this machine."""

from pathlib import Path

import pytest

from sardonyx.codegen.target import host_target
from sardonyx.disk_cache import DiskCache
from sardonyx.providers.cpu import roofline as module
from sardonyx.providers.cpu.roofline import Roofline, measure_roofline, roofline_for

MACHINE = Roofline(1, 100.0, ((10, 50.0), (20, 5.0)))


def test_a_step_takes_the_longer_of_its_operations_and_its_bytes() -> None:
    """In seconds."""
    assert MACHINE.seconds(200, 10) == 2.0
    assert MACHINE.seconds(10, 20) == 4.0


@pytest.mark.parametrize(("size", "speed"), [(1, 50.0), (10, 50.0), (11, 5.0), (1000, 5.0)])
def test_a_larger_working_set_has_the_bandwidth_of_a_farther_memory(size: int, speed: float) -> None:
    """That of the next larger size that was measured, else of the largest."""
    assert MACHINE.bandwidth(size) == speed


def test_this_machine_has_a_peak() -> None:
    """More than a hundred million operations and bytes a second, on any processor of this century."""
    found = measure_roofline(host_target(), 1)
    assert found.flops_per_s > 1e8
    assert all(speed > 1e8 for _, speed in found.bytes_per_s)


def test_it_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache keeps it; damaged, it is measured again."""
    cache, measured = DiskCache(tmp_path / "c"), []

    def measure(target: object, threads: int) -> Roofline:
        measured.append(threads)
        return MACHINE

    monkeypatch.setattr(module, "kernel_cache", lambda: cache)
    monkeypatch.setattr(module, "measure_roofline", measure)
    assert [roofline_for(host_target(), 1) for _ in range(2)] == [MACHINE, MACHINE]
    assert measured == [1]
    (path,) = (tmp_path / "c").glob("*.sxo")
    key = path.stem
    cache.store(key, b'{"threads": "x"}')
    assert roofline_for(host_target(), 1) == MACHINE
    assert measured == [1, 1]
