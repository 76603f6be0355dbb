"""Reading and writing by index, against the reference provider; wrong indices are errors that name the step."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, cpu_session, declined, reference, steps_of
from support.moving import filled, same

from sardonyx import RunOptions, RunTerminated
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument


def _indices(shape: tuple[int, ...], length: int, kind: str = "int64") -> Array:
    found: Array = np.random.default_rng(1).integers(-length, length, shape).astype(kind)
    return found


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_along_each_axis(axis: int, isa: str) -> None:
    """Indices of any rank and type, negative ones too."""
    for kind in ("int32", "int64"):
        body = f"graph(x: float[A, 6, C], i: {kind}[P, Q]) -> (y) {{ y = Gather(x, i) {{axis = {axis}}} }}"
        shapes = ((5, 6, 17), (1, 6, 1))
        same(body, *({"x": filled(shape), "i": _indices((2, 3), shape[axis], kind)} for shape in shapes), isa=isa)


def test_one_constant_index_is_a_slice() -> None:
    """The first token is a view of one batch and a copy of strided rows of more; an unknown axis is checked in the run."""
    same("graph(x: float[N, 6, 5]) -> (y) { i: int64[] = -1 y = Gather(x, i) {axis = 1} }", (1, 6, 5), (3, 6, 5))
    same("graph(x: float[N, T, 5]) -> (y) { i: int64[] = -1 y = Gather(x, i) {axis = 1} }", (1, 6, 5), (3, 1, 5))
    body = "graph(x: float[1, 6, 5]) -> (y) { i: int64[1] = [2] n = Neg(x) g = Gather(n, i) {axis = 1} y = Abs(g) }"
    assert "Gather" not in steps_of(body)
    same(body, (1, 6, 5))


def test_a_wrong_index_is_an_error() -> None:
    """Nothing is read out of bounds, and the next run is well again."""
    session = cpu_session("graph(x: float[N, 4], i: int64[K]) -> (y) { y = Gather(x, i) }")
    x = filled((3, 4))
    for wrong in (3, -4, 1 << 62):
        with pytest.raises(InvalidArgument, match="Gather.*index.*out of range|Gather.*out of range"):
            session.run(None, {"x": x, "i": np.array([0, wrong], np.int64)})
    np.testing.assert_array_equal(session.run(None, {"x": x, "i": np.array([2], np.int64)})[0], x[[2]])


@pytest.mark.parametrize("threads", [1, 2])
def test_wrong_indices_of_every_operator(threads: int) -> None:
    """GatherND, GatherElements, ScatterND and ScatterElements check too."""
    head = "graph(x: float[8, 4], i: int64[8, 1], u: float[8, 1], v: float[8, 4]) -> (y)"
    for call in ("GatherND(x, i)", "GatherElements(x, i) {axis = 1}", "ScatterND(x, i, v)", "ScatterElements(x, i, u)"):
        session = cpu_session(f"{head} {{ y = {call} }}", threads=threads)
        feeds = {"x": filled((8, 4)), "u": filled((8, 1)), "v": filled((8, 4)), "i": np.zeros((8, 1), np.int64)}
        session.run(None, feeds)
        feeds["i"][5] = 100
        with pytest.raises(InvalidArgument, match="out of range"):
            session.run(None, feeds)


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("depth", [1, 2])
def test_tuples(batch: int, depth: int) -> None:
    """Slices and elements, with and without a batch in common."""
    body = f"graph(x: float[N, 5, 6], i: int64[N, 7, {depth}]) -> (y) {{ y = GatherND(x, i) {{batch_dims = {batch}}} }}"
    cases = []
    for size in (1, 4):
        limits = np.array((size, 5, 6)[batch : batch + depth])
        places = np.random.default_rng(0).integers(-limits, limits, (size, 7, depth))
        cases.append({"x": filled((size, 5, 6)), "i": places})
    same(body, *cases)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_along_an_axis(axis: int) -> None:
    """The indices are as long as the data off the axis."""
    dims = ["N", "M", "6"]
    dims[axis] = "K"
    body = f"graph(x: float[N, M, 6], i: int32[{', '.join(dims)}]) -> (y) {{ y = GatherElements(x, i) {{axis = {axis}}} }}"
    cases = []
    for shape in ((3, 4, 6), (1, 1, 6), (2, 70, 6)):
        sizes = list(shape)
        sizes[axis] = 9
        cases.append({"x": filled(shape), "i": _indices(tuple(sizes), shape[axis], "int32")})
    same(body, *cases)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_updates(reduction: str) -> None:
    """Rows and elements are written, the last one stays, or all are combined."""
    body = f"""graph(x: float[N, 5], i: int64[K, 1], u: float[K, 5]) -> (y) {{
        y = ScatterND(x, i, u) {{reduction = "{reduction}"}}
    }}"""
    cases = [{"x": filled((n, 5)), "i": _indices((k, 1), n), "u": filled((k, 5))} for n, k in ((4, 3), (1, 9), (7, 0))]
    same(body, *cases, opset=18)
    body = f"""graph(x: int64[N, 5], i: int64[K, 5], u: int64[K, 5]) -> (y) {{
        y = ScatterElements(x, i, u) {{axis = 0, reduction = "{reduction}"}}
    }}"""
    cases = [
        {"x": filled((n, 5), "int64"), "i": _indices((k, 5), n), "u": filled((k, 5), "int64")} for n, k in ((4, 3), (1, 9), (7, 0))
    ]
    same(body, *cases, opset=18)


def test_what_cannot_be_told_is_left_alone() -> None:
    """Tuples of an unknown length, batches that may differ, reductions of narrow floats."""
    assert declined("graph(x: float[3, 4], i: int64[2, K]) -> (y: float[A, B]) { y = GatherND(x, i) }")
    assert declined("graph(x: float[N, 4], i: int64[M, 2, 1]) -> (y) { y = GatherND(x, i) {batch_dims = 1} }")
    body = 'graph(x: float16[N], i: int64[K, 1], u: float16[K]) -> (y) { y = ScatterND(x, i, u) {reduction = "add"} }'
    assert declined(body) == ["add of elements of type float16"]


@pytest.mark.parametrize(("axis", "opset"), [(-1, 21), (0, 21), (1, 21), (1, 10)])
def test_one_hot(axis: int, opset: int) -> None:
    """Negative indices count from the end since version 11; those outside are off."""
    body = f"""graph(i: int64[N, 3], v: float[2]) -> (y) {{
        d: int64[] = 4
        y = OneHot(i, d, v) {{axis = {axis}}}
    }}"""
    rng = np.random.default_rng(0)
    same(body, *({"i": rng.integers(-6, 6, (n, 3)), "v": np.array([2, 5], np.float32)} for n in (0, 1, 40)), opset=opset)


@pytest.mark.parametrize("node", ["GatherElements(x, i)", "ScatterElements(x, i, x)"])
@pytest.mark.parametrize("axis", [2, -3, 1 << 40])
def test_an_axis_that_elements_do_not_have_is_left_to_others(node: str, axis: int) -> None:
    """It is not counted around; the error is made when the model runs."""
    body = f"graph(x: float[2, 3], i: int64[2, 3]) -> (y: float[2, 3]) {{ y = {node} {{axis = {axis}}} }}"
    assert declined(body) == [f"axis={axis} is outside [-2, 1] for a tensor of rank 2; name an axis that it has"]
    with pytest.raises(InvalidArgument, match=f"axis={axis}"):
        reference(body, {"x": np.zeros((2, 3), np.float32), "i": np.zeros((2, 3), np.int64)})


@pytest.mark.parametrize("threads", [1, 3])
def test_a_long_scatter_is_ended(threads: int) -> None:
    """In the middle of one row, whose updates follow one another on any number of threads."""
    count = 4_000_000
    body = 'graph(x: float[n], i: int64[n], u: float[n]) -> (y: float[n]) { y = ScatterElements(x, i, u) {reduction = "add"} }'
    session, places = cpu_session(body, threads=threads), np.random.default_rng(0).integers(0, count, count)
    feeds = {"x": np.zeros(count, np.float32), "i": places, "u": np.ones(count, np.float32)}
    options = RunOptions()
    options.timeout_ms = 3
    with pytest.raises(RunTerminated):
        session.run(None, feeds, options)
    np.testing.assert_array_equal(session.run(None, feeds)[0], np.bincount(places, minlength=count))
