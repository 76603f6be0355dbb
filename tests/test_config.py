"""Environment variables and limits."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from support.users import as_another_user, needs_root

from sardonyx import config


def test_an_isa_is_forced_or_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset and empty both mean the machine's own."""
    monkeypatch.delenv("SARDONYX_ISA", raising=False)
    assert config.isa() is None
    monkeypatch.setenv("SARDONYX_ISA", "")
    assert config.isa() is None
    monkeypatch.setenv("SARDONYX_ISA", "avx2")
    assert config.isa() == "avx2"


@pytest.mark.parametrize(("text", "threads"), [("4", 4), ("1", 1), ("0", None), ("", None)])
def test_only_a_positive_number_of_threads_counts(monkeypatch: pytest.MonkeyPatch, text: str, threads: int | None) -> None:
    """0 leaves the number open."""
    monkeypatch.setenv("SARDONYX_NUM_THREADS", text)
    assert config.num_threads() == threads


@pytest.mark.parametrize("text", ["-2", "many", "1G", "²", "9" * 19])
def test_a_text_that_is_no_number_is_warned_of(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """It leaves the number open."""
    monkeypatch.setenv("SARDONYX_NUM_THREADS", text)
    with pytest.warns(UserWarning, match=f"SARDONYX_NUM_THREADS must be a number of at least 1, got '{text}', which has no effect"):
        assert config.num_threads() is None


def test_the_cache_has_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable names it, an empty one switches it off, and without it the user's cache folder holds it."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", "/somewhere")
    assert config.cache_dir() == Path("/somewhere")
    monkeypatch.setenv("SARDONYX_CACHE_DIR", "")
    assert config.cache_dir() is None
    monkeypatch.delenv("SARDONYX_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert config.cache_dir() == Path("/cache/sardonyx")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert config.cache_dir() == Path.home() / ".cache" / "sardonyx"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert config.cache_dir() == Path.home() / ".cache" / "sardonyx"


@needs_root
def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that a container runs as, whom the system does not know."""
    for name in ("SARDONYX_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert as_another_user(config.cache_dir) is None


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("1000", 1000), ("0", 0), ("", 1 << 30), ("1G", 1 << 30), ("²", 1 << 30), ("9" * 5000, 1 << 30)]
)
def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch, text: str, size_bytes: int) -> None:
    """A number of bytes, or the default where the text is none."""
    monkeypatch.setenv("SARDONYX_CACHE_BYTES", text)
    assert config.cache_limit_bytes() == size_bytes


def test_a_trace_file_is_named_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset and empty both mean none."""
    monkeypatch.delenv("SARDONYX_TRACE", raising=False)
    assert config.trace_file() is None
    monkeypatch.setenv("SARDONYX_TRACE", "/t.jsonl")
    assert config.trace_file() == Path("/t.jsonl")


@pytest.mark.parametrize(("text", "limit"), [("1000", 1000), ("0", None), ("", None)])
def test_limits_are_configured(monkeypatch: pytest.MonkeyPatch, text: str, limit: int | None) -> None:
    """Positive numbers; else tensors may take half of the memory, at most 64 GiB, and loops may run 10 million times."""
    monkeypatch.setenv("SARDONYX_MAX_TENSOR_BYTES", text)
    monkeypatch.setenv("SARDONYX_MAX_ITERATIONS", text)
    limits = config.Limits()
    assert limits.iterations == (limit or 10_000_000)
    assert limits.tensor_bytes == limit if limit else 1 << 20 < limits.tensor_bytes <= 64 << 30


@pytest.mark.parametrize(("memory_bytes", "limit"), [(8 << 30, 4 << 30), (128 << 30, 64 << 30), (1 << 40, 64 << 30)])
def test_a_tensor_may_take_half_of_the_memory(monkeypatch: pytest.MonkeyPatch, memory_bytes: int, limit: int) -> None:
    """And at most 64 GiB."""
    monkeypatch.delenv("SARDONYX_MAX_TENSOR_BYTES", raising=False)
    system = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": memory_bytes // 4096}
    monkeypatch.setattr(os, "sysconf", system.__getitem__)
    assert config.Limits().tensor_bytes == limit


def test_limits_that_no_variable_sets() -> None:
    """What folding may make, and how deep and large a model may be."""
    limits = dataclasses.asdict(config.Limits(tensor_bytes=0, iterations=0))
    assert limits == {
        "tensor_bytes": 0,
        "iterations": 0,
        "function_depth": 64,
        "function_growth": 100,
        "function_nodes": 100_000,
        "nodes": 2_000_000,
        "fold_bytes": 16 << 20,
        "fold_growth_bytes": 4 << 20,
        "fold_in_place_bytes": 1 << 30,
        "fold_seconds": 10.0,
        "rank": 64,
    }


def test_limits_are_positive_and_fixed() -> None:
    """Every limit bounds something, and none can be changed at run time."""
    assert all(limit > 0 for limit in dataclasses.astuple(config.LIMITS))
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.LIMITS.rank = 1  # type: ignore[misc]  # that it cannot be assigned is the point


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("0", False), ("", False)])
def test_memory_is_guarded_where_asked_for(monkeypatch: pytest.MonkeyPatch, text: str, expected: bool) -> None:
    """Not by default."""
    monkeypatch.setenv("SARDONYX_GUARD", text)
    assert config.guards_memory() is expected
    monkeypatch.delenv("SARDONYX_GUARD")
    assert not config.guards_memory()


