"""A small model that shows a difference, as files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from sardonyx.diff.report import Finding
from sardonyx.errors import InvalidArgument
from sardonyx.formats import onnx as onnx_format

__all__ = ["free_path", "save_reproducer"]

_MOST = 1000


def save_reproducer(found: Finding, path: Path) -> Path:
    """Write the model of a finding to `path`, and its inputs beside it.

    Returns:
        The file of the inputs, NAME.npz for NAME.onnx: an archive that `numpy.load` reads, with one array for each input that is a
        tensor without text. Elements of a type that NumPy lacks, such as bfloat16, are kept as bytes.

    Raises:
        InvalidArgument: a file is there already.
        OSError: it cannot be written.
    """
    data = path.with_suffix(".npz")
    for file in (path, data):
        if file.exists():
            raise InvalidArgument(f"{file} is there already; name another file for the small model")
    onnx_format.save(found.model, path)
    with zipfile.ZipFile(data, "x", zipfile.ZIP_DEFLATED) as archive:
        for name, value in found.feed.items():
            if isinstance(value, np.ndarray) and not value.dtype.hasobject:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, value, allow_pickle=False)
    return data


def free_path(model: Path, folder: Path) -> Path:
    """Return a file in `folder` for the small model of `model`, STEM.diff.onnx or one with a number, that is not there yet."""
    stem = model.name.removesuffix(".onnx")
    names = (f"{stem}.diff{f'-{number}' if number else ''}" for number in range(_MOST))
    free = (folder / f"{name}.onnx" for name in names if not any((folder / f"{name}{end}").exists() for end in (".onnx", ".npz")))
    path = next(free, None)
    if path is None:
        raise InvalidArgument(f"{folder} holds {_MOST} small models of {stem} already; give a file for this one")
    return path
