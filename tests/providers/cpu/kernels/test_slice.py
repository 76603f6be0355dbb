"""Concat, Split, Slice: against the reference provider, for several sizes of one session."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference, steps_of
from support.models import model
from support.moving import filled, same

from sardonyx import InferenceSession
from sardonyx.errors import InvalidArgument, InvalidGraph
from sardonyx.formats.onnx import to_bytes


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_inputs_are_joined(axis: int, isa: str) -> None:
    """Along each axis, an input twice, empty ones."""
    shape = ["3", "4", "5"]
    shape[axis] = "N"
    dims = ", ".join(shape)
    body = f"graph(x: float[{dims}], z: float[3, 4, 5]) -> (y) {{ y = Concat(x, z, x) {{axis = {axis}}} }}"
    cases = []
    for size in (0, 1, 17):
        sizes = [3, 4, 5]
        sizes[axis] = size
        cases.append({"x": filled(sizes), "z": filled((3, 4, 5))})
    same(body, *cases, isa=isa)


def test_what_is_made_for_a_concat_is_made_in_its_place() -> None:
    """Parts that lie densely in the result are written there, unless they have a place already; views of them follow."""
    body = """graph(x: float[1, N, 4], w: float[1, 2, 4]) -> (y) {
        s: int64[3] = [0, 0, 4]
        a = Neg(x)
        b = Abs(x)
        v = Reshape(a, s)
        c = Concat(a, b, w, a) {axis = 1}
        d = Concat(v, v) {axis = 1}
        e = Concat(c, d) {axis = 1}
        y = Relu(e)
    }"""
    assert steps_of(body).count("Concat") == 4
    same(body, *({"x": filled((1, size, 4)), "w": filled((1, 2, 4))} for size in (0, 1, 3, 40)))


def test_parts_that_do_not_fit_together_are_an_error() -> None:
    """Sizes off the axis are compared when they are known, before anything is written."""
    for other in ("2", "M"):
        body = f"graph(x: float[N, 4], z: float[{other}, 4]) -> (y) {{ a = Abs(x) y = Concat(a, z) {{axis = 1}} }}"
        same(body, {"x": filled((2, 4)), "z": filled((2, 4))})
        with pytest.raises(InvalidArgument, match="Concat.*must agree"):
            cpu_session(body).run(None, {"x": filled((5000, 4)), "z": filled((2, 4))})


def test_a_part_that_is_given_out_too() -> None:
    """The output of its own keeps its elements."""
    body = "graph(x: float[N, 4]) -> (y, a) { a = Neg(x) b = Abs(x) y = Concat(a, b) {axis = 0} }"
    same(body, (3, 4), (0, 4))


def test_constants_and_inputs_are_copied() -> None:
    """A Concat of what no step makes."""
    body = "graph(x: float[N, 2]) -> (y) { w: float[2, 2] = [1, 2, 3, 4] y = Concat(x, w) {axis = 0} }"
    same(body, (1, 2), (0, 2), (5, 2))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_of_an_axis(axis: int) -> None:
    """Equal parts, given lengths, and the last part as a shorter one."""
    dims = ["N", "6", "7"]
    dims[axis] = "6"
    shape = [5, 6, 7]
    shape[axis] = 6
    text = ", ".join(dims)
    same(f"graph(x: float[{text}]) -> (a, b) {{ a, b = Split(x) {{axis = {axis}, num_outputs = 2}} }}", shape)
    same(f"graph(x: float[{text}]) -> (a, b) {{ a, b = Split(x) {{axis = {axis}}} }}", shape, opset=11)
    same(f"graph(x: float[{text}]) -> (a, b) {{ a, b = Split(x) {{axis = {axis}, split = [1, 5]}} }}", shape, opset=11)
    same(f"graph(x: float[{text}]) -> (a, b, c, d) {{ a, b, c, d = Split(x) {{axis = {axis}, num_outputs = 4}} }}", shape)
    lengths = "s: int64[3] = [0, 2, 4]"
    same(f"graph(x: float[{text}]) -> (a, b, c) {{ {lengths} a, b, c = Split(x, s) {{axis = {axis}}} }}", shape)


def test_parts_for_a_concat_are_copied_once() -> None:
    """They are read where they were, with their steps, unless somebody else reads them too."""
    body = """graph(x: float[N, 6, 8]) -> (y, z) {
        lengths: int64[3] = [3, 4, 1]
        b: int64[1] = [1]
        e: int64[1] = [6]
        axis: int64[1] = [2]
        two: int64[1] = [2]
        n = Neg(x)
        p, q, r = Split(n, lengths) {axis = 2}
        t = Slice(n, b, e, axis, two)
        y = Concat(r, t, p, q) {axis = 2}
        z = Abs(q)
    }"""
    assert [name for name in steps_of(body) if name in ("Slice", "Split")] == ["Split"]
    same(body, (2, 6, 8), (1, 6, 8), (0, 6, 8))


def test_turned_halves() -> None:
    """Rotary embeddings: the halves of a head, one of them negated, change places."""
    body = """graph(x: float[N, T, 8]) -> (y) {
        zero: int64[1] = [0]
        half: int64[1] = [4]
        end: int64[1] = [8]
        axis: int64[1] = [2]
        n = Relu(x)
        a = Slice(n, zero, half, axis)
        b = Slice(n, half, end, axis)
        c = Neg(b)
        y = Concat(c, a) {axis = 2}
    }"""
    assert sum(step in ("Slice", "Split") for step in steps_of(body)) == 1
    same(body, (2, 3, 8), (1, 1, 8), (0, 3, 8))


def test_halves_of_an_axis_of_any_size() -> None:
    """Gated units: two halves of the channels, used at once."""
    body = """graph(x: float[N, T, 8]) -> (y) {
        a, b = Split(x) {axis = -1, num_outputs = 2}
        g = Sigmoid(b)
        y = Concat(a, b) {axis = 0}
    }"""
    same(body, (1, 3, 8), (2, 1, 8), (0, 3, 8))


_SLICES = [
    ([0], [3], [0], [1]),
    ([2], [9223372036854775807], [1], [1]),
    ([-3], [9223372036854775807], [1], [1]),
    ([0], [-1], [1], [1]),
    ([-100], [100], [2], [2]),
    ([1], [6], [2], [3]),
    ([1, 1], [-1, -1], [1, 2], [1, 1]),
    ([7], [9], [0], [1]),
    ([3], [2], [1], [1]),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), _SLICES)
def test_boxes_of_axes_of_any_size(starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> None:
    """Starts and ends from both sides, beyond them, and behind one another."""
    count = len(starts)
    given = {"b": starts, "e": ends, "a": axes, "s": steps}
    lines = "\n".join(f"{name}: int64[{count}] = {value}" for name, value in given.items())
    body = f"graph(x: float[A, B, C]) -> (y) {{ {lines}\n y = Slice(x, b, e, a, s) }}"
    same(body, (5, 6, 7), (1, 2, 1), (1, 1, 33), (8, 4, 64), (0, 3, 3))


def test_backwards() -> None:
    """Negative steps on axes of a known size, and whole axes of any size."""
    body = """graph(x: float[6, 7]) -> (y, z) {
        b: int64[2] = [-1, 5]
        e: int64[2] = [-100, 1]
        a: int64[2] = [0, 1]
        s: int64[2] = [-1, -2]
        y = Slice(x, b, e, a, s)
        z = Slice(y, b, e, a, s)
    }"""
    same(body, (6, 7))
    body = """graph(x: float[N, 3]) -> (y) {
        b: int64[1] = [-1]
        e: int64[1] = [-9223372036854775807]
        a: int64[1] = [0]
        s: int64[1] = [-1]
        y = Slice(x, b, e, a, s)
    }"""
    same(body, (6, 3), (1, 3), (0, 3))


def test_old_slices() -> None:
    """Bounds as attributes."""
    same("graph(x: float[N, 6]) -> (y) { y = Slice(x) {starts = [1, 0], ends = [3, -2], axes = [1, 0]} }", (4, 6), (1, 6), opset=9)
    same("graph(x: float[N, 6]) -> (y) { y = Slice(x) {starts = [1], ends = [100]} }", (4, 6), (1, 6), opset=9)


def test_a_dense_slice_copies_nothing() -> None:
    """The first row of one image."""
    body = """graph(x: float[1, 5, C]) -> (y) {
        b: int64[1] = [1]
        e: int64[1] = [3]
        a: int64[1] = [1]
        n = Neg(x)
        v = Slice(n, b, e, a)
        y = Abs(v)
    }"""
    assert "Slice" not in steps_of(body)
    same(body, (1, 5, 7), (1, 5, 64))


def test_starts_that_follow_from_sizes() -> None:
    """As masks of causal attention are cut from a table: a row for each query, a column for each key."""
    body = """graph(x: float[b, s, 4], p: float[b, t, 4]) -> (y) {
        table: float[1, 9, 9] = ... 1
        zero: int64[1] = [0] one: int64[1] = [1] two: int64[1] = [2]
        new = Shape(x) {start = 1, end = 2} old = Shape(p) {start = 1, end = 2} all = Add(new, old)
        first = Sub(all, new)
        rows = Slice(table, first, all, one)
        y = Slice(rows, zero, all, two)
    }"""
    session, rng = cpu_session(body), np.random.default_rng(0)
    for s, t in ((1, 5), (3, 2), (9, 0), (4, 7), (2, 12)):
        feeds = {name: rng.standard_normal((2, size, 4)).astype(np.float32) for name, size in (("x", s), ("p", t))}
        np.testing.assert_array_equal(session.run(None, feeds)[0], reference(body, feeds)[0])


def test_starts_that_may_count_from_the_end_are_left_alone() -> None:
    """Sizes decide whether they do."""
    body = """graph(x: float[s], p: float[t]) -> (y) {
        table: float[9] = ... 1
        new = Shape(x) old = Shape(p) first = Sub(old, new)
        end: int64[1] = [9]
        y = Slice(table, first, end)
    }"""
    (reason,) = declined(body)
    assert "starts are computed" in reason or "depends on sizes" in reason


def test_computed_bounds_are_left_alone() -> None:
    """How much is taken is not known before the run."""
    assert declined("graph(x: float[N], b: int64[1], e: int64[1]) -> (y) { y = Slice(x, b, e) }")


def test_backwards_from_outside_is_left_alone() -> None:
    """Where engines and shape inference do not agree on what is taken."""
    head = "graph(x: float[4]) -> (y) { a: int64[1] = [0] s: int64[1] = [-1]"
    assert declined(f"{head} b: int64[1] = [-9] e: int64[1] = [-6] y = Slice(x, b, e, a, s) }}")
    assert declined(f"{head} b: int64[1] = [-1] e: int64[1] = [9223372036854775807] y = Slice(x, b, e, a, s) }}")


def test_moved_elements_are_not_looked_at() -> None:
    """NaN with a payload, and bools that are neither 0 nor 1, come through."""
    x = np.array([0x7FC12345, 0x7F812345, 0x80000000], np.uint32).view(np.float32).reshape(3, 1).repeat(2, 1)
    same("graph(x: float[A, B]) -> (y) { y = Transpose(x) }", {"x": x})


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads(mode: str, isa: str) -> None:
    """Channels-first and channels-last images, and every axis; more than there is, too."""
    for pads in ("[0, 0, 1, 2, 0, 0, 3, 0]", "[0, 1, 2, 0, 0, 1, 0, 0]", "[1, 0, 5, 1, 0, 4, 7, 9]"):
        body = f"""graph(x: float[A, B, C, D]) -> (y) {{
            p: int64[8] = {pads}
            y = Pad(x, p) {{mode = "{mode}"}}
        }}"""
        same(body, (1, 2, 3, 4), (2, 1, 1, 17), (1, 3, 2, 70), isa=isa)


@pytest.mark.parametrize("kind", ["int64", "uint8", "float16", "double"])
def test_a_constant_of_any_type(kind: str) -> None:
    """Given, computed, and left out; for some axes."""
    body = f"""graph(x: {kind}[N, 4], v: {kind}[1]) -> (y, z, w) {{
        p: int64[4] = [1, 0, 0, 2]
        q: int64[2] = [3, 1]
        a: int64[1] = [-1]
        c: {kind}[] = 7
        y = Pad(x, p, c)
        z = Pad(x, p, v)
        w = Pad(x, q, _, a)
    }}"""
    same(body, *({"x": filled((n, 4), kind), "v": filled((1,), kind)} for n in (0, 1, 5)))


def test_crops() -> None:
    """Negative pads on axes of a known size, also mixed with positive ones."""
    for mode in ("constant", "edge", "reflect"):
        body = f'graph(x: float[5, 6]) -> (y) {{ p: int64[4] = [-1, 2, 2, -3] y = Pad(x, p) {{mode = "{mode}"}} }}'
        same(body, (5, 6))
    same("graph(x: float[2, 6]) -> (y) { p: int64[4] = [-3, 0, 5, 0] y = Pad(x, p) }", (2, 6))
    assert declined("graph(x: float[N]) -> (y) { p: int64[2] = [-1, 0] y = Pad(x, p) }")


@pytest.mark.parametrize("pads", [(9, -7), (-7, 9), (2000000, -1999998), (2**63 - 1, -(2**63 - 1)), (9, -12)])
@pytest.mark.parametrize("axes", ["[1]", "[0]"])
def test_crops_of_padding(pads: tuple[int, int], axes: str) -> None:
    """A crop that reaches through the data into the padding on the other side leaves padding, as in ONNX Runtime."""
    body = f"graph(x: float[4, 4]) -> (y) {{ p: int64[2] = [{pads[0]}, {pads[1]}] a: int64[1] = {axes} y = Pad(x, p, _, a) }}"
    same(body, (4, 4))


def test_old_pads() -> None:
    """Pads and value as attributes."""
    same("graph(x: float[N, 3]) -> (y) { y = Pad(x) {pads = [0, 1, 2, 0], value = 1.5} }", (2, 3), (0, 3), opset=2)


def test_nothing_cannot_be_repeated() -> None:
    """An empty axis has no edge."""
    session = cpu_session('graph(x: float[N]) -> (y) { p: int64[2] = [1, 1] y = Pad(x, p) {mode = "edge"} }')
    with pytest.raises(InvalidArgument, match="nothing is left to repeat"):
        session.run(None, {"x": np.zeros(0, np.float32)})


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("kind", ["float", "bool", "int64"])
def test_triangles(upper: int, kind: str) -> None:
    """Any diagonal, given or not; batches and matrices that are not square."""
    body = f"""graph(x: {kind}[N, R, C], k: int64[]) -> (y, z) {{
        y = Trilu(x, k) {{upper = {upper}}}
        z = Trilu(x) {{upper = {upper}}}
    }}"""
    for k in (0, 1, -2, 100, -100, (1 << 63) - 1):
        cases = ({"x": filled(shape, kind), "k": np.array(k)} for shape in ((2, 5, 5), (1, 3, 40), (1, 1, 1), (1, 0, 3)))
        same(body, *cases)


@pytest.mark.parametrize("node", ["Pad(x, p, _, a)", "Slice(x, b, e, a)"])
def test_an_axis_that_is_named_twice_is_an_error(node: str) -> None:
    """As in ONNX Runtime: how large the result is would depend on both."""
    body = f"""graph(x: float[9]) -> (y) {{
        p: int64[4] = [-9, 0, 0, 1] a: int64[2] = [0, -1] b: int64[2] = [1, 2] e: int64[2] = [9, 9] y = {node} }}"""
    with pytest.raises(InvalidGraph, match="names an axis twice"):
        cpu_session(body)


def test_parts_that_must_be_equal_are_left_where_they_may_not_be() -> None:
    """Before opset 18 an axis that does not divide is an error, which the run shows where the size is open."""
    text = "graph(x: float[n]) -> (a, b, c) { a, b, c = Split(x) }"
    assert declined(text, opset=13) == ["that an axis of n splits into 3 equal parts depends on sizes"]
    with pytest.raises(InvalidArgument, match="an axis of length 7 does not split into 3 equal parts"):
        InferenceSession(to_bytes(model(text, opset=13))).run(None, {"x": filled((7,))})
    assert not declined("graph(x: float[n, 6]) -> (a, b, c) { a, b, c = Split(x) {axis = 1} }", opset=13)


def test_parts_of_any_number() -> None:
    """From Split-18 on the last parts may be shorter or empty; how long they are must be known."""
    body = "graph(x: float[2, {n}]) -> (a, b, c, d) {{ a, b, c, d = Split(x) {{axis = 1, num_outputs = 4}} }}"
    for size in (2, 5, 7, 8):
        same(body.format(n=size), (2, size))
    assert declined(body.format(n="N"))


def test_the_pads_of_the_first_version() -> None:
    """They had another name."""
    same("graph(x: float[N, 3]) -> (y: float[M, 6]) { y = Pad(x) {paddings = [0, 1, 0, 2], value = 7.0} }", (2, 3), opset=1)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", ["float", "double", "int8", "bool", "float16"])
@pytest.mark.parametrize(("shape", "axes"), [([5, 9, 4], None), ([11, 3], [0, 2]), ([2], [-2]), ([0, 20], [1, 0])])
def test_center_crop_pad(shape: list[int], axes: list[int] | None, kind: str, isa: str) -> None:
    """Axes that grow and shrink, by even and odd numbers."""
    attributes = "" if axes is None else f" {{axes = {axes}}}"
    body = f"graph(x: {kind}[A, B, C]) -> (y) {{ s: int64[{len(shape)}] = {shape} y = CenterCropPad(x, s){attributes} }}"
    session = cpu_session(body, opset=18, isa=isa)
    for sizes in ((8, 7, 6), (5, 20, 21), (1, 1, 1)):
        x = np.random.default_rng(0).integers(-9, 9, sizes).astype(kind.replace("float", "float32").replace("float3216", "float16"))
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], reference(body, {"x": x}, opset=18)[0])
