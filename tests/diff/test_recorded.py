"""A model compared with values that were computed elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.planted import chain, rows

from sardonyx import InferenceSession
from sardonyx.diff import diff_recorded, values_of_model
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Model
from sardonyx.ir.text import parse_model

NAMES = ["s0", "r0", "p1", "s1", "r1", "r2"]


def _values(held: Model) -> dict[str, Any]:
    return dict(zip(NAMES, InferenceSession(to_bytes(held)).run(NAMES, rows()), strict=True))


def test_values_of_the_same_model_agree() -> None:
    """Outputs are one list, other values another; names that the model lacks are said."""
    found = diff_recorded(chain(3), {**_values(chain(3)), "x": rows()["x"], "other": np.zeros(2)}, feed=rows(), label="values.npz")
    assert found.agrees
    assert found.first is None
    assert [error.name for error in found.outputs] == ["r2"]
    assert [error.name for error in found.tensors] == ["s0", "r0", "p1", "s1", "r1"]
    assert (found.a, found.unknown) == ("values.npz", ("other",))


def test_the_first_value_that_differs_is_found_by_the_order_of_the_nodes() -> None:
    """With what is known of the inputs of its node, whatever the order in the file."""
    values = _values(chain(3))
    values["s1"] = values["s1"] + np.float32(1e-2)
    values["r2"] = values["r2"] + np.float32(1e-2)
    found = diff_recorded(chain(3), dict(reversed(values.items())), feed=rows())
    assert found.first is not None
    assert (found.first.value, found.first.node.name, found.first.agreeing, found.first.unrecorded) == ("s1", "Add1", ("p1",), ())
    assert not found.agrees
    assert found.facts()["first"]["node"]["index"] == 4


def test_inputs_of_which_nothing_is_recorded_are_named() -> None:
    """There the difference may begin."""
    found = diff_recorded(chain(3), {"r2": _values(chain(3))["r2"] + np.float32(1)}, feed=rows())
    assert found.first is not None
    assert (found.first.value, found.first.agreeing, found.first.unrecorded) == ("r2", (), ("s2",))


def test_values_of_another_type_of_float_are_compared_with_its_rounding() -> None:
    """Those in float16 are 2^-11 off, those in double are not."""
    values = _values(chain(3))
    assert diff_recorded(chain(3), {name: item.astype(np.float16) for name, item in values.items()}, feed=rows()).agrees
    assert diff_recorded(chain(3), {name: item.astype(np.float64) for name, item in values.items()}, feed=rows()).agrees
    coarse = {name: item.astype(np.float16).astype(np.float32) for name, item in values.items()}
    assert not diff_recorded(chain(3), coarse, feed=rows()).agrees


def test_limits_of_the_user_count() -> None:
    """As in the other comparison."""
    off = {"r2": _values(chain(3))["r2"] + np.float32(1e-2)}
    assert diff_recorded(chain(3), off, feed=rows(), atol=0.1).agrees
    assert not diff_recorded(chain(3), off, feed=rows(), atol=1e-3).agrees


def test_names_that_are_none_of_the_models_are_an_error_with_the_nearest() -> None:
    """Else nothing would be compared, and nothing would differ."""
    with pytest.raises(InvalidArgument, match=r"it has 'r22' \(near it is 'r2'\), the model makes .* r2"):
        diff_recorded(chain(3), {"r22": np.zeros(1)}, feed=rows())


def test_another_model_is_compared_by_the_names_that_both_have() -> None:
    """On the same feed."""
    text = "graph(x: float[n, 8]) -> (r0: float[n, 8], z: float[n, 8]) {\nr0 = Tanh(x)\nz = Neg(r0)\n}"
    assert diff_recorded(chain(3), values_of_model(to_bytes(chain(3)), rows()), feed=rows()).agrees
    found = diff_recorded(chain(3), values_of_model(to_bytes(parse_model(f"ir_version 10\nopset 21\n{text}")), rows()), feed=rows())
    assert [error.name for error in found.tensors] == ["r0"]
    assert found.first is not None
    assert found.first.value == "r0"


def test_a_feed_gets_the_types_of_floats_of_the_other_model() -> None:
    """As of one that was converted to float16; what it does not take is left out."""
    text = "ir_version 10\nopset 21\ngraph(x: float16[n, 8]) -> (y: float16[n, 8]) {\ny = Neg(x)\n}"
    values = values_of_model(to_bytes(parse_model(text)), {**rows(), "other": np.zeros(1)})(["y", "none"])
    np.testing.assert_array_equal(values["y"], -rows()["x"].astype(np.float16))
    assert list(values) == ["y"]
