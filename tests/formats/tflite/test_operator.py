"""One operator of a file on its way to ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from formats.tflite.running import run
from support.flat_models import Sketch, one

from sardonyx import errors
from sardonyx.formats.tflite.operator import imports


def test_an_operator_has_one_importer() -> None:
    """A second one is a mistake of ours."""
    imports("no operator")(lambda op: None)
    with pytest.raises(AssertionError, match="has two importers"):
        imports("no operator")(lambda op: None)


def test_options_that_are_left_out_are_the_defaults() -> None:
    """Here no activation."""
    x = np.array([-1.0, 2.0], np.float32)
    np.testing.assert_array_equal(run(one("ADD", [((2,), "FLOAT32"), x], ((2,), "FLOAT32")), x)[0], [-2, 4])


def test_options_of_another_operator_are_refused() -> None:
    """With both names."""
    data = one("ADD", [((2,), "FLOAT32"), ((2,), "FLOAT32")], ((2,), "FLOAT32"), ("MulOptions", {}))
    with pytest.raises(errors.InvalidFlatBuffer, match="builtin_options: it is MulOptions, and the operator takes AddOptions"):
        run(data)


def test_an_input_that_is_left_out_is_refused() -> None:
    """Where the operator needs it."""
    with pytest.raises(errors.InvalidFlatBuffer, match="ADD: input 1 is left out"):
        run(one("ADD", [((2,), "FLOAT32"), None], ((2,), "FLOAT32")), np.zeros(2, np.float32))


def test_an_output_that_is_left_out_is_refused() -> None:
    """Before a node is made."""
    sketch = Sketch()
    x = sketch.input((2,))
    sketch.operator("ABS", [x], [])
    with pytest.raises(errors.InvalidFlatBuffer, match="it has 0 outputs"):
        run(sketch.model([x]))


def test_a_value_that_nothing_has_made_is_refused() -> None:
    """Operators are in order of execution."""
    sketch = Sketch()
    x, y = sketch.tensor((2,)), sketch.tensor((2,))
    sketch.operator("ABS", [x], [y])
    with pytest.raises(errors.InvalidFlatBuffer, match="'t0', which nothing has made before"):
        run(sketch.model([y]))


def test_a_form_that_is_not_known_is_not_implemented() -> None:
    """With the operator's place."""
    options = ("AddOptions", {"fused_activation_function": "SIGN_BIT"})
    data = one("ADD", [((2,), "FLOAT32"), ((2,), "FLOAT32")], ((2,), "FLOAT32"), options)
    with pytest.raises(errors.NotImplemented, match=r"operators\[0\]: ADD: the fused activation SIGN_BIT"):
        run(data)
