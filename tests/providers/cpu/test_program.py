"""Programs: binding and running, from many threads, on what users give."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.cpu_run import cpu_session, run_cpu, steps_of

import sardonyx
from sardonyx.config import Limits
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.cpu import planning

BODY = """graph(x: float[n, 8], z: float[n, 8]) -> (y: float[n, 8], s: float[n, 1]) {
    axes: int64[1] = [1]
    a = Add(x, z) b = Softmax(a) y = Mul(b, z) s = ReduceSum(y, axes) }"""


def _feeds(size: int) -> dict[str, Array]:
    generator = np.random.default_rng(size)
    return {name: generator.standard_normal((size, 8)).astype(np.float32) for name in "xz"}


def test_many_threads_bind_and_run_one_program() -> None:
    """Each gets what it would get alone."""
    session = cpu_session(BODY)
    expected = {size: run_cpu(BODY, _feeds(size)) for size in range(1, 6)}
    barrier = threading.Barrier(4)

    def work(first: int) -> bool:
        barrier.wait()
        sizes = [1 + (first + step) % 5 for step in range(40)]
        return all(
            found.tobytes() == wanted.tobytes()
            for size in sizes
            for found, wanted in zip(session.run(None, _feeds(size)), expected[size], strict=True)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_results_belong_to_the_user() -> None:
    """A later run does not change what an earlier one gave."""
    session = cpu_session(BODY)
    first, _ = session.run(None, _feeds(3))
    kept = first.copy()
    session.run(None, {name: array + 1 for name, array in _feeds(3).items()})
    np.testing.assert_array_equal(first, kept)


def test_inputs_are_not_written_to() -> None:
    """Also where a step could write in place, and where they are read-only."""
    session = cpu_session("graph(x: float[n]) -> (y: float[n]) { a = Relu(x) y = Softmax(a) }")
    x = np.linspace(-1, 1, 9, dtype=np.float32)
    x.flags.writeable = False
    before = x.copy()
    session.run(None, {"x": x})
    np.testing.assert_array_equal(x, before)


def test_one_array_may_be_given_for_two_inputs() -> None:
    """And outputs are apart from it."""
    x = _feeds(4)["x"]
    y, _ = run_cpu(BODY, {"x": x, "z": x})
    assert not np.shares_memory(y, x)


def test_sizes_that_contradict_one_another_are_errors() -> None:
    """The message names the inputs."""
    session = cpu_session(BODY)
    with pytest.raises(InvalidArgument, match="inputs 'x' and 'z' give the dimension n two sizes, 3 and 4"):
        session.run(None, {"x": _feeds(3)["x"], "z": _feeds(4)["z"]})
    assert session.run(None, _feeds(3))[0].shape == (3, 8)


def test_empty_tensors() -> None:
    """A size of 0 runs no task."""
    y, s = run_cpu(BODY, _feeds(0))
    assert (y.shape, s.shape) == ((0, 8), (0, 1))


def test_an_index_out_of_range_names_its_node() -> None:
    """It is an error of the input, and the session goes on."""
    session = cpu_session("graph(x: float[5, 2], i: int64[n]) -> (y: float[n, 2]) { y = Gather(x, i) }")
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    with pytest.raises(InvalidArgument, match="Gather.*element 1 of its indices is out of range"):
        session.run(None, {"x": x, "i": np.array([0, 5])})
    np.testing.assert_array_equal(session.run(None, {"x": x, "i": np.array([-1, 4])})[0], x[[4, 4]])


def test_outputs_that_are_inputs_constants_or_each_other() -> None:
    """Each output has memory of its own."""
    body = """graph(x: float[2, 3]) -> (y: float[2, 3], z: float[2, 3], w: float[3, 2], q: float[2, 3]) {
        s: int64[2] = [3, 2]
        y = Relu(x) z = Identity(y) w = Reshape(y, s) q = Identity(x) }"""
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    y, z, w, q = run_cpu(body, {"x": x})
    np.testing.assert_array_equal(q, x)
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    np.testing.assert_array_equal(z, y)
    np.testing.assert_array_equal(w, y.reshape(3, 2))
    arrays = [x, y, z, w, q]
    assert not any(np.shares_memory(a, b) for index, a in enumerate(arrays) for b in arrays[:index])


def test_steps_are_named_by_their_operators() -> None:
    """For reports."""
    assert steps_of(BODY) == ["Add", "Softmax+Mul", "ReduceSum"]


def test_sizes_that_would_be_negative_are_errors() -> None:
    """Also of parts that nobody is given: they would begin before the tensor that they are parts of."""
    body = """graph(x: float[n]) -> (y: float[m]) {
        f: int64[1] = [5] s = Shape(x) d = Sub(s, f) l = Concat(d, f) {axis = 0} a, b = Split(x, l) {axis = 0} y = Relu(b) }"""
    session = cpu_session(body)
    assert session.run(None, {"x": np.ones(7, np.float32)})[0].shape == (5,)
    with pytest.raises(InvalidArgument, match="would begin at element -2"):
        session.run(None, {"x": np.ones(3, np.float32)})
    both = cpu_session(body.replace("y = Relu(b)", "y = Relu(a)"))
    with pytest.raises(InvalidArgument, match=r"shape \(-2,\), where no size can be negative"):
        both.run(None, {"x": np.ones(3, np.float32)})


@pytest.mark.parametrize("missing", [1, 2])
def test_a_size_below_zero_is_an_error(missing: int) -> None:
    """Be it by one."""
    body = """graph(x: float[n]) -> (y: float[m]) {
        f: int64[1] = [5] s = Shape(x) d = Sub(s, f) l = Concat(d, f) {axis = 0} a, b = Split(x, l) {axis = 0} y = Relu(a) }"""
    with pytest.raises(InvalidArgument, match=rf"shape \(-{missing},\), where no size can be negative"):
        cpu_session(body).run(None, {"x": np.ones(5 - missing, np.float32)})


def test_a_step_may_write_the_limit_but_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is allocated for what is larger."""
    session = cpu_session("graph(x: float[n]) -> (y: float[n]) { y = Relu(x) }")
    monkeypatch.setattr(planning, "LIMITS", Limits(tensor_bytes=16))
    assert session.run(None, {"x": np.ones(4, np.float32)})[0].shape == (4,)
    with pytest.raises(InvalidArgument, match=r"shape \(5,\), that is 20 bytes; at most 16 are allowed"):
        session.run(None, {"x": np.ones(5, np.float32)})


