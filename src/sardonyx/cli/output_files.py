"""What `--output-dir` writes: a file for each output, whatever its type."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.formats import tensor_file

__all__ = ["write_outputs"]


def write_outputs(folder: Path, names: Sequence[str], results: Sequence[OnnxValue]) -> list[tuple[str, str]]:
    """Write each output, and return its name with that of its file, or with why there is none.

    A tensor goes to NAME.npy (texts as NumPy's fixed-width type), one of a type that NumPy lacks to NAME.pb, a sequence of
    tensors to NAME.npz with the arrays 0, 1 …, and maps, also in sequences, to NAME.json.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    return [(name, _write(folder, _stem(name, taken), name, value)) for name, value in zip(names, results, strict=True)]


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


def _write(folder: Path, stem: str, name: str, value: OnnxValue) -> str:
    if value is None:
        return "not written: the optional is empty"
    if isinstance(value, np.ndarray):
        return _write_array(folder, stem, name, value)
    if isinstance(value, list) and value and all(isinstance(item, np.ndarray) and item.dtype.isbuiltin == 1 for item in value):
        arrays = {str(index): _plain(item) for index, item in enumerate(value)}
        np.savez(folder / f"{stem}.npz", **arrays)  # type: ignore[arg-type]  # a stub takes the names for allow_pickle
        return f"{stem}.npz"
    (folder / f"{stem}.json").write_text(json.dumps(_jsonable(value), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return f"{stem}.json"


def _write_array(folder: Path, stem: str, name: str, array: Array) -> str:
    if array.dtype != object and array.dtype.isbuiltin != 1:
        tensor_file.save(array, folder / f"{stem}.pb", name)
        return f"{stem}.pb"
    np.save(folder / f"{stem}.npy", _plain(array))
    return f"{stem}.npy"


def _plain(array: Array) -> Array:
    return array.astype(str) if array.dtype == object else array


def _jsonable(value: Any) -> Any:  # whatever a sequence or a map holds
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
