"""Devices of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

import sardonyx as ort


def test_the_processor_is_the_only_device() -> None:
    """The CPU provider uses it, in the host's memory, without streams."""
    (device,) = ort.get_ep_devices()
    assert (device.ep_name, device.device.type) == ("CPUExecutionProvider", ort.OrtHardwareDeviceType.CPU)
    assert device.memory_info(ort.OrtDeviceMemoryType.DEFAULT) is None
    with pytest.raises(ort.Fail, match="no device with streams"):
        device.create_sync_stream()


def test_a_provider_says_why_it_cannot_use_a_device() -> None:
    """0 where it can."""
    (cpu,) = ort.get_hardware_devices()
    gpu = ort.OrtHardwareDevice(ort.OrtHardwareDeviceType.GPU, 0, "", 0)
    ask = ort.get_hardware_device_ep_incompatibility_details
    assert ask("CPUExecutionProvider", cpu)["reasons_bitmask"] == 0
    assert ask("CPUExecutionProvider", gpu)["reasons_bitmask"] == ort.OrtDeviceEpIncompatibilityReason.DEVICE_INCOMPATIBLE
    with pytest.raises(ort.InvalidArgument, match="FooExecutionProvider"):
        ask("FooExecutionProvider", cpu)


def test_compiled_providers_are_refused(tmp_path: Path) -> None:
    """A library that is not there is Fail, as in onnxruntime; one that is there cannot be used."""
    with pytest.raises(ort.Fail, match="Failed to load library"):
        ort.register_execution_provider_library("mine", str(tmp_path / "none.so"))
    (tmp_path / "some.so").write_bytes(b"")
    with pytest.raises(ort.NotImplemented, match="write-a-provider"):
        ort.register_execution_provider_library("mine", str(tmp_path / "some.so"))
    with pytest.raises(ort.Fail, match="mine was not registered"):
        ort.unregister_execution_provider_library("mine")
