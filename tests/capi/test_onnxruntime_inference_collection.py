"""The module of Python classes."""

from __future__ import annotations

import pytest

import sardonyx as ort
from sardonyx.capi import onnxruntime_inference_collection as collection


def test_its_classes_are_those_of_the_package() -> None:
    """`Session` is the base class of sessions."""
    assert collection.InferenceSession is ort.InferenceSession
    assert collection.Session in ort.InferenceSession.__bases__
    assert collection.OrtValue is ort.OrtValue


def test_a_kind_of_device_has_a_number() -> None:
    """An unknown one is refused."""
    assert collection.get_ort_device_type("cuda") == 1
    with pytest.raises(ort.InvalidArgument, match="Unsupported device type"):
        collection.get_ort_device_type("foo")


KNOWN = ["A", "B"]


@pytest.mark.parametrize(
    ("providers", "options", "names", "own"),
    [
        (None, None, [], []),
        (["A", "B"], None, ["A", "B"], [{}, {}]),
        ([("A", {1: 2}), "B"], None, ["A", "B"], [{"1": "2"}, {}]),
        (["A", "B"], [{}, {"x": 1}], ["A", "B"], [{}, {"x": "1"}]),
    ],
)
def test_providers_and_options_become_two_lists(providers: object, options: object, names: object, own: object) -> None:
    """Of texts, and as long as each other."""
    found = collection.check_and_normalize_provider_args(providers, options, KNOWN)
    assert found == (names, own)


@pytest.mark.parametrize("providers", [["A", "C"], ["A", "B", "A"]])
def test_unknown_and_repeated_providers_are_warned_of(providers: list[str]) -> None:
    """The first of a name counts."""
    with pytest.warns(UserWarning, match="provider 'C' is not available|'A' is named more than once"):
        assert collection.check_and_normalize_provider_args(providers, None, KNOWN)[0] == providers[:2]


@pytest.mark.parametrize(
    ("providers", "options"),
    [(3, None), ("A", None), ([3], None), (["A"], 3), (["A"], ["x"]), (["A", "B"], [{}]), ([("A", {})], [{3: 4}])],
)
def test_malformed_providers_are_refused(providers: object, options: object) -> None:
    """By a ValueError."""
    with pytest.raises(ValueError, match="provider"):
        collection.check_and_normalize_provider_args(providers, options, KNOWN)


def test_a_kind_of_device_has_a_maker() -> None:
    """Where one maker makes it."""
    makers = [collection.get_vendor_id_for_device_type(kind) for kind in ("cuda", "dml", "cann", "webgpu", "cpu")]
    assert makers == [0x10DE, 0x1414, 0x19E5, 0, None]
