"""What `--output-dir` writes: a file for each output, whatever its type."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.formats import tensor_file

__all__ = ["file_names", "write_outputs"]


def write_outputs(folder: Path, names: Sequence[str], results: Sequence[OnnxValue]) -> None:
    """Write each output that `file_names` has a file for into a folder, which is made where it is missing.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for (name, file), value in zip(file_names(names, results).items(), results, strict=True):
        if file is not None:
            _WRITERS[Path(file).suffix](folder / file, name, value)


def file_names(names: Sequence[str], results: Sequence[OnnxValue]) -> dict[str, str | None]:
    """Return output -> its file, None for an optional that is empty.

    A tensor goes to NAME.npy (texts as NumPy's fixed-width type), one of a type that NumPy lacks to NAME.pb, a sequence of
    tensors to NAME.npz with the arrays 0, 1 …, and maps, also in sequences, to NAME.json.
    """
    taken: set[str] = set()
    return {
        name: None if value is None else _stem(name, taken) + _suffix(value) for name, value in zip(names, results, strict=True)
    }


def _stem(name: str, taken: set[str]) -> str:
    """Return a file's name without ending, different from those before; outputs may be called "a/b" and "a_b"."""
    wanted = (
        "".join("_" if letter in '/\\:*?"<>|' or not letter.isprintable() else letter for letter in name).lstrip(".") or "output"
    )
    stem, count = wanted, 1
    while stem in taken:
        count += 1
        stem = f"{wanted}_{count}"
    taken.add(stem)
    return stem


def _suffix(value: OnnxValue) -> str:
    if isinstance(value, np.ndarray):
        return ".npy" if value.dtype == object or value.dtype.isbuiltin == 1 else ".pb"
    is_of_arrays = isinstance(value, list) and value and all(isinstance(item, np.ndarray) for item in value)
    return ".npz" if is_of_arrays and all(item.dtype == object or item.dtype.isbuiltin == 1 for item in value) else ".json"


def _write_arrays(path: Path, name: str, arrays: Sequence[Array]) -> None:
    np.savez(path, **{str(index): _plain(item) for index, item in enumerate(arrays)})  # type: ignore[arg-type]  # stub: allow_pickle


def _write_json(path: Path, name: str, value: OnnxValue) -> None:
    path.write_text(json.dumps(_jsonable(value), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _plain(array: Array) -> Array:
    return array.astype(str) if array.dtype == object else array


def _jsonable(value: Any) -> Any:  # whatever a sequence or a map holds
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


_WRITERS: dict[str, Callable[[Path, str, OnnxValue], None]] = {
    ".npy": lambda path, name, value: np.save(path, _plain(value)),
    ".pb": lambda path, name, value: tensor_file.save(value, path, name),
    ".npz": _write_arrays,
    ".json": _write_json,
}
"""Ending -> what writes such a file."""
