"""Facts about operators whose data is channels-last."""

from __future__ import annotations

from support.infer_op import A, B, floats, infer_op, infer_shape

NHWC = "sardonyx.nhwc"


def test_convolution() -> None:
    """Data and output have the channels last, the weights are as they were."""
    x, w = floats(A, 224, B, 3), floats(64, 3, 7, 7)
    assert infer_shape("Conv", x, w, domain=NHWC, version=13, strides=(2, 2), pads=(3, 3, 3, 3)) == (A, 112, (B - 1) // 2 + 1, 64)


def test_pools_and_normalizations() -> None:
    """Pools slide over the middle axes, and normalizations keep the shape."""
    places = infer_op("MaxPool", floats(A, 8, 8, 3), domain=NHWC, version=12, outputs=2, kernel_shape=(2, 2))
    assert [fact.shape for fact in places] == [(A, 7, 7, 3), (A, 7, 7, 3)]
    assert infer_shape("GlobalAveragePool", floats(A, 8, B, 3), domain=NHWC, version=13) == (A, 1, 1, 3)
    vector = floats(3)
    normalized = infer_op("BatchNormalization", floats(A, 8, 8, 3), vector, vector, vector, vector, domain=NHWC, version=13)
    assert normalized[0].shape == (A, 8, 8, 3)


def test_blocks() -> None:
    """DepthToSpace takes the channels from the last axis."""
    assert infer_shape("DepthToSpace", floats(A, B, 5, 12), domain=NHWC, version=13, blocksize=2) == (A, 2 * B, 10, 3)
