"""Images in files."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor

__all__: list[str] = []


@shape_function("ImageDecoder")
def image_decoder(call: ShapeCall, x: Fact, *, pixel_format: str = "RGB") -> Fact:
    """Return (H, W, channels), of which only the channels are known."""
    return tensor(DataType.UINT8, (anonymous(), anonymous(), 1 if pixel_format == "Grayscale" else 3))