def test_mapping_is_off_unless_it_is_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are read into memory; only "1" maps them."""
    monkeypatch.delenv("SARDONYX_MAP_WEIGHTS", raising=False)
    assert not config.maps_weights()
    monkeypatch.setenv("SARDONYX_MAP_WEIGHTS", "0")
    assert not config.maps_weights()
    monkeypatch.setenv("SARDONYX_MAP_WEIGHTS", "1")
    assert config.maps_weights()


def test_kernels_are_compiled_inline_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """By one word; another is warned of."""
    for text, inline in (("", False), ("inline", True)):
        monkeypatch.setenv("SARDONYX_COMPILE", text)
        assert config.compiles_inline() is inline
    monkeypatch.setenv("SARDONYX_COMPILE", "here")
    with pytest.warns(UserWarning, match="SARDONYX_COMPILE is inline or empty, got 'here'"):
        assert not config.compiles_inline()


def test_a_relative_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache would lie in the working folder."""
    monkeypatch.delenv("SARDONYX_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "somewhere")
    assert config.cache_dir() is None


@pytest.mark.parametrize(
    ("membership", "file"),
    [
        ("0::/jobs/one", "jobs/memory.max"),
        ("0::/outside/container", "memory.max"),
        ("3:cpu:/\n4:memory:/jobs/one", "memory/jobs/one/memory.limit_in_bytes"),
    ],
)
def test_control_groups_limit_memory(tmp_path: Path, membership: str, file: str) -> None:
    """The limit of a group or of one above it counts, in both versions of control groups."""
    (tmp_path / "membership").write_text(membership)
    (tmp_path / "root" / file).parent.mkdir(parents=True)
    (tmp_path / "root" / file).write_text("1048576\n")
    assert min(config._cgroup_limits(str(tmp_path / "membership"), str(tmp_path / "root"))) == 1048576


def test_a_control_group_without_a_limit_limits_nothing(tmp_path: Path) -> None:
    """Version 2 writes `max` there."""
    (tmp_path / "membership").write_text("0::/")
    (tmp_path / "memory.max").write_text("max\n")
    assert min(config._cgroup_limits(str(tmp_path / "membership"), str(tmp_path))) >= 64 << 30


def test_a_childs_modules_are_found_in_a_folder_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before those of this process."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert config.environment_with(Path("/a"))["PYTHONPATH"] == "/a"
    monkeypatch.setenv("PYTHONPATH", "/b")
    assert config.environment_with(Path("/a"))["PYTHONPATH"] == f"/a{os.pathsep}/b"
