"""What a comparison found."""

from __future__ import annotations

import json

from support.models import model

from sardonyx.diff.report import Difference, Finding, FoundNode
from sardonyx.diff.tensor_error import TensorError

FINE, WRONG = TensorError("y", "float", (2,)), TensorError("y", "float", (2,), max_abs=1.0, agrees=False)


def difference(output: TensorError, found: Finding | None = None, failure: str = "") -> Difference:
    return Difference("m", "a", "b", 3, (output,), (), failure, found, 1)


def finding() -> Finding:
    node = FoundNode("first", "Neg", 0, ("y",))
    held = model("graph(x: float[2]) -> (y: float[2]) {\ny = Neg(x)\n}")
    return Finding((node,), None, (WRONG,), {"y": (0.0, 1.0)}, "", "b", "", (("Neg", "CPU"),), ("rule",), held, {"x": 1})


def test_sides_agree_where_nothing_differs() -> None:
    """Neither an output, nor a part; and where b runs at all."""
    assert difference(FINE).agrees
    assert not difference(WRONG).agrees
    assert not difference(FINE, failure="none").agrees
    assert not difference(FINE, finding()).agrees


def test_facts_are_what_json_takes() -> None:
    """With everything but the small model."""
    facts = json.loads(json.dumps(difference(WRONG, finding()).facts()))
    assert facts["outputs"][0]["max_abs"] == 1
    assert facts["found"]["nodes"] == [{"name": "first", "op_type": "Neg", "index": 0, "outputs": ["y"]}]
    assert facts["found"]["float64"] == {"y": {"a": 0.0, "b": 1.0}}
    assert facts["found"]["b_runs"] == [{"op_type": "Neg", "provider": "CPU"}]
    assert not facts["agrees"]
