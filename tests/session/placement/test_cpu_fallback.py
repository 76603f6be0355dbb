"""Falling back to the CPU provider, where it is forbidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model
from support.providers import FusingProvider

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from sardonyx.trace import Event, observe

ENTRY = "session.disable_cpu_ep_fallback"
TEXT = "graph(x: float[2]) -> (y: float[2]) {\n a = Relu(x)\n y = Exp(a)\n}"


def _session(providers: list[Any] | None) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry(ENTRY, "1")
    return ort.InferenceSession(to_bytes(model(TEXT)), options, providers=providers)


def test_a_session_that_needs_no_fallback_is_made() -> None:
    """Its provider claims every node."""
    session = _session([FusingProvider(("Relu", "Exp"))])
    np.testing.assert_allclose(session.run(None, {"x": np.zeros(2, np.float32)})[0], [1, 1])


def test_a_node_that_would_fall_back_is_named() -> None:
    """With why the session's own provider does not run it."""
    with pytest.raises(ort.Fail, match=r"1 nodes would fall back to .*Exp 'y' \(FusingProvider: Exp is not among its operators"):
        _session([FusingProvider(("Relu",))])


def test_naming_and_forbidding_the_cpu_provider_is_a_contradiction() -> None:
    """As in onnxruntime."""
    with pytest.raises(ort.InvalidArgument, match="give up one of them"):
        _session(["CPUExecutionProvider"])


def test_without_providers_all_is_fallback() -> None:
    """The built-in ones are what is fallen back to."""
    with pytest.raises(ort.Fail, match="2 nodes would fall back"):
        _session(None)


def test_providers_named_by_their_order_are_named() -> None:
    """The order of placement says which providers there are, where nothing else does."""
    options = ort.SessionOptions()
    options.add_session_config_entry(ENTRY, "1")
    options.add_session_config_entry("session.placement_order", "CPU")
    with pytest.raises(ort.InvalidArgument, match="give up one of them"):
        ort.InferenceSession(to_bytes(model(TEXT)), options)


def test_the_entry_is_a_flag() -> None:
    """What is neither "0" nor "1" is refused, not taken for either."""
    options = ort.SessionOptions()
    options.add_session_config_entry(ENTRY, "true")
    with pytest.raises(ort.InvalidArgument, match=f'{ENTRY} is "0" or "1", got \'true\''):
        ort.InferenceSession(to_bytes(model(TEXT)), options)


def test_falling_back_is_told() -> None:
    """As an event, with the nodes and who runs them; without providers of one's own there is nothing to tell."""
    told: list[Event] = []
    with observe(told.append):
        ort.InferenceSession(to_bytes(model(TEXT)), providers=[FusingProvider(("Relu",))])
        ort.InferenceSession(to_bytes(model(TEXT)))
    (fallback,) = [item.details for item in told if item.name == "placement.fallback"]
    assert fallback == {"nodes": ["y"], "providers": ["CPUExecutionProvider"]}
