"""Facts about convolutions."""

from __future__ import annotations

from support.infer_op import UNKNOWN_DIM, A, B, dtype_of, error_of, floats, infer_op, infer_shape, ints

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor


def test_conv() -> None:
    """Batch and output channels, then the places of the kernel."""
    assert infer_shape("Conv", floats(A, 3, 224, 224), floats(64, 3, 7, 7), strides=(2, 2), pads=(3, 3, 3, 3)) == (A, 64, 112, 112)
    assert infer_shape("Conv", floats(1, 4, B), floats(8, 2, 3), group=2, dilations=(2,)) == (1, 8, B - 4)
    assert infer_shape("Conv", tensor(DataType.FLOAT), floats(8, 2, 3)) == (UNKNOWN_DIM,) * 3


def test_conv_refuses_what_cannot_be() -> None:
    """Channels, ranks and kernel sizes are checked."""
    assert "has 4 channels, but W" in error_of("Conv", floats(1, 4, 8), floats(8, 3, 3))
    assert "different ranks" in error_of("Conv", floats(1, 4, 8), floats(8, 4, 3, 3))
    assert "kernel_shape=[3] for filters of spatial shape [3, 3]" in error_of(
        "Conv", floats(1, 4, 8, 8), floats(8, 4, 3, 3), kernel_shape=(3,)
    )


def test_types_of_quantized_convolutions() -> None:
    """ConvInteger gives int32, QLinearConv the type of its last zero point."""
    x, w = tensor(DataType.UINT8, (1, 2, 8)), tensor(DataType.INT8, (4, 2, 3))
    assert dtype_of("ConvInteger", x, w) is DataType.INT32
    (fact,) = infer_op("QLinearConv", x, floats(), x, w, floats(), w, floats(), tensor(DataType.INT8, ()))
    assert (fact.dtype, fact.shape) == (DataType.INT8, (1, 4, 6))


def test_conv_transpose() -> None:
    """The size over which the convolution would slide, or the one that is asked for."""
    assert infer_shape("ConvTranspose", floats(A, 4, B), floats(4, 3, 2), strides=(2,), group=2) == (A, 6, 2 * B)
    assert infer_shape("ConvTranspose", floats(1, 4, 5), floats(4, 3, 2), output_shape=(11,)) == (1, 3, 11)
    assert infer_shape("ConvTranspose", floats(1, 4, 5), floats(4, 3, 3), auto_pad="SAME_UPPER", strides=(2,)) == (1, 3, 10)
    assert "has 5 channels" in error_of("ConvTranspose", floats(1, 5, 5), floats(4, 3, 2))


def test_deform_conv_is_as_conv() -> None:
    """The offsets change no shape."""
    assert infer_shape("DeformConv", floats(A, 1, 5, 5), floats(2, 1, 3, 3), floats(A, 18, 3, 3)) == (A, 2, 3, 3)


def test_col2im_folds_blocks() -> None:
    """Channels are divided by the block's area, and the image gets its sizes."""
    assert infer_shape("Col2Im", floats(A, 18, 4), ints(5, B), ints(3, 3)) == (A, 2, 5, B)


def test_causal_conv_keeps_the_shape_and_gives_the_state() -> None:
    """The state has the last k - 1 elements of each channel."""
    output, state = infer_op("CausalConvWithState", floats(A, 8, B), floats(8, 1, 4), outputs=2)
    assert output.shape == (A, 8, B)
    assert state.shape == (A, 8, 3)


def test_causal_conv_of_microsoft_has_dilation_layout_and_windows() -> None:
    """The state is (k - 1) x dilation long, may lie second, and may have slots before it."""
    inputs, options = (floats(A, 8, B), floats(8, 1, 4)), {"domain": "com.microsoft", "outputs": 2}
    assert infer_op("CausalConvWithState", *inputs, dilation=2, state_window=5, **options)[1].shape == (5, A, 8, 6)
    output, state = infer_op("CausalConvWithState", floats(A, B, 2, 4), floats(8, 1, 4), channels_last=1, **options)
    assert output.shape == (A, B, 2, 4)
    assert state.shape == (A, 3, 2, 4)
