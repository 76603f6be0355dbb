"""The elements that the operators of a model take from its inputs."""

from __future__ import annotations

import pytest
from support.models import model

from sardonyx.ir.text import parse_model
from sardonyx.ops.infer import infer_graph
from sardonyx.session.draw.elements import ANY, Elements, elements_of

TABLE = "t: float[5, 2] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n"


def _elements(body: str, name: str = "i") -> Elements:
    parsed = model(body)
    (value,) = [item for item in parsed.graph.inputs if item.name == name]
    return elements_of(parsed, value, infer_graph(parsed))


@pytest.mark.parametrize(
    ("body", "low", "high"),
    [
        ("y = Gather(t, i)", 0, 4),
        ("j = Cast(i) {to = 7}\nk = Unsqueeze(j, o)\ny = Gather(t, k)", 0, 4),
        ("two: int64[] = [2]\nj = Add(i, two)\ny = Gather(t, j)", -2, 2),
        ("two: int64[] = [2]\nj = Sub(i, two)\ny = Gather(t, j)", 2, 6),
        ("a = Gather(t, i)\nu = Transpose(t)\nb = Gather(u, i)\ny = Concat(a, b) {axis = -1}", 0, 1),
        ("d: int64[] = [9]\nv: float[2] = [0, 1]\ny = OneHot(i, d, v)", 0, 8),
        ("z = Cast(i) {to = 1}\ny = Relu(z)", None, None),
    ],
)
def test_indices_are_rows_of_what_they_index(body: str, low: int | None, high: int | None) -> None:
    """Through what hands them on, less what is added to them; several ranges are intersected."""
    text = f"graph(i: int64[3]) -> (y: float[?]) {{\n{TABLE}o: int64[1] = [0]\n{body}\n}}"
    found = _elements(text)
    assert (found.low, found.high) == (low, high)


def test_an_index_that_a_loop_carries_is_followed_into_its_body() -> None:
    """A decoder's first token is."""
    text = (
        f"graph(i: int64[1]) -> (y: int64[1]) {{\n{TABLE}n: int64[] = [2]\nc: bool[] = [1]\n"
        "y = Loop(n, c, i) {body = graph(k: int64[], g: bool[], j: int64[1]) -> (g2: bool[], j2: int64[1]) {\n"
        "r = Gather(t, j)\ng2 = Identity(g)\nj2 = Identity(j)\n}}\n}"
    )
    assert _elements(text) == Elements(0, 4)


def test_axes_are_distinct() -> None:
    """No two of them may be the same."""
    assert _elements("graph(x: float[2, 3], i: int64[2]) -> (y: float[]) {\ny = ReduceSum(x, i)\n}") == Elements(
        0, 1, distinct=True
    )


def test_texts_come_from_the_list_of_an_encoder() -> None:
    """Others would be errors, or all alike."""
    text = 'graph(i: string[2]) -> (y: int64[2]) {\ny = ai.onnx.ml.LabelEncoder(i) {keys_strings = ["a", "b"], values_int64s = [1, 2]}\n}'
    parsed = parse_model(f"ir_version 10\nopset 21\nopset ai.onnx.ml 4\ngraph main{text.removeprefix('graph')}")
    assert elements_of(parsed, parsed.graph.inputs[0], infer_graph(parsed)).vocabulary == ("a", "b")


def test_ranges_without_common_elements_leave_the_first() -> None:
    """No feed would do, and a run says why."""
    assert Elements(0, 1).and_also(Elements(5, 6)) == Elements(0, 1)
    assert ANY.and_also(Elements(1, 2)) == Elements(1, 2)
