"""Runs that machine code takes, and all that it leaves to Python."""

import gc
import os
import pickle
import sys
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from support.models import model
from support.native_runs import learned, only_native, run_in_python
from support.session_models import MLP, rows, session

import sardonyx as ort
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.native.run import NativeRuns
from sardonyx.values.sparse_tensor import SparseTensor

TWO = """graph(a: float[n, 2], b: int64[n]) -> (p: float[n, 2], q: int64[n], r: float[n]) {
    p = Exp(a)
    q = Add(b, b)
    axis: int64[1] = [1]
    r = ReduceSum(p, axis) {keepdims = 0}
}"""
WITH_DEFAULT = """graph(x: float[n], scale: float[1]) -> (y: float[n]) {
    scale: float[1] = [3.0]
    y = Mul(x, scale)
}"""

TOP = "graph(x: float[N, 5], k: int64[1]) -> (r: float[N, 5], v: float[N, m], i: int64[N, m]) { r = Relu(x) v, i = TopK(r, k) }"
NON_ZERO = "graph(x: float[4, 5]) -> (places: int64[2, m]) { places = NonZero(x) }"


def _two(n: int) -> dict[str, Any]:
    return {"a": np.random.default_rng(n).standard_normal((n, 2)).astype(np.float32), "b": np.arange(n)}


def _same(left: list[Any], right: list[Any]) -> bool:
    pairs = zip(left, right, strict=True)
    return all(type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and (a == b).all() for a, b in pairs)


@pytest.fixture(scope="module")
def two() -> ort.InferenceSession:
    """A session of two inputs and three outputs that knows batches of 1 and 3."""
    return learned(session(TWO), _two(1), _two(3))


def test_from_the_third_run_on_python_is_not_asked(two: ort.InferenceSession) -> None:
    """The second one has prepared it."""
    with only_native(two):
        assert _same(two.run(None, _two(3)), [*two.run(None, _two(3))])


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("names", [None, ["q"], ["r", "p"], ["p", "q", "r"]])
def test_outputs_are_chosen_and_ordered_natively(two: ort.InferenceSession, names: list[str] | None, size: int) -> None:
    """By None or a list of names."""
    with only_native(two):
        found = two.run(names, _two(size))
    assert _same(found, run_in_python(two, names, _two(size)))


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        (TOP, [{"x": np.arange(15, dtype=np.float32).reshape(3, 5), "k": np.array([k])} for k in (0, 1, 2, 3, 5)]),
        (NON_ZERO, [{"x": (np.arange(20).reshape(4, 5) % period == 0).astype(np.float32)} for period in (1, 2, 3, 21)]),
    ],
)
def test_outputs_are_cut_to_the_sizes_that_a_run_shows(text: str, feeds: list[dict[str, Any]]) -> None:
    """Along any axis, to nothing and to all; what is returned is the caller's alone."""
    counting = learned(session(text), *feeds)
    for feed in feeds:
        with only_native(counting):
            found, again = counting.run(None, feed), counting.run(None, feed)
        assert _same(found, run_in_python(counting, None, feed))
        for array in found:
            array.fill(7)
        assert _same(again, run_in_python(counting, None, feed))


def test_names_that_are_equal_but_not_identical_are_found(two: ort.InferenceSession) -> None:
    """Of outputs and of inputs."""
    feed = {"".join(["", name]) + "": value for name, value in _two(3).items()}
    name = bytes([113]).decode()
    with only_native(two):
        assert len(two.run([name], feed)) == 1


def test_arrays_that_were_unpickled_are_taken() -> None:
    """Their dtypes equal NumPy's own, and are other objects; dtypes of another byte order are not equal."""
    feed = pickle.loads(pickle.dumps(_two(3)))
    assert feed["a"].dtype is not np.dtype(np.float32)
    two = learned(session(TWO), feed)
    with only_native(two):
        found = two.run(None, feed)
    assert _same(found, run_in_python(two, None, _two(3)))
    assert _same(two.run(None, feed | {"a": feed["a"].astype(">f4")}), found)


