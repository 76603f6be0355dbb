"""Decoding of image files inside a model."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from sardonyx import errors
from sardonyx.dtypes import Array
from sardonyx.forks import without_fork
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []

_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
"""pixel_format -> the Pillow mode to decode into."""


def _pillow() -> Any:
    with without_fork():
        from PIL import Image
    return Image


def _missing_package() -> str | None:
    try:
        _pillow()
    except ImportError:
        return "ImageDecoder needs Pillow, which is not installed; install it with: pip install 'sardonyx[image]'"
    return None


def _in_eight_bits(image: Any, opened: Any) -> Any:
    """Return an image of Pillow with the upper 8 bits where it has 16: its own conversion would cut off at 255."""
    if not opened.mode.startswith("I;16"):
        return opened
    return image.fromarray((np.asarray(opened) >> 8).astype(np.uint8))


@kernel("ImageDecoder", since=20, problem=_missing_package)
def image_decoder(_node: Call, encoded_stream: Array, *, pixel_format: str = "RGB") -> Array:
    """Decode a file's bytes, uint8 (length,), to uint8 (H, W, C): 3 channels, for Grayscale 1. ONNX ImageDecoder-20.

    Bytes that are no image give an empty one, (0, 0, C). Pillow decodes, with libjpeg-turbo's smooth chroma upsampling.
    """
    if pixel_format not in _MODES:
        raise errors.InvalidArgument(f"pixel_format={pixel_format!r}; expected RGB, BGR or Grayscale")
    if encoded_stream.ndim != 1 or encoded_stream.dtype != np.uint8:
        raise errors.InvalidArgument(
            f"the stream has shape {encoded_stream.shape} and type {encoded_stream.dtype}; expected uint8 (length,)"
        )
    image = _pillow()
    try:
        with image.open(io.BytesIO(encoded_stream.tobytes())) as opened:
            pixels = np.asarray(_in_eight_bits(image, opened).convert(_MODES[pixel_format]))
    except image.DecompressionBombError as error:
        raise errors.InvalidArgument(f"the image is too large to decode safely: {error}") from error
    except (OSError, SyntaxError, ValueError):
        pixels = np.zeros((0, 0, 3) if pixel_format != "Grayscale" else (0, 0), np.uint8)
    if pixel_format == "Grayscale":
        return pixels[:, :, None]
    return pixels[:, :, ::-1] if pixel_format == "BGR" else pixels
