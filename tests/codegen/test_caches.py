"""The second-level cache is asked of the system, and guessed where it does not say."""

from pathlib import Path

import pytest

from sardonyx.codegen.caches import USUAL_BYTES, second_level_bytes


def _cache(root: Path, index: int, level: str, kind: str, size: str) -> None:
    folder = root / f"sys/devices/system/cpu/cpu0/cache/index{index}"
    folder.mkdir(parents=True)
    for name, text in (("level", level), ("type", kind), ("size", size)):
        (folder / name).write_text(f"{text}\n", encoding="ascii")


@pytest.mark.parametrize(("text", "size"), [("2048K", 2 << 20), ("1M", 1 << 20), ("512K", 512 << 10)])
def test_its_size_is_what_linux_says(tmp_path: Path, text: str, size: int) -> None:
    """Caches of other levels are passed over."""
    _cache(tmp_path, 0, "1", "Data", "48K")
    _cache(tmp_path, 1, "1", "Instruction", "32K")
    _cache(tmp_path, 2, "2", "Unified", text)
    _cache(tmp_path, 3, "3", "Unified", "32768K")
    assert second_level_bytes(tmp_path) == size


@pytest.mark.parametrize("text", ["", "K", "0K", "-4K", "many", "2048", "1T", "2.5M"])
def test_odd_sizes_count_as_none(tmp_path: Path, text: str) -> None:
    """The usual size is taken."""
    _cache(tmp_path, 2, "2", "Unified", text)
    assert second_level_bytes(tmp_path) == USUAL_BYTES


def test_without_files_the_usual_size_is_taken(tmp_path: Path) -> None:
    """As in a container that hides them, and on other systems."""
    assert second_level_bytes(tmp_path) == USUAL_BYTES


def test_extremes_are_limited(tmp_path: Path) -> None:
    """Blocks can neither be tiny nor fill the memory."""
    _cache(tmp_path / "small", 2, "2", "Unified", "1K")
    _cache(tmp_path / "large", 2, "2", "Unified", "999999M")
    assert second_level_bytes(tmp_path / "small") == 1 << 18
    assert second_level_bytes(tmp_path / "large") == 1 << 22


def test_this_machine_has_a_cache() -> None:
    """Whatever it is, it lies within the limits."""
    assert 1 << 18 <= second_level_bytes() <= 1 << 22
