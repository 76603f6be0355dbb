"""RNN, GRU and LSTM: directions, layout and activations.

Names of activations are matched without regard to case, as ONNX Runtime does. `activation_alpha` and `activation_beta` hold values
only for the functions that take them, in the order of the functions; a function that finds its list used up takes its default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Operator

__all__ = ["ACTIVATIONS", "Activation", "Recurrent", "choose_activations"]

_BACKWARD: Mapping[str, tuple[bool, ...]] = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_GATES: Mapping[str, int] = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULTS: Mapping[str, tuple[str, ...]] = {"RNN": ("tanh",), "GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh")}
ACTIVATIONS: Mapping[str, tuple[float | None, float | None]] = {
    "relu": (None, None),
    "tanh": (None, None),
    "sigmoid": (None, None),
    "softsign": (None, None),
    "softplus": (None, None),
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01, None),
    "thresholdedrelu": (1.0, None),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, None),
}
"""Activation, in lower case -> the defaults of its alpha and beta, None where it has none."""


class Activation(NamedTuple):
    """An activation function."""

    name: str
    """Its name in lower case."""
    alpha: float | None
    """Its first number, None where it has none."""
    beta: float | None
    """Its second number, None where it has none."""


class Recurrent(NamedTuple):
    """A recurrent network."""

    gates: int
    """Blocks of H rows in W and R."""
    backward: tuple[bool, ...]
    """For each direction, whether it runs from the last step to the first."""
    is_batch_first: bool
    """Whether X, Y and the states have the batch before all else."""
    hidden_size: int | None
    """H as the node gives it."""
    clip: float | None
    """The limit of what enters activations."""
    activations: tuple[tuple[Activation, ...], ...]
    """Of each direction in order."""
    is_coupled: bool
    """LSTM: whether the forget gate is 1 less the input gate."""
    is_linear_before_reset: bool
    """GRU: whether the reset gate comes after the product with the hidden state."""

    @classmethod
    def of(cls, node: Operator) -> Self:
        """Read a node; raises InvalidGraph for a direction, a layout or activations that are none."""
        direction = node.text("direction", "forward")
        if direction == "foward" and node.op_type == "GRU":  # the default of GRU-1 is misspelt
            direction = "forward"
        if direction not in _BACKWARD:
            raise InvalidGraph(f"direction is {direction!r}; expected one of {', '.join(_BACKWARD)}")
        layout = node.integer("layout", 0)
        if layout not in (0, 1):
            raise InvalidGraph(f"layout is {layout}; expected 0 (time first) or 1 (batch first)")
        backward = _BACKWARD[direction]
        return cls(
            _GATES[node.op_type],
            backward,
            layout == 1,
            node.integer("hidden_size"),
            node.number("clip"),
            _activations(node, len(backward)),
            node.flag("input_forget"),
            node.flag("linear_before_reset"),
        )


def _activations(node: Operator, directions: int) -> tuple[tuple[Activation, ...], ...]:
    count = len(_DEFAULTS[node.op_type])
    names = tuple(node.texts("activations", ())) or _DEFAULTS[node.op_type] * directions
    if len(names) < directions * count:
        raise InvalidGraph(
            f"activations {list(names)} has {len(names)} entries; {node.op_type} in {directions} direction(s) takes "
            f"{directions * count}: give {count} for each direction"
        )
    unknown = next((name for name in names if name.lower() not in ACTIVATIONS), None)
    if unknown is not None:
        raise InvalidGraph(f"activation {unknown!r} is unknown; expected one of {', '.join(sorted(ACTIVATIONS))} in any case")
    alphas, betas = node.numbers("activation_alpha", ()), node.numbers("activation_beta", ())
    chosen = choose_activations(names[: directions * count], alphas, betas)
    return tuple(tuple(chosen[first : first + count]) for first in range(0, len(chosen), count))


def choose_activations(names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]) -> list[Activation]:
    """Return the activations of these names, all of them known, with the numbers that each takes of the lists."""
    alpha_values, beta_values = iter(alphas), iter(betas)
    chosen = []
    for name in names:
        alpha, beta = ACTIVATIONS[name.lower()]
        alpha = None if alpha is None else next(alpha_values, alpha)
        beta = None if beta is None else next(beta_values, beta)
        chosen.append(Activation(name.lower(), alpha, beta))
    return chosen
