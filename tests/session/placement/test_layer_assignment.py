"""onnxruntime's entries that assign layers to devices."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.partition.pins import Pins
from sardonyx.partition.placement import ANNOTATION_KEY
from sardonyx.session.options import SessionOptions
from sardonyx.session.placement.layer_assignment import layer_pins
from sardonyx.session.settings.settings import read_settings

ANNOTATIONS, NAMES = "session.layer_assignment_settings", "session.name_based_layer_assignment"
CPU, REFERENCE = "CPUExecutionProvider", "ReferenceExecutionProvider"
SESSION = [CPU, REFERENCE]


def _pins(entries: dict[str, str], providers: list[str]) -> Pins:
    options = SessionOptions()
    for entry, text in entries.items():
        options.add_session_config_entry(entry, text)
    return layer_pins(read_settings(options).placement, providers)


def test_rules_are_read() -> None:
    """A device, or a provider with or without its ending."""
    found = _pins({ANNOTATIONS: f"cpu(encoder, =embed); {REFERENCE}(head); Reference(tail)"}, SESSION)
    assert found == Pins(layers={"encoder": CPU, "=embed": CPU, "head": REFERENCE, "tail": REFERENCE}, fall_through=True)
    assert _pins({NAMES: "cpu(layers.0)"}, SESSION) == Pins(name_parts={"layers.0": CPU}, fall_through=True)
    assert _pins({}, SESSION) == Pins()


@pytest.mark.parametrize("device", ["cuda", "gpu", "GPU:0", "gpu:nvidia", "accelerator", "CUDAExecutionProvider", "CUDA"])
def test_devices_are_looked_for_among_the_sessions_providers(device: str) -> None:
    """By kind, with what stands behind a colon, or by name."""
    providers = [CPU, "CUDAExecutionProvider", REFERENCE]
    assert _pins({ANNOTATIONS: f"{device}(a)"}, providers).layers == {"a": "CUDAExecutionProvider"}


@pytest.mark.parametrize("device", ["npu", "OpenVINO", "gpux"])
def test_a_device_that_is_not_there_is_passed_over(device: str) -> None:
    """The nodes stay where they would be; a warning says so."""
    with pytest.warns(UserWarning, match=f"assigned to '{device}', which is none of the session's .* one of cpu, gpu, cuda"):
        assert not _pins({ANNOTATIONS: f"{device}(encoder)"}, SESSION).layers


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({ANNOTATIONS: "cpu(a)", NAMES: "cpu(b)"}, "exclude each other"),
        ({ANNOTATIONS: "cpu"}, r"a list of DEVICE\(TEXT, TEXT\), .* got 'cpu'"),
        ({NAMES: "cpu(=a)"}, "leave out the equals sign"),
        ({NAMES: "cpu(a, b); Reference(a)"}, "the layer 'a' is assigned twice, to cpu and Reference"),
    ],
)
def test_what_is_malformed_is_refused(entries: dict[str, str], message: str) -> None:
    """With what was given."""
    with pytest.raises(InvalidArgument, match=message):
        _pins(entries, SESSION)


def test_sessions_follow_them() -> None:
    """By a part of the name, the longest first; and by annotation, where the first beginning wins."""
    held = model("graph(x: float[2]) -> (y: float[2]) {\na = Neg(x) @layers.1\nb = Exp(a) @layers.12\ny = Relu(b) @head\n}")
    for node in held.graph:
        node.metadata = {ANNOTATION_KEY: node.name}
    content = to_bytes(held)
    rules = ((NAMES, "Reference(layers.1); cpu(layers.12)"), (ANNOTATIONS, "cpu(layers.12); Reference(layers.1, =layers.12)"))
    for entry, text in rules:
        options = ort.SessionOptions()
        options.add_session_config_entry(entry, text)
        session = ort.InferenceSession(content, options, providers=[CPU])
        assert session.explain()[0].provider == REFERENCE
        assert {place.provider for place in session.explain()[1:]} == {CPU}
        np.testing.assert_allclose(session.run(None, {"x": np.zeros(2, np.float32)})[0], 1)
