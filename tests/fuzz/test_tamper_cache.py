"""Files of the disk cache that were changed."""

from __future__ import annotations

from pathlib import Path

from fuzz.tamper_cache import damaged_forms, fill_cache, is_read_as_kept, kinds_of_files

from sardonyx.disk_cache import DiskCache


def test_changed_files_are_as_if_they_were_not_there(tmp_path: Path) -> None:
    """Kernels, decisions and packed weights, changed in one byte, cut short or longer; one in 97 of those that the script tries."""
    fill_cache(tmp_path)
    files = kinds_of_files(tmp_path / "cache")
    assert len(files) >= 3
    for path in files:
        assert all(is_read_as_kept(path, form) for form in damaged_forms(path.read_bytes(), 97))


def test_what_is_read_otherwise_is_noticed(tmp_path: Path) -> None:
    """Another object under a right digest."""
    cache = DiskCache(tmp_path / "cache")
    cache.store("a" * 64, b"one")
    (path,) = (tmp_path / "cache").glob("*.sxo")
    own = path.read_bytes()
    cache.store("a" * 64, b"two")
    assert not is_read_as_kept(path, own)
    assert is_read_as_kept(path, own[:-1])
