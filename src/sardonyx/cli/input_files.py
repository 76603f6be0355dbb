"""What `--input` reads: `.npy`, `.npz`, `.pb`, `.json`, images, and folders of ONNX's test data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType, OnnxValue, is_float
from sardonyx.errors import InvalidArgument
from sardonyx.formats import tensor_file
from sardonyx.session.values import NodeArg
from sardonyx.spelling import nearest

__all__ = ["IMAGES", "Range", "read_archive", "read_inputs"]

Range = tuple[float, float]
"""The least and the greatest value of an input."""
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm")
"""The endings of files that are read as images."""
_CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}
_SIDE = 224
"""The height and width of an image where the model leaves them open and no size is given."""


def read_inputs(
    arguments: Sequence[NodeArg], texts: Sequence[str], sizes: Mapping[str, int], ranges: Mapping[str, Range]
) -> dict[str, OnnxValue]:
    """Return the inputs that files give.

    Args:
        arguments: the model's inputs.
        texts: NAME=FILE for one input, or NAME=VALUE, in JSON; FILE.npz or a folder for several; FILE for the only input.
        sizes: symbolic dimension -> size, for images.
        ranges: input -> what black and white of an image become; 0 and 1 where it is left out and the input takes floats.

    Raises:
        InvalidArgument: a text names no input or no file that can be read, with what can.
    """
    by_name = {argument.name: argument for argument in arguments}
    found: dict[str, OnnxValue] = {}
    for text in texts:
        name, separator, path = text.partition("=")
        if separator and (name in by_name or not Path(text).exists()):
            if name not in by_name:
                raise _unknown(name, by_name)
            if not path:
                raise InvalidArgument(f"--input {text}: a file or a value in JSON is expected behind '=', and there is nothing")
            value = None if Path(path).exists() else _literal(by_name[name], path)
            found[name] = _read(by_name[name], Path(path), sizes, ranges.get(name)) if value is None else value
        else:
            found |= _read_several(arguments, Path(text), sizes, ranges)
    return {name: _typed(by_name[name], value) for name, value in found.items()}


def _typed(argument: NodeArg, value: OnnxValue) -> OnnxValue:
    """Return an array of a type that NumPy's files keep as bytes, such as bfloat16, as what the input takes."""
    is_bytes = isinstance(value, np.ndarray) and value.dtype.kind == "V" and value.dtype.names is None
    dtype = _dtype(argument).numpy if is_bytes and argument.type.startswith("tensor(") else None
    return value.view(dtype) if dtype is not None and dtype.itemsize == value.dtype.itemsize else value


def _unknown(name: str, known: Mapping[str, NodeArg]) -> InvalidArgument:
    close = nearest(name, known)
    return InvalidArgument(
        f"--input: the model has no input {name!r}; " + (f"did you mean {close!r}?" if close else f"its inputs are {list(known)}")
    )


def _read_several(
    arguments: Sequence[NodeArg], path: Path, sizes: Mapping[str, int], ranges: Mapping[str, Range]
) -> dict[str, OnnxValue]:
    by_name = {argument.name: argument for argument in arguments}
    if path.is_dir():
        return _read_folder(arguments, path)
    if path.suffix == ".npz":
        arrays = _load_numpy(path)
        for name in arrays:
            if name not in by_name:
                raise _unknown(name, by_name)
        return dict(arrays)
    if len(arguments) == 1:
        return {arguments[0].name: _read(arguments[0], path, sizes, ranges.get(arguments[0].name))}
    raise InvalidArgument(
        f"--input takes NAME=FILE, FILE.npz or a folder with input_0.pb …, got {str(path)!r}; its inputs are {list(by_name)}"
    )


def _read_folder(arguments: Sequence[NodeArg], folder: Path) -> dict[str, OnnxValue]:
    """Read a `test_data_set_N` folder: input_0.pb is the first input unless the file names another."""
    files = sorted(folder.glob("input_*.pb"), key=lambda file: int(re.sub(r"\D", "", file.stem) or 0))
    if not files:
        raise InvalidArgument(f"the folder {folder} holds no input_0.pb; a test_data_set folder of ONNX is expected")
    by_name = {argument.name: argument for argument in arguments}
    found = {}
    for index, file in enumerate(files):
        argument = arguments[min(index, len(arguments) - 1)]
        name, value = tensor_file.load(file, argument.type)
        if name not in by_name and index >= len(arguments):
            raise InvalidArgument(f"{file}: the model has {len(arguments)} inputs, {list(by_name)}, and none is called {name!r}")
        found[name if name in by_name else argument.name] = value
    return found


