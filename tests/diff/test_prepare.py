"""A model as comparisons take it."""

from __future__ import annotations

import numpy as np
import pytest
from support.models import model

from sardonyx.diff.configuration import PLAIN
from sardonyx.diff.engines import engine_for
from sardonyx.diff.prepare import giving_out, prepared
from sardonyx.errors import InvalidArgument
from sardonyx.formats.tflite import STATES

X = np.float32([1, 2])


def test_what_is_drawn_becomes_an_input_with_a_value() -> None:
    """So both sides get the same."""
    held, values = prepared(
        model("graph(x: float[n]) -> (y: float[n]) {\nr = RandomNormalLike(x)\ny = Add(x, r)\n}"), {"x": X}, None, engine_for(PLAIN)
    )
    assert [node.op_type for node in held.graph] == ["Add"]
    assert sorted(values) == ["r", "x"]
    assert values["r"].shape == (2,)


def test_the_feed_is_checked() -> None:
    """Before anything runs."""
    with pytest.raises(InvalidArgument, match="x"):
        prepared(model("graph(x: float[n]) -> (y: float[n]) {\ny = Neg(x)\n}"), {}, None, engine_for(PLAIN))


def test_a_copy_gives_out_what_is_named() -> None:
    """The model itself stays as it is."""
    held = model("graph(x: float[n]) -> (y: float[n]) {\na = Neg(x)\ny = Neg(a)\n}")
    assert [value.name for value in giving_out(held, ["a"]).graph.outputs] == ["a"]
    assert [value.name for value in held.graph.outputs] == ["y"]


def test_of_a_model_with_states_one_run_is_compared() -> None:
    """States are outputs like others, and begin with their defaults."""
    made = model("graph(x: float[1]) -> (y: float[1], t: float[1]) {\ns: float[1] = [3]\ny = Add(x, s)\nt = Identity(y)\n}")
    made.metadata = {STATES: '[["sum", "s", "t"]]', "other": "kept"}
    held, _ = prepared(made, {"x": X[:1]}, None, engine_for(PLAIN))
    assert held.metadata == {"other": "kept"}
    assert made.metadata.keys() == {STATES, "other"}
    assert len(engine_for(PLAIN).load(held).run({"x": X[:1]})) == 2
