"""Facts about operators of sardonyx.tflite that choose boxes."""

from __future__ import annotations

from support.infer_op import floats, infer_op, ints, scalar

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import tensor

DOMAIN = "sardonyx.tflite"


def test_detections_are_as_many_as_there_may_be() -> None:
    """Times the classes of each."""
    found = infer_op(
        "DetectionPostProcess",
        floats(1, 9, 4),
        floats(1, 9, 3),
        floats(9, 4),
        domain=DOMAIN,
        outputs=4,
        max_detections=5,
        max_classes_per_detection=2,
    )
    assert [fact.shape for fact in found] == [(1, 10, 4), (1, 10), (1, 10), (1,)]


def test_places_are_as_many_as_are_asked_for() -> None:
    """Where that is known."""
    one = scalar(1)
    found = infer_op("NonMaxSuppressionPadded", floats(9, 4), floats(9), ints(7), one, one, domain=DOMAIN, outputs=3)
    assert [fact.shape for fact in found] == [(7,), (7,), ()]
    asked = tensor(DataType.INT32, ())
    found = infer_op("NonMaxSuppressionPadded", floats(9, 4), floats(9), asked, one, one, domain=DOMAIN, outputs=3)
    assert found[0].shape is not None
    assert not isinstance(found[0].shape[0], int)
