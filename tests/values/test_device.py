"""Devices."""

from __future__ import annotations

import pytest

import sardonyx as ort
from sardonyx.values.device import CPU, OrtDevice, OrtDeviceVendorId, device_of


@pytest.mark.parametrize(
    ("name", "kind", "vendor"),
    [("cpu", 0, 0), ("CUDA", 1, 0x10DE), ("npu", 3, 0), ("cann", 3, 0x19E5), ("dml", 4, 0x1414), ("webgpu", 1, 0)],
)
def test_a_name_gives_the_numbers_of_onnxruntime(name: str, kind: int, vendor: int) -> None:
    """Type, memory and vendor; the index is the caller's."""
    made = OrtDevice.make(name, 2)
    assert (made.device_type(), made.device_mem_type(), made.device_vendor_id(), made.device_id()) == (kind, 0, vendor, 2)


def test_a_vendor_may_be_given() -> None:
    """It takes the place of the one that the name implies; its text is its number."""
    assert str(OrtDeviceVendorId.INTEL) == "32902"
    assert OrtDevice.make("npu", 0, OrtDeviceVendorId.INTEL).vendor_id() == 0x8086


def test_a_device_is_made_of_integers() -> None:
    """With or without the vendor, as the compiled class of onnxruntime takes them."""
    assert OrtDevice(OrtDevice.cpu(), OrtDevice.default_memory(), 0) == CPU
    assert OrtDevice(1, 0, 0x10DE, 3) == OrtDevice.make("cuda", 3)
    assert len({OrtDevice(CPU), CPU}) == 1


@pytest.mark.parametrize("arguments", [(), (1,), (1, 2), (CPU, 1, 2)])
def test_other_arguments_are_refused(arguments: tuple[int | OrtDevice, ...]) -> None:
    """The message lists what is taken."""
    with pytest.raises(ort.InvalidArgument, match=r"type, memory type, \[vendor\] and index"):
        OrtDevice(*arguments)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    """Also where a function takes a device or a name."""
    with pytest.raises(ort.InvalidArgument, match="Unsupported device type: 'foo'; known: cpu, cuda"):
        device_of("foo")