def test_rows_of_nothing_are_not_walked() -> None:
    """However many of them there are, nothing is to be done."""
    session = cpu_session("graph(x: float[n, m]) -> (y: float[n, m]) { y = Softmax(x) }")
    assert session.run(None, {"x": np.zeros((1 << 60, 0), np.float32)})[0].shape == (1 << 60, 0)


@pytest.mark.parametrize("amount", [1 << 62, (1 << 63) - 1])
@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_empty_outputs_whose_sizes_no_array_can_have_are_errors(amount: int, mode: str) -> None:
    """The message names the shape."""
    session = cpu_session(f'graph(x: float[0, 4]) -> (y) {{ p: int64[4] = [0, {amount}, 0, 0] y = Pad(x, p) {{mode = "{mode}"}} }}')
    with pytest.raises(InvalidArgument, match=str(amount + 4)):
        session.run(None, {"x": np.zeros((0, 4), np.float32)})


def test_indices_into_nothing_are_checked() -> None:
    """Though there is nothing to move."""
    session = cpu_session("graph(x: float[6, 0], i: int64[n]) -> (y) { y = Gather(x, i) }")
    assert session.run(None, {"x": np.zeros((6, 0), np.float32), "i": np.array([5])})[0].shape == (1, 0)
    with pytest.raises(InvalidArgument, match="out of range"):
        session.run(None, {"x": np.zeros((6, 0), np.float32), "i": np.array([6])})


LONG_ROW = "graph(x: float[n]) -> (y: float[n]) {\ny = Softmax(x)\n}"


def test_a_run_with_a_long_task_ends_at_once() -> None:
    """It does not wait for its task, and the next run is right: it has memory of its own."""
    session, x = cpu_session(LONG_ROW), np.zeros(1 << 24, np.float32)
    options = sardonyx.RunOptions()
    ended = 0
    for delay in (0.001, 0.01, 0.03):
        options.terminate = False
        timer = threading.Timer(delay, setattr, (options, "terminate", True))
        timer.start()
        try:
            session.run(None, {"x": x}, options)
        except sardonyx.RunTerminated:
            ended += 1
        timer.join()
        assert (session.run(None, {"x": x})[0] == np.float32(2**-24)).all()
    assert ended


def test_a_long_task_is_not_run_where_python_does_not_listen() -> None:
    """Runs by machine code have none; shorter ones of the same program may."""
    session = cpu_session(LONG_ROW)
    program = session._runner.built.plans[0].steps[0].program  # type: ignore[attr-defined]  # of a private base
    assert program.native_call(program.bind(((1 << 24,),))) is None
    assert program.native_call(program.bind(((1 << 10,),))) is not None


def test_what_is_bound_is_never_written_after_a_run() -> None:
    """A run into arrays of the user waits for its task when it is ended."""
    session, x, y = cpu_session(LONG_ROW), np.zeros(1 << 24, np.float32), np.zeros(1 << 24, np.float32)
    binding, options = session.io_binding(), sardonyx.RunOptions()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    timer = threading.Timer(0.01, setattr, (options, "terminate", True))
    timer.start()
    with contextlib.suppress(sardonyx.RunTerminated):
        session.run_with_iobinding(binding, options)
    y.fill(7)
    time.sleep(0.2)
    assert (y == 7).all()
