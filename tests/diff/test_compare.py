"""Two configurations of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.planted import PlantedProvider, chain, rows

from sardonyx.diff import diff_model
from sardonyx.errors import InvalidArgument, SardonyxError
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

PLANTED = "provider=Planted,level=none"
CALL = """opset 21
graph(x: float[n, 8]) -> (y: float[n, 8]) { z = f.Gate(x) @call
y = Neg(z) @last }
function f.Gate(a) -> (b) { s = Sigmoid(a) @inner b = Mul(a, s) }"""


def test_a_planted_error_is_found_with_its_size() -> None:
    """The side that is wrong is known by the result in float64."""
    seen: list[str] = []
    found = diff_model(to_bytes(chain(100)), b=PLANTED, feed=rows(), providers=[PlantedProvider("Add40")], on_step=seen.append)
    assert not found.agrees
    assert found.found is not None
    assert [(node.name, node.op_type, node.index) for node in found.found.nodes] == [("Add40", "Add", 121)]
    assert found.found.tensors[0].max_abs == pytest.approx(1e-2, rel=1e-3)
    assert found.found.wrong == "b"
    assert found.found.steps == (("Add", "Planted"),)
    assert len(seen) == found.compared


def test_the_small_model_shows_the_error_again() -> None:
    """On its own inputs."""
    provider = PlantedProvider("Add40")
    first = diff_model(chain(50), b=PLANTED, feed=rows(), providers=[provider]).found
    assert first is not None
    again = diff_model(to_bytes(first.model), b=PLANTED, feed=first.feed, providers=[provider])
    assert [error.max_abs for error in again.outputs] == [pytest.approx(1e-2, rel=1e-3)]


def test_a_session_agrees_with_plain_kernels() -> None:
    """The default of both sides."""
    found = diff_model(chain(20), feed=rows())
    assert found.agrees
    assert (found.a, found.b, found.nodes) == ("level=none,provider=Reference", "default", 60)


def test_nodes_of_functions_are_named_after_the_call() -> None:
    """They are inlined before."""
    found = diff_model(parse_model(CALL), b=PLANTED, feed=rows(), providers=[PlantedProvider("call/inner")])
    assert found.found is not None
    assert [node.name for node in found.found.nodes] == ["call/inner"]


def test_values_are_compared_in_whole_runs() -> None:
    """By name, or all; an error runs on from where it begins."""
    provider = PlantedProvider("Add1")
    options: dict[str, Any] = {"b": PLANTED, "feed": rows(), "providers": [provider], "searches": False}
    found = diff_model(chain(3), tensors=["p1", "s1"], **options)
    assert [(error.name, error.agrees) for error in found.tensors] == [("p1", True), ("s1", False)]
    every = diff_model(chain(3), tensors=["all"], **options)
    assert next(error.name for error in every.tensors if not error.agrees) == "s1"
    assert len(every.tensors) == 9
    assert found.found is None


def test_what_is_drawn_at_random_is_drawn_once() -> None:
    """Else no two runs would agree."""
    text = "graph(x: float[n, 8]) -> (y: float[n, 8]) {\nr = RandomNormalLike(x)\ny = Add(x, r)\n}"
    assert diff_model(model(text), feed=rows()).agrees


class _Failing(PlantedProvider):
    """Fails where it is to compile."""

    def compile(self, partition: Any, bodies: Any) -> Any:
        raise ValueError("no such kernel")


def test_a_side_that_fails_is_bisected_too() -> None:
    """To the node that it fails on."""
    found = diff_model(chain(10), b=PLANTED, feed=rows(), providers=[_Failing("Tanh4")])
    assert "no such kernel" in found.failure
    assert found.found is not None
    assert [node.name for node in found.found.nodes] == ["Tanh4"]
    assert "no such kernel" in found.found.failure


def test_a_side_a_that_fails_ends_the_comparison() -> None:
    """There is nothing to compare with."""
    with pytest.raises(SardonyxError, match="no such kernel"):
        diff_model(chain(2), a=PLANTED, b="", feed=rows(), providers=[_Failing("Tanh1")])


@pytest.mark.parametrize(("feed", "names"), [({}, ()), (rows(), ("missing",))])
def test_feeds_and_names_are_checked(feed: dict[str, Any], names: Sequence[str]) -> None:
    """As a session does."""
    with pytest.raises(InvalidArgument, match=r"[Rr]equired inputs \(?\['x'\]|no output 'missing'"):
        diff_model(chain(1), feed=feed, tensors=names)


def test_limits_of_the_user_take_the_place_of_automatic_ones() -> None:
    """A planted error below them is none."""
    found = diff_model(chain(3), b=PLANTED, feed=rows(), providers=[PlantedProvider("Add1")], atol=1.0)
    assert found.agrees


def test_other_engines_are_sides() -> None:
    """Where they are installed."""
    pytest.importorskip("onnxruntime")
    assert diff_model(chain(5), a="onnxruntime", feed=rows()).agrees


def test_an_input_with_a_default_may_be_fed() -> None:
    """Or left out."""
    held = model("graph(x: float[n, 8], k: float[8]) -> (y: float[n, 8]) {\ny = Mul(x, k)\n}")
    assert diff_model(held, feed={**rows(), "k": np.ones(8, np.float32)}).agrees
