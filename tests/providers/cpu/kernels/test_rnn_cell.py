"""The equations of the cells, evaluated for one unit in float64."""

from __future__ import annotations

import math
from typing import Any

import pytest
from support.view_node import node

from sardonyx.codegen.emit.expr import ElementExpr, number
from sardonyx.codegen.kernels.recurrent_params import Plane
from sardonyx.ops.views.rnn import Recurrent
from sardonyx.providers.cpu.kernels.rnn_cell import PHASE_GATES, cell_of

FUNCTIONS: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "min": min,
    "max": max,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}


def value_of(expr: ElementExpr, arguments: list[float]) -> float:
    """The value of an expression."""
    steps, (last,) = number([expr])
    values: list[float] = []
    for step in steps:
        if step.primitive == "argument":
            values.append(arguments[int(step.expr.value)])
        elif step.primitive == "constant":
            values.append(float(step.expr.value))
        else:
            values.append(FUNCTIONS[step.primitive](*(values[operand] for operand in step.operands)))
    return values[last]


def cell(kind: str, *, has_columns: bool = False, **attributes: Any) -> Any:
    view = Recurrent.of(node(kind.split()[0], 14, **attributes))
    return cell_of(kind, view, 0, has_columns=has_columns, is_ragged=False)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_rnn() -> None:
    """Ht = f(sum + projected), with what enters f clipped."""
    ((plane, expr),) = cell("RNN", clip=0.5).phases[0].stores
    assert plane is Plane.HIDDEN
    assert value_of(expr, [0.7, 0.4]) == pytest.approx(math.tanh(0.5))
    assert value_of(expr, [-0.2, 0.4]) == pytest.approx(math.tanh(0.2))


def test_lstm() -> None:
    """The gates i, o, f, c; peepholes of i and f see the old state, that of o the new one, which h does not clip."""
    (phase,) = cell("LSTM", has_columns=True, clip=1.0).phases
    sums, projected, peepholes, c = [0.1, 0.2, 0.3, 0.4], [0.5, -0.5, 0.25, 2.0], [0.3, -0.6, 0.9], 1.5
    i, o, f, _ = (left + right for left, right in zip(sums, projected, strict=True))
    new = sigmoid(min(f + 0.9 * c, 1)) * c + sigmoid(min(i + 0.3 * c, 1)) * math.tanh(1)
    stores = dict(phase.stores)
    arguments = [*sums, *projected, *peepholes, c]
    assert value_of(stores[Plane.CELL], arguments) == pytest.approx(new)
    assert value_of(stores[Plane.HIDDEN], arguments) == pytest.approx(sigmoid(max(o - 0.6 * new, -1)) * math.tanh(new))


def test_coupled_gates() -> None:
    """With input_forget f is 1 - i."""
    stores = dict(cell("LSTM", input_forget=1).phases[0].stores)
    found = value_of(stores[Plane.CELL], [0.1, 0, 9, 0.4, 0, 0, 0, 0, 1.5])
    assert found == pytest.approx((1 - sigmoid(0.1)) * 1.5 + sigmoid(0.1) * math.tanh(0.4))


def test_gru() -> None:
    """Two products: of the hidden state for z and r, of r times the hidden state for the candidate."""
    first, second = cell("GRU").phases
    stores = dict(first.stores)
    assert value_of(stores[Plane.UPDATE], [0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(sigmoid(0.4))
    assert value_of(stores[Plane.RESET], [0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(sigmoid(0.6) * 0.5)
    assert (first.source, second.source) == (Plane.HIDDEN, Plane.RESET)
    ((_, expr),) = second.stores
    assert value_of(expr, [0.1, 0.2, 0.7, 0.5]) == pytest.approx(0.3 * math.tanh(0.3) + 0.7 * 0.5)


@pytest.mark.parametrize("bias", [0.0, 0.25])
def test_linear_gru(bias: float) -> None:
    """One product: r multiplies the candidate's sum with its bias."""
    ((_, expr),) = cell("GRU linear", has_columns=bool(bias)).phases[0].stores
    sums, projected, hidden = [0.1, 0.2, 0.3], [0.4, 0.5, 0.6], 0.9
    z, candidate = sigmoid(0.5), math.tanh(0.6 + sigmoid(0.7) * (0.3 + bias))
    found = value_of(expr, [*sums, *projected, *([bias] if bias else []), hidden])
    assert found == pytest.approx((1 - z) * candidate + z * hidden)


@pytest.mark.parametrize("kind", list(PHASE_GATES))
def test_phases_have_the_gates_that_are_packed_for_them(kind: str) -> None:
    """And whole panels are a multiple of each phase's panel."""
    made = cell(kind)
    assert [phase.gates for phase in made.phases] == [len(gates) for gates in PHASE_GATES[kind]]
    assert all(made.units % made.panel_units(number) == 0 for number in range(len(made.phases)))
