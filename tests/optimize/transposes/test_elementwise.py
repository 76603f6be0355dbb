"""Transposes through element-wise operators."""

from __future__ import annotations

import pytest
from support.transposing import operators, pushed

BACK = "y = Transpose(a) {perm = [0, 3, 1, 2]}"


@pytest.mark.parametrize(
    "step",
    [
        "Relu(t)",
        "Cast(t) {to = 11}",
        "HardSwish(t)",
        "Clip(t, low)",
        "CastLike(t, low)",
        "Add(t, k)",
        "Sub(k, t)",
        "Add(t, t)",
        "PRelu(t, slope)",
        "Max(t, k, one)",
        "Mul(t, one)",
    ],
)
def test_two_transposes_around_an_operator_vanish(step: str) -> None:
    """The operator alone is left, with its constants transposed."""
    constants = "low: float[] = 0.0\n one: float[1, 1] = [2]\n k: float[3] = [1, 2, 3]\n slope: float[1, 1, 3] = [0.5, 2, 3]"
    assert operators(pushed(f"{constants}\n a = {step}\n {BACK}")) == [step.split("(")[0]]


def test_a_comparison_passes_it_on() -> None:
    """Where has three inputs that carry the layout, one of them boolean."""
    held = pushed("z: float[] = 0.0\n c = Greater(t, z)\n n = Neg(t)\n a = Where(c, t, n)\n " + BACK)
    assert operators(held) == ["Greater", "Neg", "Where"]


def test_an_input_of_a_lower_rank_is_padded() -> None:
    """A vector of the channels becomes (1, 3, 1, 1), which moves no element."""
    held = pushed(f"a = Mul(t, v)\n {BACK}", inputs="x: float[2, 3, 4, 6], v: float[3]")
    assert operators(held) == ["Unsqueeze", "Transpose", "Mul"]
    assert held.graph.outputs[0].producer is not None


def test_a_constant_is_transposed_once() -> None:
    """Two operators that add the same constant share its transposed form."""
    held = pushed(f"k: float[4, 6, 3] = ... 1\n r = Add(t, k)\n a = Mul(r, k)\n {BACK}")
    first, second = held.graph
    assert first.inputs[1] is second.inputs[1]


def test_a_result_of_a_higher_rank_stays() -> None:
    """The transpose has four dimensions, the sum five."""
    held = pushed("k: float[2, 1, 1, 1, 1] = [1, 2]\n y = Add(t, k)")
    assert operators(held) == ["Transpose", "Add"]


def test_gelu_keeps_its_other_inputs() -> None:
    """An operator with one input carries the layout in it."""
    assert operators(pushed(f"a = Gelu(t)\n {BACK}")) == ["Gelu"]
