"""What `quantize --data` reads: feeds, from one file or from a folder of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sardonyx.cli.input_files import IMAGES, read_inputs
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.session.values import NodeArg

__all__ = ["labelled_feeds", "read_feeds"]

_ENDINGS = (".npy", ".npz", ".pb", *IMAGES)


def read_feeds(arguments: Sequence[NodeArg], paths: Sequence[str], batch: int) -> Iterator[dict[str, OnnxValue]]:
    """Yield the feeds of files and folders.

    A `.npz` whose arrays have more examples along their first axis than a batch is cut into batches; so is a `.npy` for the
    only input. A folder holds such files, images, or `test_data_set_N` folders, each of which is a feed.

    Args:
        arguments: the model's inputs.
        paths: files and folders.
        batch: how many examples are fed at once where the first axis is open; else what the model takes.

    Raises:
        InvalidArgument: a path holds nothing that can be fed.
    """
    for path in map(Path, paths):
        for file in _files(path):
            yield from _cut(arguments, read_inputs(arguments, [str(file)], {}, {}), batch)


def labelled_feeds(arguments: Sequence[NodeArg], path: Path, batch: int) -> tuple[list[dict[str, OnnxValue]], Array]:
    """Return the feeds of a `.npz` file, and its array `labels`.

    Raises:
        InvalidArgument: it is no such file, or it lacks the labels or an input.
    """
    try:
        with np.load(path) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"--evaluate takes a .npz file with the inputs and `labels`; {path} is none: {error}") from error
    labels = arrays.pop("labels", None)
    names = [argument.name for argument in arguments]
    if labels is None:
        raise InvalidArgument(f"{path} holds {sorted(arrays)}, but no `labels`, the class of each example")
    if len(names) == 1 and len(arrays) == 1:
        arrays = dict(zip(names, arrays.values(), strict=True))
    missing = [name for name in names if name not in arrays]
    if missing:
        raise InvalidArgument(f"{path} holds {sorted(arrays)}, but no {missing[0]!r}, which is an input of the model")
    return list(_cut(arguments, {name: arrays[name] for name in names}, batch)), labels


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise InvalidArgument(f"there is no file or folder {str(path)!r} for --data")
    if not path.is_dir() or list(path.glob("input_*.pb")):
        return [path]
    found = [file for file in sorted(path.iterdir()) if file.is_dir() or file.suffix.lower() in _ENDINGS]
    if not found:
        raise InvalidArgument(f"the folder {path} holds none of {', '.join(_ENDINGS)}, nor test_data_set folders")
    return found


def _cut(arguments: Sequence[NodeArg], feed: dict[str, OnnxValue], batch: int) -> Iterator[dict[str, OnnxValue]]:
    """Yield a feed in batches, where all of its arrays have as many examples along the first axis, and more than a batch."""
    counts = {len(value) for value in feed.values() if isinstance(value, np.ndarray) and value.ndim}
    sizes = {argument.shape[0] for argument in arguments if argument.name in feed and argument.shape}
    fixed = {size for size in sizes if isinstance(size, int)}
    step = min(fixed) if fixed else batch
    if len(counts) != 1 or len(fixed) > 1 or step < 1 or next(iter(counts)) <= step:
        yield feed
        return
    (count,) = counts
    for first in range(0, count - count % step if fixed else count, step):
        yield {name: value[first : first + step] for name, value in feed.items()}