def _read(argument: NodeArg, path: Path, sizes: Mapping[str, int], interval: Range | None) -> OnnxValue:
    suffix = path.suffix.lower()
    if not path.exists():
        raise InvalidArgument(
            f"there is no file {str(path)!r} for --input NAME=FILE, where NAME is {argument.name!r}; values are written as "
            "JSON, such as 3, [[1, 2]] or '[\"text\"]'"
        )
    if path.is_dir():
        raise InvalidArgument(
            f"--input {argument.name}={path}: {str(path)!r} is a folder; a file is expected, and a test_data_set folder of ONNX, "
            "which feeds all inputs, stands alone: --input FOLDER"
        )
    if suffix == ".pb":
        return tensor_file.load(path, argument.type)[1]
    if suffix == ".json":
        return _from_json(argument, path)
    if suffix in IMAGES:
        return _read_image(argument, path, sizes, interval)
    loaded = _load_numpy(path)
    if isinstance(loaded, np.ndarray):
        return loaded
    if argument.name not in loaded and len(loaded) != 1:
        raise InvalidArgument(f"{path} holds {list(loaded)}, and none of them is called {argument.name!r}")
    return loaded.get(argument.name, next(iter(loaded.values())))


def read_archive(path: Path) -> dict[str, Array]:
    """Return the arrays of a .npz file by name; raises InvalidArgument where it is none."""
    loaded = _load_numpy(path)
    if isinstance(loaded, np.ndarray):
        raise InvalidArgument(f"{path} holds one array without a name; `numpy.savez` writes several with names")
    return dict(loaded)


def _load_numpy(path: Path) -> Any:  # an array, or a dictionary of arrays
    try:
        loaded = np.load(path, allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except (ValueError, EOFError) as error:
        known = f".pb, .json and images ({', '.join(IMAGES)}) can be read too"
        raise InvalidArgument(f"{path} is no .npy or .npz file that can be read without unpickling; {known}") from error


def _literal(argument: NodeArg, text: str) -> OnnxValue | None:
    """Return the value that a text is in JSON; None where it is none, and so the name of a file.

    Raises:
        InvalidArgument: it begins as lists and texts of JSON do, and is none.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        if text.lstrip().startswith(("[", "{", '"')):
            raise InvalidArgument(f"--input {argument.name}={text}: this is no JSON, and there is no such file: {error}") from error
        return None
    return _of_json(argument, value, f"--input {argument.name}={text}")


def _from_json(argument: NodeArg, path: Path) -> OnnxValue:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument(f"{path} is no JSON: {error}") from error
    return _of_json(argument, value, str(path))


def _of_json(argument: NodeArg, value: Any, place: str) -> OnnxValue:  # what json.loads returns
    if argument.type.startswith("tensor("):
        try:
            return np.array(value, dtype=_dtype(argument).numpy)
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidArgument(
                f"{place}: input {argument.name!r} takes a {argument.type}, which this is not: {error}"
            ) from error
    if argument.type.startswith("map(int"):
        return {int(key): item for key, item in value.items()}
    return value


def _dtype(argument: NodeArg) -> DataType:
    return DataType.parse(argument.type.removeprefix("tensor(").removesuffix(")"))


def _read_image(argument: NodeArg, path: Path, sizes: Mapping[str, int], interval: Range | None) -> Array:
    """Return an image as [N, C, H, W] or [N, H, W, C], whichever has 1, 3 or 4 channels; without N where the rank is 3."""
    try:
        from PIL import Image
    except ImportError as error:
        raise InvalidArgument(f"{path}: images need Pillow; pip install 'sardonyx[image]'") from error
    dims = [dim if isinstance(dim, int) else sizes.get(dim or "") for dim in argument.shape][-3:]
    if not argument.type.startswith("tensor(") or len(dims) < 3:
        raise InvalidArgument(f"{path}: input {argument.name!r} is a {argument.type} of shape {argument.shape}, and takes no image")
    is_last = dims[0] not in _CHANNELS and dims[2] in _CHANNELS
    channels, height, width = (dims[2], dims[0], dims[1]) if is_last else (dims[0], dims[1], dims[2])
    image = Image.open(path).convert(_CHANNELS.get(channels or 3, "RGB")).resize((width or _SIDE, height or _SIDE))
    pixels = np.asarray(image, np.float64)
    pixels = pixels if pixels.ndim == 3 else pixels[:, :, np.newaxis]
    dtype = _dtype(argument)
    low, high = interval or ((0.0, 1.0) if is_float(dtype) else (0.0, 255.0))
    scaled = low + pixels / 255 * (high - low)
    laid_out = scaled if is_last else scaled.transpose(2, 0, 1)
    return np.ascontiguousarray(laid_out[np.newaxis] if len(argument.shape) == 4 else laid_out).astype(dtype.numpy)
