"""The view of Scan."""

from __future__ import annotations

from support.models import graph

from sardonyx.ops.views.control_flow import Scan

TEXT = """graph(a: float[3], x: float[T, 3]) -> (y, s) {
    y, s = Scan(a, x) {body = graph(a: float[3], r: float[3]) -> (b, b) { b = Add(a, r) }, num_scan_inputs = 1ATTRIBUTES}
}"""


def _view(attributes: str = "", opset: int = 21) -> Scan:
    (node,) = graph(TEXT.replace("ATTRIBUTES", attributes), opset=opset)
    return Scan.of(node)


def test_axes_and_directions_may_be_left_out() -> None:
    """Then all are 0; the body is a graph."""
    view = _view()
    assert view.body is not None
    assert view[1:] == (1, False, (), (), (), ())


def test_axes_and_directions_are_as_the_node_gives_them() -> None:
    """Those of inputs, and those of outputs."""
    view = _view(", scan_input_axes = [-1], scan_input_directions = [1], scan_output_axes = [2], scan_output_directions = [0]")
    assert view[1:] == (1, False, (-1,), (1,), (2,), (0,))


def test_before_9_a_batch_is_scanned() -> None:
    """Its inputs are others."""
    assert _view(opset=8).is_batched
    assert not _view(opset=9).is_batched
