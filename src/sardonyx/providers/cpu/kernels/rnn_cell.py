"""The equations of RNN, GRU and LSTM as expressions of the kernel compiler. Source: ONNX RNN-22, GRU-22, LSTM-22.

    cell_of(LSTM, peepholes)     Ct = ft . Ct-1 + it . ct,  Ht = ot . h(Ct)

Clipping bounds what enters the gates' activations; Ct enters h as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sardonyx.codegen.emit.expr import OPERATORS, ElementExpr, argument, constant
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.codegen.kernels.recurrent_params import Cell, Phase, Plane
from sardonyx.ops.views.rnn import Activation, Recurrent

__all__ = ["PHASE_GATES", "cell_of"]

PHASE_GATES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "RNN": ((0,),),
    "GRU": ((0, 1), (2,)),
    "GRU linear": ((0, 1, 2),),
    "LSTM": ((0, 1, 2, 3),),
}
"""Cell -> the gates of each product of a step, numbered as in W and R: GRU has z, r, h, LSTM has i, o, f, c."""

_FUNCTIONS: Mapping[str, Callable[[ElementExpr, float, float], ElementExpr]] = {
    "affine": lambda x, alpha, beta: x * alpha + beta,
    "elu": lambda x, alpha, beta: OPERATORS["elu"](x, alpha),
    "hardsigmoid": lambda x, alpha, beta: OPERATORS["hard_sigmoid"](x, alpha, beta),
    "leakyrelu": lambda x, alpha, beta: OPERATORS["leaky_relu"](x, alpha),
    "relu": lambda x, alpha, beta: OPERATORS["relu"](x),
    "scaledtanh": lambda x, alpha, beta: OPERATORS["tanh"](x * beta) * alpha,
    "sigmoid": lambda x, alpha, beta: OPERATORS["sigmoid"](x),
    "softplus": lambda x, alpha, beta: OPERATORS["softplus"](x),
    "softsign": lambda x, alpha, beta: OPERATORS["softsign"](x),
    "tanh": lambda x, alpha, beta: OPERATORS["tanh"](x),
    "thresholdedrelu": lambda x, alpha, beta: OPERATORS["select"](x < alpha, constant(0.0, x.type), x),
}
"""Activation -> what it computes; alpha and beta are 0 where it has none."""

_Function = Callable[[ElementExpr], ElementExpr]


def cell_of(kind: str, view: Recurrent, direction: int, *, has_columns: bool, is_ragged: bool, element: Type = F32) -> Cell:
    """Return the cell of a direction.

    Args:
        kind: one of PHASE_GATES.
        view: the node's attributes.
        direction: its number.
        has_columns: whether there are peepholes (LSTM), or a bias within the reset gate (linear GRU).
        is_ragged: whether sequences have lengths of their own.
        element: the type of elements, F32 or F64.
    """
    functions = [_function(activation) for activation in view.activations[direction]]
    columns = {"LSTM": 3, "GRU linear": 1}.get(kind, 0) if has_columns else 0
    states = (Plane.HIDDEN, Plane.CELL) if kind == "LSTM" else (Plane.HIDDEN,)
    units = 2 if sum(map(len, PHASE_GATES[kind])) >= 3 and len(PHASE_GATES[kind]) == 1 else 4
    return Cell(_PHASES[kind](functions, view, columns, element), units, columns, states, is_ragged)


def _function(activation: Activation) -> _Function:
    written, alpha, beta = _FUNCTIONS[activation.name], activation.alpha or 0.0, activation.beta or 0.0
    return lambda x: written(x, alpha, beta)


def _arguments(
    kind: Type, gates: int, columns: int, elements: int
) -> tuple[list[ElementExpr], list[ElementExpr], list[ElementExpr]]:
    """Return the sums, what was projected, and the columns and elements."""
    arguments = [argument(index, kind) for index in range(2 * gates + columns + elements)]
    return arguments[:gates], arguments[gates : 2 * gates], arguments[2 * gates :]


def _clipped(function: _Function, view: Recurrent) -> _Function:
    if view.clip is None:
        return function
    limit = view.clip
    return lambda x: function(OPERATORS["clip"](x, -limit, limit))


def _rnn(functions: list[_Function], view: Recurrent, columns: int, kind: Type) -> tuple[Phase, ...]:
    (total,), (projected,), _ = _arguments(kind, 1, columns, 0)
    f = _clipped(functions[0], view)
    return (Phase(1, Plane.HIDDEN, (), ((Plane.HIDDEN, f(total + projected)),)),)


def _gru(functions: list[_Function], view: Recurrent, columns: int, kind: Type) -> tuple[Phase, ...]:
    f, g = (_clipped(function, view) for function in functions)
    (z, r), (xz, xr), (hidden,) = _arguments(kind, 2, columns, 1)
    gates = ((Plane.UPDATE, f(z + xz)), (Plane.RESET, f(r + xr) * hidden))
    (total,), (projected,), (update, before) = _arguments(kind, 1, columns, 2)
    candidate = g(total + projected)
    return (
        Phase(2, Plane.HIDDEN, (Plane.HIDDEN,), gates),
        Phase(1, Plane.RESET, (Plane.UPDATE, Plane.HIDDEN), ((Plane.HIDDEN, candidate + (before - candidate) * update),)),
    )


def _linear_gru(functions: list[_Function], view: Recurrent, columns: int, kind: Type) -> tuple[Phase, ...]:
    f, g = (_clipped(function, view) for function in functions)
    (z, r, h), (xz, xr, xh), (*biases, hidden) = _arguments(kind, 3, columns, 1)
    inner = h + biases[0] if biases else h
    candidate = g(f(r + xr) * inner + xh)
    after = candidate + (hidden - candidate) * f(z + xz)
    return (Phase(3, Plane.HIDDEN, (Plane.HIDDEN,), ((Plane.HIDDEN, after),)),)


def _lstm(functions: list[_Function], view: Recurrent, columns: int, kind: Type) -> tuple[Phase, ...]:
    f, g, h = _clipped(functions[0], view), _clipped(functions[1], view), functions[2]
    sums, projected, (*peepholes, before) = _arguments(kind, 4, columns, 1)
    i, o, forget, c = (total + x for total, x in zip(sums, projected, strict=True))
    if peepholes:
        i, forget = i + peepholes[0] * before, forget + peepholes[2] * before
    entering = f(i)
    kept = 1.0 - entering if view.is_coupled else f(forget)
    state = kept * before + entering * g(c)
    if peepholes:
        o = o + peepholes[1] * state
    return (Phase(4, Plane.HIDDEN, (Plane.CELL,), ((Plane.CELL, state), (Plane.HIDDEN, f(o) * h(state)))),)


_PHASES: Mapping[str, Callable[[list[_Function], Recurrent, int, Type], tuple[Phase, ...]]] = {
    "RNN": _rnn,
    "GRU": _gru,
    "GRU linear": _linear_gru,
    "LSTM": _lstm,
}
