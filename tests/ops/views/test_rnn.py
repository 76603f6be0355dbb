"""The view of RNN, GRU and LSTM."""

from __future__ import annotations

from typing import Any

import pytest
from support.view_node import node

from sardonyx.errors import InvalidGraph
from sardonyx.ops.views.rnn import ACTIVATIONS, Activation, Recurrent, choose_activations


@pytest.mark.parametrize(
    ("op_type", "gates", "names"),
    [("RNN", 1, ["tanh"]), ("GRU", 3, ["sigmoid", "tanh"]), ("LSTM", 4, ["sigmoid", "tanh", "tanh"])],
)
def test_defaults(op_type: str, gates: int, names: list[str]) -> None:
    """One direction, time first, without a limit, with the activations of the standard."""
    view = Recurrent.of(node(op_type, 22))
    assert view == Recurrent(
        gates, (False,), False, None, None, (tuple(Activation(name, None, None) for name in names),), False, False
    )


@pytest.mark.parametrize(("direction", "backward"), [("forward", (False,)), ("reverse", (True,)), ("bidirectional", (False, True))])
def test_directions(direction: str, backward: tuple[bool, ...]) -> None:
    """Each has activations of its own."""
    view = Recurrent.of(node("LSTM", 14, direction=direction))
    assert view.backward == backward
    assert len(view.activations) == len(backward)


def test_the_misspelt_default_of_the_first_GRU_is_forward() -> None:
    """Models of opset 1 may state it."""
    assert Recurrent.of(node("GRU", 1, direction="foward")).backward == (False,)


def test_what_a_node_says() -> None:
    """Every attribute."""
    view = Recurrent.of(node("LSTM", 14, layout=1, hidden_size=7, clip=0.5, input_forget=1))
    assert (view.is_batch_first, view.hidden_size, view.clip, view.is_coupled) == (True, 7, 0.5, True)
    assert Recurrent.of(node("GRU", 14, linear_before_reset=1)).is_linear_before_reset


def test_numbers_go_to_the_functions_that_take_them() -> None:
    """In order, each list on its own; what is left takes the default."""
    chosen = choose_activations(["Tanh", "HardSigmoid", "LeakyRelu", "Affine"], [0.5, 0.25], [0.75])
    assert chosen == [
        Activation("tanh", None, None),
        Activation("hardsigmoid", 0.5, 0.75),
        Activation("leakyrelu", 0.25, None),
        Activation("affine", 1.0, 0.0),
    ]


def test_names_in_any_case() -> None:
    """As ONNX Runtime has it."""
    assert [activation.name for activation in choose_activations(["ReLU"], [], [])] == ["relu"]
    assert len(ACTIVATIONS) == 11


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"direction": "sideways"}, "direction is 'sideways'; expected one of forward, reverse, bidirectional"),
        ({"layout": 2}, "layout is 2; expected 0"),
        ({"activations": ["Tanh", "Tanh"]}, "has 2 entries; LSTM in 1 direction.* takes 3"),
        ({"activations": ["Tanh", "Cosine", "Tanh"]}, "'Cosine' is unknown; expected one of affine"),
    ],
)
def test_what_is_none_is_refused(change: dict[str, Any], message: str) -> None:
    """The message says what was found and what is allowed."""
    with pytest.raises(InvalidGraph, match=message):
        Recurrent.of(node("LSTM", 14, **change))


def test_more_activations_than_directions_need_are_ignored() -> None:
    """RNN's default in the schema has two."""
    assert len(Recurrent.of(node("RNN", 14, activations=["Relu", "Tanh"])).activations[0]) == 1