def test_arguments_may_be_given_by_name(two: ort.InferenceSession) -> None:
    """As to the method in Python."""
    with only_native(two):
        (q,) = two.run(output_names=["q"], input_feed=_two(3))
        assert len(two.run(None, input_feed=_two(3), run_options=None)) == 3
    assert q.tolist() == [0, 2, 4]


def test_a_new_shape_is_learned_by_one_run(two: ort.InferenceSession) -> None:
    """In Python; the next is native."""
    two.run(None, _two(7))
    with only_native(two):
        assert two.run(["q"], _two(7))[0].tolist() == [2 * number for number in range(7)]


def test_more_shapes_than_the_table_holds_are_all_right() -> None:
    """The table is begun anew."""
    held = session(TWO)
    for size in [*range(1, 40), 2, 39]:
        for _ in range(2):
            assert _same(held.run(None, _two(size)), run_in_python(held, None, _two(size)))


def test_inputs_with_a_default_may_be_left_out_or_fed() -> None:
    """A run that feeds them goes through Python."""
    held = learned(session(WITH_DEFAULT), {"x": np.ones(3, np.float32)})
    with only_native(held):
        assert held.run(None, {"x": np.ones(3, np.float32)})[0].tolist() == [3, 3, 3]
    fed = {"x": np.ones(3, np.float32), "scale": np.full(1, 5, np.float32)}
    assert held.run(None, fed)[0].tolist() == [5, 5, 5]


def test_results_are_the_callers_own(two: ort.InferenceSession) -> None:
    """New arrays in each run, writeable, and sharing no memory."""
    first, second = two.run(None, _two(3)), two.run(None, _two(3))
    assert all(array.flags.owndata and array.flags.writeable for array in first)
    assert not any(np.shares_memory(a, b) for a in first for b in second)


class _Feed(dict):  # type: ignore[type-arg]
    """A dict of the user's."""


class _Array(np.ndarray):  # type: ignore[type-arg]
    """An array class of the user's."""


class _Name(str):
    """A text of the user's."""

    __slots__ = ()


class _Bad:
    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError("compared")

    def __hash__(self) -> int:
        return hash("a")


def _changed(change: Callable[[Any], Any]) -> dict[str, Any]:
    feed = _two(3)
    return feed | {"a": change(feed["a"])}


