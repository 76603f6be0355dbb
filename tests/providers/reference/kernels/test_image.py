"""Facts about decoding image files."""

import io
import sys

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx import errors

Image = pytest.importorskip("PIL.Image")
PIXELS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 10


def encoded(image_format="PNG"):
    stream = io.BytesIO()
    Image.fromarray(PIXELS).save(stream, image_format)
    return np.frombuffer(stream.getvalue(), np.uint8)


@pytest.mark.parametrize("image_format", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_files_give_their_pixels(image_format):
    """Channels come last, as RGB or BGR."""
    np.testing.assert_array_equal(run_op("ImageDecoder", encoded(image_format)), PIXELS)
    np.testing.assert_array_equal(run_op("ImageDecoder", encoded(image_format), pixel_format="BGR"), PIXELS[:, :, ::-1])


def test_grayscale_has_one_channel():
    """The luminance stands on an axis of length 1."""
    result = run_op("ImageDecoder", encoded(), pixel_format="Grayscale")
    assert (result.shape, result.dtype) == ((2, 3, 1), np.uint8)


@pytest.mark.parametrize(("pixel_format", "shape"), [("RGB", (0, 0, 3)), ("Grayscale", (0, 0, 1))])
def test_what_cannot_be_decoded_is_an_empty_image(pixel_format, shape):
    """Text, no bytes at all and a truncated file."""
    for stream in (np.frombuffer(b"no image", np.uint8), np.zeros(0, np.uint8), encoded()[:40]):
        assert run_op("ImageDecoder", stream, pixel_format=pixel_format).shape == shape


def test_wrong_arguments_are_rejected():
    """An unknown format of pixels, a stream that is no vector of bytes."""
    with pytest.raises(errors.InvalidArgument, match="CMYK"):
        run_op("ImageDecoder", encoded(), pixel_format="CMYK")
    with pytest.raises(errors.InvalidArgument, match="uint8"):
        run_op("ImageDecoder", np.zeros((2, 2), np.uint8))


def test_a_missing_pillow_is_explained(monkeypatch):
    """The message names the extra to install."""
    stream = encoded()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(errors.NotImplemented, match=r"pip install 'sardonyx\[image\]'"):
        run_op("ImageDecoder", stream)
