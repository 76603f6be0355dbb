"""Any value of a model by its name, also one that optimization removes."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model
from sardonyx.session.intermediates import list_intermediates
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.source import Source

GATE = "graph(x: float[n, 4]) -> (y: float[n, 4]) {\ng = Sigmoid(x) @gate\nh = Mul(x, g)\ny = Neg(h)\n}"
CALL = """opset 21
graph(x: float[2]) -> (y: float[2]) { z = f.Gate(x) @call
y = Neg(z) }
function f.Gate(a) -> (b) { s = Sigmoid(a) b = Mul(a, s) }"""
X = np.float32([[-1, 0, 1, 2]])


def test_a_value_that_a_fusion_removed_is_computed() -> None:
    """The session itself runs one Swish, in which no Sigmoid is left."""
    session = ort.InferenceSession(to_bytes(model(GATE)))
    assert session.explain()[0].op_type == "Swish"
    y, g = session.run(["y", "g"], {"x": X})
    np.testing.assert_allclose(g, 1 / (1 + np.exp(-X)), rtol=1e-6)
    np.testing.assert_allclose(y, -X * g, rtol=1e-6)


def test_values_inside_functions_are_named_after_the_call() -> None:
    """By its name, a slash, and what the function calls the value."""
    session = ort.InferenceSession(to_bytes(parse_model(CALL)))
    assert [value.name for value in session.get_intermediates()] == ["call/s", "z"]
    x = np.float32([0, 1])
    np.testing.assert_allclose(session.run(["call/s"], {"x": x})[0], 1 / (1 + np.exp(-x)), rtol=1e-6)


def test_values_are_listed_with_what_is_inferred() -> None:
    """In the order of the nodes, without inputs and outputs."""
    found = list_intermediates(Source.of(to_bytes(model(GATE))), read_settings(ort.SessionOptions()))
    assert [(value.name, value.type, value.shape) for value in found] == [
        ("g", "tensor(float)", ["n", 4]),
        ("h", "tensor(float)", ["n", 4]),
    ]


def test_results_are_the_callers_own() -> None:
    """An input, and a value that is asked for twice, share no memory with anything."""
    session = ort.InferenceSession(to_bytes(model(GATE)))
    first, second, x = session.run(["g", "g", "x"], {"x": X})
    first[...] = x[...] = 9
    assert second.max() < 1
    assert X.max() == 2


def test_run_async_takes_names_too() -> None:
    """As `run` does."""
    session = ort.InferenceSession(to_bytes(model(GATE)))
    (h,) = asyncio.run(session.arun(["h"], {"x": X}))
    np.testing.assert_allclose(h, X / (1 + np.exp(-X)), rtol=1e-6)


def test_a_model_that_cannot_be_read_again_has_no_list() -> None:
    """The message says what to give."""
    session = ort.InferenceSession(model(GATE))
    with pytest.raises(InvalidArgument, match="from a path or bytes"):
        session.get_intermediates()


def test_values_are_computed_by_name_after_many_plain_runs() -> None:
    """Which machine code makes by then."""
    session = ort.InferenceSession(to_bytes(model(GATE)))
    for _ in range(8):
        (y,) = session.run(["y"], {"x": X})
    g, again = session.run(["g", "y"], {"x": X})
    np.testing.assert_allclose(g, 1 / (1 + np.exp(-X)), rtol=1e-6)
    np.testing.assert_allclose(again, y, rtol=1e-6)
    assert [item.tolist() for item in session.run(["y"], {"x": X})] == [y.tolist()]
