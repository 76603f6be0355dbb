"""Providers by devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.device_choice import provider_of

CPU = "CPUExecutionProvider"


def _bytes() -> bytes:
    made = model("graph(x: float[2]) -> (y) { y = Neg(x) }")
    made.metadata["maker"] = "me"
    return to_bytes(made)


def test_devices_bring_their_provider() -> None:
    """With their options and those given."""
    options = ort.SessionOptions()
    options.add_provider_for_devices(ort.get_ep_devices(), {"intra_op_num_threads": 1})
    assert options.has_providers()
    session = ort.InferenceSession(_bytes(), options)
    assert session.get_providers()[0] == CPU
    assert session.get_provider_options()[CPU]["intra_op_num_threads"] == "1"


@pytest.mark.parametrize("devices", [[], ["CPU"]])
def test_what_are_no_devices_is_refused(devices: list[str]) -> None:
    """So are those of several providers."""
    with pytest.raises(ort.InvalidArgument, match="one or more devices of get_ep_devices"):
        ort.SessionOptions().add_provider_for_devices(devices, {})  # type: ignore[arg-type]  # what is refused
    (device,) = ort.get_ep_devices()
    with pytest.raises(ort.InvalidArgument, match="devices must be of one provider, got those of CPU.*, Other"):
        provider_of([device, dataclasses.replace(device, ep_name="Other")], {})


def test_a_function_chooses_devices() -> None:
    """It gets those that there are, and the model's metadata."""
    told: list[object] = []

    def choose(
        devices: Sequence[ort.OrtEpDevice], model_metadata: dict[str, str], runtime: dict[str, str], most: int
    ) -> list[ort.OrtEpDevice]:
        told.extend([len(devices), model_metadata, runtime, most])
        return [device for device in devices if device.device.type is ort.OrtHardwareDeviceType.CPU]

    options = ort.SessionOptions()
    options.set_provider_selection_policy_delegate(choose)
    assert ort.InferenceSession(_bytes(), options).get_providers()[0] == CPU
    assert told == [1, {"maker": "me"}, {}, 8]


def test_a_function_that_chooses_nothing_is_an_error() -> None:
    """So is one that raises; providers that a session names are taken without asking it."""
    options = ort.SessionOptions()
    options.set_provider_selection_policy_delegate(lambda *_given: [])
    with pytest.raises(ort.EPFail, match="returns 1 to 8 of those that it gets"):
        ort.InferenceSession(_bytes(), options)
    options.set_provider_selection_policy_delegate(lambda *_given: 1 // 0)  # type: ignore[arg-type, return-value]  # as a user may
    with pytest.raises(ort.EPFail, match="ZeroDivisionError"):
        ort.InferenceSession(_bytes(), options)
    assert ort.InferenceSession(_bytes(), options, [CPU]).get_providers()[0] == CPU
    with pytest.raises(TypeError, match="takes a function"):
        options.set_provider_selection_policy_delegate(3)  # type: ignore[arg-type]  # what is refused


def test_a_policy_is_one_of_the_enumeration() -> None:
    """There is one kind of device, which every policy comes to."""
    options = ort.SessionOptions()
    options.set_provider_selection_policy(ort.OrtExecutionProviderDevicePolicy.PREFER_NPU)
    assert ort.InferenceSession(_bytes(), options).get_providers()[0] == CPU
    with pytest.raises(TypeError, match="OrtExecutionProviderDevicePolicy"):
        options.set_provider_selection_policy(3)  # type: ignore[arg-type]  # what is refused
