"""Facts about decoding image files."""

import io
import sys

import numpy as np
import pytest
from support.run_op import run_op
from support.session_models import session

from sardonyx import errors

Image = pytest.importorskip("PIL.Image")
PIXELS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 10


def encoded(image_format="PNG", pixels=PIXELS, **options):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, image_format, **options)
    return np.frombuffer(stream.getvalue(), np.uint8)


@pytest.mark.parametrize("image_format", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_files_give_their_pixels(image_format):
    """Channels come last, as RGB or BGR."""
    np.testing.assert_array_equal(run_op("ImageDecoder", encoded(image_format)), PIXELS)
    np.testing.assert_array_equal(run_op("ImageDecoder", encoded(image_format), pixel_format="BGR"), PIXELS[:, :, ::-1])


@pytest.mark.parametrize(
    ("image_format", "options"),
    [
        ("JPEG", {"quality": 95}),
        ("JPEG2000", {"irreversible": False}),
        ("WEBP", {"lossless": True}),
        ("PNG", {}),
        ("TIFF", {}),
        ("BMP", {}),
        ("PPM", {}),
    ],
)
def test_every_format_that_the_standard_names_is_read(image_format, options):
    """The pixels come back, those of JPEG nearly."""
    pixels = np.full((16, 24, 3), (200, 90, 30), np.uint8)
    found = run_op("ImageDecoder", encoded(image_format, pixels, **options))
    np.testing.assert_allclose(found.astype(int), pixels.astype(int), atol=3 if image_format == "JPEG" else 0)


@pytest.mark.parametrize(
    ("head", "body", "levels"),
    [
        (b"P1\n2 1\n", b"0 1\n", [255, 0]),
        (b"P2\n2 1\n255\n", b"7 200\n", [7, 200]),
        (b"P3\n1 1\n255\n", b"9 9 9\n", [9]),
        (b"P4\n2 1\n", b"\x40", [255, 0]),
        (b"P5\n2 1\n255\n", b"\x07\xc8", [7, 200]),
        (b"P6\n1 1\n255\n", b"\x09" * 3, [9]),
    ],
)
def test_portable_formats_are_read(head, body, levels):
    """Bitmaps, gray and colour, each as text and in binary."""
    found = run_op("ImageDecoder", np.frombuffer(head + body, np.uint8))
    np.testing.assert_array_equal(found, np.repeat(np.array(levels, np.uint8)[None, :, None], 3, axis=2))


def test_sixteen_bits_keep_their_upper_half():
    """Of 16-bit gray the result has the upper 8 bits."""
    stream = encoded("PNG", np.array([[0, 0x1280, 0xFFFF]], np.uint16))
    np.testing.assert_array_equal(run_op("ImageDecoder", stream)[0, :, 0], [0, 0x12, 0xFF])
    np.testing.assert_array_equal(run_op("ImageDecoder", stream, pixel_format="Grayscale")[0, :, 0], [0, 0x12, 0xFF])


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
    """No session is made of a model that decodes images; the message names the extra to install."""
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(errors.NotImplemented, match=r"pip install 'sardonyx\[image\]'"):
        session("graph(x: uint8[n]) -> (y: uint8[h, w, 3]) {\ny = ImageDecoder(x)\n}")
