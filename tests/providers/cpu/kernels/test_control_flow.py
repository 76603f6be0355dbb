"""If, Loop and Scan whose bodies run natively: against the reference provider."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference, run_cpu, steps_of
from support.moving import filled, same

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

COUNTS = (0, 1, 2, 3, 1000, -1)


def number(count: int) -> Array:
    return np.array(count, np.int64)


def flag(holds: bool) -> Array:
    return np.array(holds)


def loop(body: str, outputs: str = "y", declared: str = "x: float[4]", head: str = "", inputs: str = "n, go, x") -> str:
    """A model with a Loop over `x`, M = `n`."""
    head = head or "go: bool[] = 1"
    return f"graph({declared}, n: int64[]) -> ({outputs}) {{ {head} {outputs} = Loop({inputs}) {{body = {body}}} }}"


ADDING = "graph(i: int64[], c: bool[], a: float[4]) -> (c, b) { w: float[4] = [1, 2, 3, 4] b = Add(a, w) }"
SCANNING = "graph(i: int64[], c: bool[], a: float[4]) -> (c, b, s, i) { w: float[4] = [1, 2, 3, 4] b = Add(a, w) s = Mul(b, w) }"
UNTIL = """graph(i: int64[], c: bool[], a: float[4]) -> (d, b, s) {
    k: float[] = 10.0 z: int64[] = 0 w: float[4] = [1, 2, 3, 4]
    b = Add(a, w) p = Gather(b, z) d = Less(p, k) s = Neg(b) }"""


@pytest.mark.parametrize("isa", LEVELS)
def test_a_carried_value(isa: str) -> None:
    """None, an odd and an even number of iterations, as the input says; below 0 there is none."""
    same(loop(ADDING), *({"x": filled((4,)), "n": number(count)} for count in COUNTS), isa=isa)


@pytest.mark.parametrize("isa", LEVELS)
def test_scan_outputs_as_long_as_the_input_says(isa: str) -> None:
    """Slices of two types are written where they belong; their number is read before the loop."""
    same(loop(SCANNING, "y, s, k"), *({"x": filled((4,)), "n": number(count)} for count in COUNTS), isa=isa)


@pytest.mark.parametrize("count", COUNTS)
def test_scan_outputs_of_a_constant_length(count: int) -> None:
    """They are made like any other output."""
    body = (
        f"graph(x: float[4]) -> (y, s, k) {{ n: int64[] = {count} go: bool[] = 1 y, s, k = Loop(n, go, x) {{body = {SCANNING}}} }}"
    )
    same(body, {"x": filled((4,))})


@pytest.mark.parametrize("start", [0.0, 9.5, 11.0, -5000.0, -262144.0])
def test_a_condition_ends_the_loop(start: float) -> None:
    """After one iteration, some, or more than scan outputs first have room for."""
    same(loop(UNTIL, "y, s"), {"x": np.full(4, start, np.float32), "n": number(1 << 40)})
    same(loop(UNTIL, "y, s"), {"x": np.full(4, start, np.float32), "n": number(5)})


@pytest.mark.parametrize("inputs", ["'', go, x", "n, '', x", "'', '', x"])
def test_what_may_be_left_out(inputs: str) -> None:
    """The number of iterations, the condition, or both."""
    body = loop(UNTIL, "y, s", inputs=inputs.replace("''", "_"))
    same(body, {"x": filled((4,)), "n": number(7)})


@pytest.mark.parametrize("go", [False, True])
def test_the_first_condition_is_an_input(go: bool) -> None:
    """Where it is false there is no iteration, and the carried values are the first ones."""
    body = f"graph(x: float[4], n: int64[], go: bool[]) -> (y, s) {{ y, s = Loop(n, go, x) {{body = {UNTIL}}} }}"
    same(body, {"x": filled((4,)), "n": number(7), "go": flag(go)})


def test_carried_values_are_exchanged_handed_on_and_replaced() -> None:
    """Two change places, one stays, one becomes what the body captures, one a constant."""
    body = """graph(x: float[N], z: float[N], n: int64[]) -> (y0, y1, y2, y3, y4) {
        go: bool[] = 1 u = Neg(x) one: float[] = 1.0
        y0, y1, y2, y3, y4 = Loop(n, go, x, z, x, x, one) {body =
            graph(i: int64[], c: bool[], a: float[N], b: float[N], e: float[N], f: float[N], g: float[]) -> (c, b, a, e, u, w) {
                w: float[] = 3.0 } }
    }"""
    cases = [{"x": filled((size,)), "z": -filled((size,)), "n": number(count)} for size in (0, 1, 5, 100) for count in (0, 1, 2, 3)]
    same(body, *cases)


def test_captured_values_survive_the_loop() -> None:
    """What a body reads in each iteration is not overwritten, neither by the body nor by what runs besides."""
    body = """graph(x: float[N], n: int64[]) -> (y, t) {
        go: bool[] = 1 u = Neg(x) v = Abs(u)
        y = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[N]) -> (c, b) { p = Add(a, v) q = Relu(p) b = Add(q, u) } }
        t = Add(y, u)
    }"""
    same(body, *({"x": filled((size,)), "n": number(count)} for size in (1, 7, 300) for count in (0, 1, 4)))


def test_parts_of_a_concat_in_a_body() -> None:
    """What is joined in a carried value is written in each iteration, captured or not."""
    body = """graph(x: float[2, N], n: int64[]) -> (y, z) {
        go: bool[] = 1 u = Neg(x) s = Concat(u, x) {axis = 0}
        y = Loop(n, go, s) {body = graph(i: int64[], c: bool[], a: float[4, N]) -> (c, b) {
            f, l = Split(a) {axis = 0, num_outputs = 2} g = Add(f, l) b = Concat(u, g) {axis = 0} } }
        z = Concat(y, u, y) {axis = 0}
    }"""
    same(body, *({"x": filled((2, size)), "n": number(count)} for size in (1, 5) for count in (0, 1, 2, 3)))


NESTED = """graph(i: int64[], c: bool[], a: float[3]) -> (c, b, s, t) {{
    m: int64[] = {inner} go: bool[] = 1
    b, t = Loop(m, go, a) {{body = graph(j: int64[], d: bool[], e: float[3]) -> (d, f, g) {{
        k = Add(i, j) q = Cast(k) {{to = 1}} p = Add(a, e) f = Add(p, q) g = Neg(f) }} }}
    s = Add(a, b) }}"""


@pytest.mark.parametrize("inner", [0, 1, 2, 5])
def test_a_loop_in_a_loop(inner: int) -> None:
    """The inner one reads what the outer one carries, and its scan outputs are slices of the outer one's."""
    body = loop(NESTED.format(inner=inner), "y, s, t", declared="x: float[3]")
    same(body, *({"x": filled((3,)), "n": number(count)} for count in (0, 1, 2, 3, 4)))