ODD_FEEDS: dict[str, Any] = {
    "a subclass of dict": lambda: _Feed(_two(3)),
    "an ordered dict": lambda: OrderedDict(_two(3)),
    "a proxy": lambda: MappingProxyType(_two(3)),
    "no mapping": lambda: [1],
    "None": lambda: None,
    "empty": dict,
    "one missing": lambda: {"a": _two(3)["a"]},
    "one too many": lambda: _two(3) | {"c": np.zeros(3)},
    "another name": lambda: {"a": _two(3)["a"], "c": _two(3)["b"]},
    "a key that cannot be compared": lambda: {_Bad(): 1, "b": _two(3)["b"]},
    "keys of a text class": lambda: {_Name(name): value for name, value in _two(3).items()},
    "lists": lambda: {name: value.tolist() for name, value in _two(3).items()},
    "another type": lambda: _changed(lambda a: a.astype(np.float64)),
    "byte-swapped": lambda: _changed(lambda a: a.astype(">f4")),
    "transposed": lambda: _changed(lambda a: np.asfortranarray(a)),
    "strided": lambda: _changed(lambda a: np.repeat(a, 2, axis=0)[::2]),
    "reversed": lambda: _changed(lambda a: a[::-1]),
    "broadcast": lambda: _changed(lambda a: np.broadcast_to(a[:1], (3, 2))),
    "unaligned": lambda: _changed(lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(np.float32).reshape(a.shape)),
    "read-only": lambda: _changed(lambda a: np.frombuffer(a.tobytes(), np.float32).reshape(3, 2)),
    "another rank": lambda: _changed(lambda a: a.ravel()),
    "another batch for one": lambda: _changed(lambda a: a[:2].copy()),
    "another second size": lambda: _changed(lambda a: np.zeros((3, 3), np.float32)),
    "empty arrays": lambda: _two(0),
    "objects": lambda: _changed(lambda a: a.astype(object)),
    "a structured type": lambda: _changed(lambda a: np.zeros((3, 2), [("x", "f4")])),
    "text": lambda: _changed(lambda a: np.full((3, 2), "x")),
    "a subclass of ndarray": lambda: _changed(lambda a: a.view(_Array)),
    "a matrix": lambda: _changed(lambda a: np.ma.masked_array(a)),
    "a memoryview": lambda: _changed(memoryview),
    "a number": lambda: _changed(lambda a: 3.0),
    "None for an array": lambda: _changed(lambda a: None),
    "a type with metadata": lambda: _changed(lambda a: a.astype(np.dtype("f4", metadata={"x": 1}))),
    "longdouble": lambda: _changed(lambda a: a.astype(np.longdouble)),
}
ODD_NAMES: dict[str, Any] = {
    "a tuple": ("p",),
    "an empty list": [],
    "an unknown name": ["z"],
    "a name twice": ["p", "p"],
    "bytes": b"p",
    "a text": "p",
    "numbers": [1],
    "too many": ["p"] * 70,
    "a text class": [_Name("p")],
    "a set": {"p"},
    "False": False,
    "an iterator": 7,
}


