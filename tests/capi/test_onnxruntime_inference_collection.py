"""The module of Python classes."""

from __future__ import annotations

import pytest

import sardonyx as ort
from sardonyx.capi import onnxruntime_inference_collection as collection


def test_its_classes_are_those_of_the_package() -> None:
    """`Session` is the class of sessions."""
    assert collection.Session is collection.InferenceSession is ort.InferenceSession
    assert collection.OrtValue is ort.OrtValue


def test_a_kind_of_device_has_a_number() -> None:
    """An unknown one is refused."""
    assert collection.get_ort_device_type("cuda") == 1
    with pytest.raises(ort.InvalidArgument, match="Unsupported device type"):
        collection.get_ort_device_type("foo")