CHOOSING = """graph(x: float[N, 3], c: bool) -> (y, z) {
    u = Neg(x)
    p, q = If(c) {then_branch = graph() -> (v, u) { v = Add(x, u) }, else_branch = graph() -> (a, b) { a = Abs(u) b = Mul(a, a) }}
    y = Relu(p) z = Add(q, u) }"""


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_branch_is_chosen(shape: tuple[int, ...], isa: str) -> None:
    """Both make results of one shape; a branch may hand on what it captures, or nothing of its own."""
    dims = ", ".join(map(str, shape))
    body = CHOOSING.replace("c: bool", f"c: bool[{dims}]")
    same(body, *({"x": filled((size, 3)), "c": np.full(shape, holds)} for size in (0, 1, 40) for holds in (True, False)), isa=isa)


def test_a_branch_in_a_loop() -> None:
    """Which one is chosen changes from iteration to iteration."""
    body = loop(
        """graph(i: int64[], c: bool[], a: float[4]) -> (c, b, e) {
            two: int64[] = 2 zero: int64[] = 0
            r = Mod(i, two) e = Equal(r, zero)
            b = If(e) {then_branch = graph() -> (v) { v = Add(a, a) }, else_branch = graph() -> (v) { v = Sub(a, x) }} }""",
        "y, s",
    )
    same(body, *({"x": filled((4,)), "n": number(count)} for count in (0, 1, 2, 7)))


def test_what_only_the_other_branch_needs_is_no_error() -> None:
    """Sizes that a branch cannot work with matter only where it runs; then the message names the node."""
    body = """graph(x: float[N, 2], z: float[M, 2], w: float[K], c: bool[]) -> (y) {
        y = If(c) {then_branch = graph() -> (v) { v = Neg(w) },
                   else_branch = graph() -> (v) { s = Concat(x, z) {axis = 1} t = ReduceSum(s) {keepdims = 0} v = Add(w, t) }} }"""
    feeds: dict[str, Any] = {"x": filled((3, 2)), "z": filled((2, 2)), "w": filled((4,))}
    session = cpu_session(body)
    np.testing.assert_array_equal(session.run(None, {**feeds, "c": flag(True)})[0], -feeds["w"])
    with pytest.raises(InvalidArgument, match='"s".*Concat.*must agree'):
        session.run(None, {**feeds, "c": flag(False)})
    feeds |= {"z": filled((3, 2)), "c": flag(False)}
    np.testing.assert_allclose(session.run(None, feeds)[0], reference(body, feeds)[0], rtol=1e-6)