def _outcome(run: Callable[..., Any], *arguments: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [(item.dtype.str, item.shape, item.tobytes()) for item in run(*arguments)]
    except Exception as error:  # noqa: BLE001  the same one is expected of both
        return type(error), str(error)


@pytest.mark.parametrize("kind", ODD_FEEDS)
def test_an_odd_feed_gives_what_python_gives(two: ort.InferenceSession, kind: str) -> None:
    """The result, or the error with its text; twice, since the first may teach something."""
    for _ in range(2):
        feed = ODD_FEEDS[kind]()
        assert _outcome(two.run, None, feed) == _outcome(run_in_python, two, None, feed)


@pytest.mark.parametrize("kind", ODD_NAMES)
def test_odd_names_give_what_python_gives(two: ort.InferenceSession, kind: str) -> None:
    """The result, or the error with its text."""
    assert _outcome(two.run, ODD_NAMES[kind], _two(3)) == _outcome(run_in_python, two, ODD_NAMES[kind], _two(3))


@pytest.mark.parametrize("options", [3, object(), ort.RunOptions()], ids=["a number", "an object", "options"])
def test_run_options_go_to_python(two: ort.InferenceSession, options: Any) -> None:
    """The result, or the error with its text."""
    assert _outcome(two.run, None, _two(3), options) == _outcome(run_in_python, two, None, _two(3), options)


@pytest.mark.parametrize("arguments", [(), (None,), (None, {}, None, 1)], ids=["none", "one", "too many"])
def test_too_few_or_many_arguments_are_refused(two: ort.InferenceSession, arguments: tuple[Any, ...]) -> None:
    """As by any method."""
    with pytest.raises(TypeError, match="argument"):
        two.run(*arguments)


def test_the_function_itself_survives_what_no_method_passes(two: ort.InferenceSession) -> None:
    """A session that is none, or of another model, is what Python complains of."""
    function = two._native_run
    assert function is not None
    for other in (42, None, ort.SessionOptions()):
        with pytest.raises((AttributeError, TypeError)):
            function(other, None, {}, None)
    for arguments in ((), (two,), (two, None), (two, None, {}), (two, None, {}, None, 1)):
        with pytest.raises((InvalidArgument, TypeError)):
            function(*arguments)


def test_a_subclass_may_have_a_run_of_its_own() -> None:
    """And call the inherited one."""

    class Session(ort.InferenceSession):
        count = 0

        def run(self, *arguments: Any, **named: Any) -> list[Any]:
            self.count += 1
            return super().run(*arguments, **named)

    held = Session(to_bytes(model(MLP)))
    for _ in range(5):
        held.run(None, rows(2))
    assert held.count == 5


def test_a_method_that_was_kept_before_gets_faster_too() -> None:
    """As programs do that write `self.predict = session.run`."""
    held = session(MLP)
    run = held.run
    for _ in range(3):
        run(None, rows(2))
    with only_native(held):
        assert run(None, rows(2))[0].shape == (2, 3)


def test_a_bound_method_keeps_its_session() -> None:
    """As of any object."""
    run = learned(session(MLP), rows(2)).run
    gc.collect()
    assert run(None, rows(2))[0].shape == (2, 3)


def test_no_reference_is_left_or_lost(two: ort.InferenceSession) -> None:
    """To feeds, arrays, names or types, in runs that are native and in those that are not."""
    feed, odd, names = _two(3), _two(3) | {"c": 1}, ["p"]
    held = [feed, *feed.values(), *feed, names, *names, np.dtype(np.float32), two, two._native_run]
    with pytest.raises(InvalidArgument):
        two.run(names, odd)  # what it imports refers to names too
    before = [sys.getrefcount(item) for item in held]
    for _ in range(200):
        two.run(names, feed)
        with pytest.raises(InvalidArgument):
            two.run(names, odd)
    assert [sys.getrefcount(item) for item in held] == before


def test_memory_does_not_grow(two: ort.InferenceSession) -> None:
    """Results are freed with their last reference."""
    results = [weakref.ref(array) for _ in range(50) for array in two.run(None, _two(3))]
    assert not any(result() is not None for result in results)


def test_a_dropped_session_goes_at_once() -> None:
    """It is in no cycle."""
    gc.collect()
    gc.disable()
    try:
        held = learned(session(MLP), rows(2))
        gone = weakref.ref(held)
        del held
        assert gone() is None
    finally:
        gc.enable()


def test_threads_share_a_session(two: ort.InferenceSession) -> None:
    """More of them than there are lanes."""
    expected, wrong = {size: run_in_python(two, None, _two(size)) for size in (1, 3, 5)}, []

    def work(number: int) -> None:
        for count in range(300):
            size = (1, 3, 5)[(number + count) % 3]
            if not _same(two.run(None, _two(size)), expected[size]):
                wrong.append(size)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_that_other_threads_resize_do_no_harm() -> None:
    """While a run reads one its size cannot change; between runs it is another shape."""
    held = learned(session("graph(x: float[n]) -> (y: float[n]) {\n y = Exp(x)\n}"), {"x": np.zeros(4000, np.float32)})
    array, stop, seen = np.zeros(4000, np.float32), threading.Event(), set()

    def resize() -> None:
        while not stop.is_set():
            for size in (10, 4000):
                try:
                    array.resize(size, refcheck=False)
                except ValueError:
                    seen.add("refused")

    thread = threading.Thread(target=resize)
    thread.start()
    try:
        for _ in range(3000):
            (y,) = held.run(None, {"x": array})
            assert len(y) in (10, 4000)
    finally:
        stop.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("threads", [1, 2])
def test_the_child_of_a_fork_runs_and_learns_again(threads: int) -> None:
    """It lacks the parent's threads, so it does not use what they had."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    held = learned(session(MLP, sess_options=options), rows(64))
    child = os.fork()
    if not child:
        code = 1
        try:
            learned(held, rows(64))
            with only_native(held):
                code = 0 if held.run(None, rows(64))[0].shape == (64, 3) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with only_native(held):
        held.run(None, rows(64))


def test_other_providers_end_what_was_learned() -> None:
    """`set_providers` makes another session of the object."""
    held = learned(session(MLP), rows(2))
    held.set_providers(["ReferenceExecutionProvider"])
    assert held.run(None, rows(2))[0].shape == (2, 3)
    with pytest.raises(AssertionError), only_native(held):
        held.run(None, rows(2))


def test_trim_gives_back_what_lanes_work_in() -> None:
    """And the next runs learn again."""
    held = learned(
        session("graph(x: float[n, 8]) -> (y: float[n, 8]) {\n s = Softmax(x)\n y = MatMul(s, w)\n w: float[8, 8] = ... 1\n}")
    )
    feed = {"x": np.ones((4, 8), np.float32)}
    learned(held, feed)
    assert held.trim() > 0
    with pytest.raises(AssertionError), only_native(held):
        held.run(None, feed)
    learned(held, feed)
    with only_native(held):
        held.run(None, feed)


@pytest.mark.parametrize(
    ("model", "limit"),
    [("y: float[n]) {\n y = Exp(x)", 1 << 21), ("y, z) {\n y = Exp(x) z = Neg(x)", 1 << 20), ("y) {\n y = NonZero(x)", 1 << 19)],
)
def test_very_large_results_stay_in_python(model: str, limit: int) -> None:
    """From 8 MiB on, all together, or 4 MiB where only the run shows how long they are: there memory is pooled."""
    fits, exceeds = ({"x": np.zeros(count, np.float32)} for count in (limit, limit + 1))
    held = learned(session(f"graph(x: float[n]) -> ({model}\n}}"), fits)
    with only_native(held):
        held.run(None, fits)
    held = learned(held, exceeds)
    with pytest.raises(AssertionError), only_native(held):
        held.run(None, exceeds)


def test_an_index_out_of_range_is_worded_by_python() -> None:
    """The native run fails without a trace."""
    gather = "graph(x: float[4], i: int64[n]) -> (y: float[n]) {\n y = Gather(x, i)\n}"
    good, bad = ({"x": np.arange(4, dtype=np.float32), "i": np.array([index])} for index in (2, 9))
    held = learned(session(gather), good)
    for _ in range(3):
        with pytest.raises(InvalidArgument, match="out of range"):
            held.run(None, bad)
    with only_native(held):
        assert held.run(None, good)[0].tolist() == [2]


def test_a_variable_keeps_runs_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """SARDONYX_NATIVE_RUN=0."""
    monkeypatch.setenv("SARDONYX_NATIVE_RUN", "0")
    held = learned(session(MLP), rows(2))
    assert held._native_run is None


@pytest.fixture(name="profiled")
def _profiled(tmp_path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p")
    return session(MLP, sess_options=options)


def test_runs_that_are_profiled_stay_in_python(profiled: ort.InferenceSession) -> None:
    """Each of them is in the profile."""
    learned(profiled, rows(2))
    text = Path(profiled.end_profiling()).read_text(encoding="utf-8")
    assert text.count("model_run") == 2


def test_sessions_of_several_parts_have_no_native_runs() -> None:
    """Nor do those whose inputs are no tensors of numbers."""
    for text in (
        "graph(x: string[n]) -> (y: string[n]) {\n y = Identity(x)\n}",
        "graph(x: seq(float)) -> (y: float[]) {\n i: int64[] = 0\n y = SequenceAt(x, i)\n}",
    ):
        held = session(text)
        runner = held._runner.built
        assert NativeRuns.of(runner.executor, runner.inputs, runner.defaults, ["y"]) is None


def test_sparse_results_stay_in_python() -> None:
    """They are made of dense ones there, in every run."""
    text = "graph(x: float[3]) -> (y: sparse_tensor(float[3])) {\n y = Relu(x)\n}"
    held = session(text)
    for _ in range(4):
        (y,) = held.run(None, {"x": np.array([0, -1, 2], np.float32)})
        assert isinstance(y, SparseTensor)