SUMMING = "graph(a: float[3], r: float[3]) -> (b, s) { b = Add(a, r) s = Neg(b) }"


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices_are_scanned(axis: int, backward: int, isa: str) -> None:
    """Along both axes, from either end, and put together along another one, from either end."""
    dims = "T, 3" if axis == 0 else "3, T"
    body = f"""graph(a: float[3], x: float[{dims}]) -> (y, s) {{ y, s = Scan(a, x) {{body = {SUMMING}, num_scan_inputs = 1,
        scan_input_axes = [{axis}], scan_input_directions = [{backward}],
        scan_output_axes = [{-1 - axis if axis >= 0 else 0}], scan_output_directions = [{1 - backward}]}} }}"""
    sizes = (0, 1, 2, 9)
    same(body, *({"a": filled((3,)), "x": filled((size, 3) if axis == 0 else (3, size))} for size in sizes), isa=isa)


def test_several_states_and_sequences_are_scanned() -> None:
    """States of different types, two sequences, one of them backward."""
    body = """graph(a: float[N], k: int64[], x: float[T, N], z: float[T]) -> (y, m, s, t) {
        y, m, s, t = Scan(a, k, x, z) {num_scan_inputs = 2, scan_input_directions = [0, 1],
            body = graph(a: float[N], k: int64[], x: float[N], z: float[]) -> (b, l, p, l) {
                one: int64[] = 1 b = Add(a, x) l = Add(k, one) p = Mul(b, z) } } }"""
    cases = [{"a": filled((n,)), "k": number(3), "x": filled((t, n)), "z": filled((t,))} for n in (1, 5) for t in (1, 2, 11)]
    same(body, *cases)


def test_a_scan_without_states() -> None:
    """Each slice by itself."""
    body = """graph(x: float[T, 5]) -> (s) {
        s = Scan(x) {num_scan_inputs = 1, body = graph(r: float[5]) -> (v) { v = Softmax(r) } } }"""
    feeds = {"x": filled((6, 5))}
    np.testing.assert_allclose(run_cpu(body, feeds)[0], reference(body, feeds)[0], rtol=1e-6)


def test_a_body_of_sizes() -> None:
    """Shapes that a body computes are known when the loop is bound."""
    body = """graph(x: float[N, 6], n: int64[]) -> (y) { go: bool[] = 1
        y = Loop(n, go, x) {body = graph(i: int64[], c: bool[], a: float[N, 6]) -> (c, b) {
            s = Shape(a) k: int64[2] = [-1, 3] r = Reshape(a, k) t = Neg(r) b = Reshape(t, s) } } }"""
    same(body, *({"x": filled((size, 6)), "n": number(3)} for size in (1, 4)))


def test_an_index_out_of_range_names_its_node() -> None:
    """Indices are checked in each iteration."""
    body = loop(
        """graph(i: int64[], c: bool[], a: float[]) -> (c, b) { v = Gather(x, i) b = Add(a, v) }""",
        head="go: bool[] = 1 zero: float[] = 0.0",
        inputs="n, go, zero",
    )
    same(body, {"x": filled((4,)), "n": number(4)})
    session = cpu_session(body)
    for _ in range(2):
        with pytest.raises(InvalidArgument, match='"v".*Gather'):
            session.run(None, {"x": filled((4,)), "n": number(6)})
        np.testing.assert_allclose(session.run(None, {"x": filled((4,)), "n": number(4)})[0], filled((4,)).sum(), rtol=1e-6)


def test_many_threads_share_the_work_of_a_body() -> None:
    """A body whose steps are of several tasks."""
    body = loop(
        "graph(i: int64[], c: bool[], a: float[N]) -> (c, b, s) { p = Add(a, x) b = Neg(p) s = Relu(b) }", "y, s", "x: float[N]"
    )
    feeds = {"x": filled((100_000,)), "n": number(5)}
    for found, wanted in zip(run_cpu(body, feeds, threads=3), reference(body, feeds), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            loop("graph(i: int64[], c: bool[], a: float[r]) -> (c, b) { b = Concat(a, a) {axis = 0} }"),
            "from iteration to iteration",
        ),
        (
            loop(
                "graph(i: int64[], c: bool[], a: float[4]) -> (c, b) { k = Unique(a) s = Size(k) f = Cast(s) {to = 1} b = Add(a, f) }"
            ),
            "Unique",
        ),
        (CHOOSING.replace("v, u) { v = Add(x, u) }", "v, v) { v = Add(x, u) }").replace("c: bool)", "c: bool[2])"), "no single"),
        (
            """graph(x: float[4], c: bool[]) -> (y) { y = If(c) {then_branch = graph() -> (v) { v = Neg(x) },
               else_branch = graph() -> (v) { v = Concat(x, x) {axis = 0} }} }""",
            "in different shapes",
        ),
    ],
)
def test_what_is_left_to_others(body: str, reason: str) -> None:
    """Shapes that change, operators without kernels, conditions of several elements."""
    assert any(reason in text for text in declined(body)), declined(body)


def test_a_loop_that_nobody_reads_is_not_run() -> None:
    """Its steps go with it."""
    body = loop(ADDING, "y").replace("-> (y) {", "-> (z) { z = Neg(x)")
    assert steps_of(body) == ["Neg"]
