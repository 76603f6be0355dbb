"""Operators written as Python functions."""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from support.custom_operators import mine_bytes, mine_session
from support.providers import DeviceProvider, DeviceTensor

import sardonyx
from sardonyx import OperatorSite
from sardonyx.dtypes import Array
from sardonyx.errors import Fail, InvalidArgument, InvalidGraph, SardonyxError
from sardonyx.ir.shape import Dim

X = np.float32([1, -2, 3])


@sardonyx.op("mine", "Scale", shape=lambda x: x)
def scale(x: Array, *, factor: float = 2.0) -> Array:
    """Multiply."""
    return x * np.float32(factor)


def test_a_function_runs_between_other_operators() -> None:
    """With its attribute, or the default."""
    session = mine_session(
        "(x: float[n]) -> (y: float[n]) {\na = Neg(x)\nb = mine.Scale(a) {factor = 3.0}\ny = mine.Scale(b)\n}", scale
    )
    assert session.run(None, {"x": X})[0].tolist() == [-6, 12, -18]


def test_a_decorated_function_is_still_a_function() -> None:
    """It can be called and tested by itself."""
    assert scale(X, factor=0.5).tolist() == [0.5, -1, 1.5]
    assert scale.__name__ == "scale"


def test_inputs_may_be_left_out_or_many() -> None:
    """None stands for the first, and the rest comes as further arguments."""

    @sardonyx.op("mine", "Join", shape=lambda x, bias, *rest: x)
    def join(x: Array, bias: Array | None = None, *rest: Array) -> Array:
        return x * (0 if bias is None else 1) + sum(rest)

    session = mine_session("(x: float[n]) -> (y: float[n]) {\ny = mine.Join(x, _, x, x)\n}", join)
    assert session.run(None, {"x": X})[0].tolist() == [2, -4, 6]


def test_a_shape_function_gets_none_for_what_is_left_out() -> None:
    """Also at the end, where the node does not list it."""
    clamp = sardonyx.op("mine", "Clamp", shape=lambda x, low: x if low is None else low)(lambda x, low=None: x)
    session = mine_session("(x: float[n]) -> (y: float[n]) {\ny = mine.Clamp(x)\n}", clamp)
    assert session.run(None, {"x": X})[0].tolist() == X.tolist()


def test_there_may_be_several_outputs_and_one_may_be_left_out() -> None:
    """Each has its own type and shape."""

    @sardonyx.op("mine", "Split", outputs=["int64", "x?"], shape=lambda x: [(), x])
    def split(x: Array) -> tuple[Array, Array]:
        return np.asarray(len(x), np.int64), x + 1

    both = mine_session("(x: float[n]) -> (k: int64[], y: float[n]) {\nk, y = mine.Split(x)\n}", split)
    assert [item.tolist() for item in both.run(None, {"x": X})] == [3, [2, -1, 4]]
    one = mine_session("(x: float[n]) -> (k: int64[]) {\nk = mine.Split(x)\n}", split)
    assert one.run(None, {"x": X})[0].tolist() == 3


def test_strings_go_in_and_out() -> None:
    """As arrays of `str` objects."""

    @sardonyx.op("mine", "Upper", shape=lambda x: x)
    def upper(x: Array) -> Array:
        return np.char.upper(x.astype(str))

    session = mine_session("(x: string[n]) -> (y: string[n]) {\ny = mine.Upper(x)\n}", upper)
    assert session.run(None, {"x": np.array(["a", "b"], object)})[0].tolist() == ["A", "B"]


def test_lists_of_tensors_go_in_and_out() -> None:
    """As Python lists of arrays."""

    @sardonyx.op("mine", "Reverse", outputs=["seq(float)"])
    def reverse(xs: list[Array]) -> list[Array]:
        return xs[::-1]

    graph = "(x: float[n], z: float[m]) -> (y: seq(float)) {\ns = SequenceConstruct(x, z)\ny = mine.Reverse(s)\n}"
    made = mine_session(graph, reverse).run(None, {"x": X, "z": X[:1]})[0]
    assert [item.tolist() for item in made] == [[1], [1, -2, 3]]


@sardonyx.op("mine", "Counter", outputs=["int64"], shape=lambda x: ())
class Counter:
    """Counts its runs."""

    def __init__(self, start: int) -> None:
        """Begin with `start`."""
        self._count = start

    @classmethod
    def create(cls, site: OperatorSite, *, start: int = 0) -> Counter.function:  # type: ignore[name-defined]
        """Make the state of one node."""
        return cls(start + len(site.name))

    def __call__(self, x: Array) -> Array:
        """Count."""
        self._count += 1
        return np.asarray(self._count, np.int64)


def test_a_class_keeps_state_for_each_node_of_each_session() -> None:
    """`create` gets the node and its attributes."""
    graph = "(x: float[n]) -> (a: int64[], b: int64[]) {\na = mine.Counter(x) {start = 10} @two\nb = mine.Counter(x) @b\n}"
    session, other = mine_session(graph, Counter), mine_session(graph, Counter)
    session.run(None, {"x": X})
    assert [item.item() for item in session.run(None, {"x": X})] == [15, 3]
    assert [item.item() for item in other.run(None, {"x": X})] == [14, 2]


def test_a_class_without_create_is_refused() -> None:
    """With what it needs."""
    with pytest.raises(InvalidArgument, match=r"needs create\(cls, site, \*, …\) and __call__"):

        @sardonyx.op("mine", "Wrong")
        class Wrong:
            pass


def test_versions_divide_a_name() -> None:
    """The model's import of the domain decides."""

    @sardonyx.op("mine", "Scale", since=2, shape=lambda x: x)
    def newer(x: Array) -> Array:
        return x * np.float32(100)

    old = sardonyx.op("mine", "Scale", until=1, shape=lambda x: x)(scale.function)
    graph = "(x: float[n]) -> (y: float[n]) {\ny = mine.Scale(x)\n}"
    assert mine_session(graph, old, newer).run(None, {"x": X})[0][0] == 2
    assert mine_session(graph, old, newer, version=7).run(None, {"x": X})[0][0] == 100


def test_a_shape_function_sees_attributes_and_symbols() -> None:
    """What follows knows the shape before anything runs."""

    def shape(x: tuple[Dim, ...], *, times: int) -> tuple[Dim, ...]:
        return (x[0] * times, *x[1:])

    @sardonyx.op("mine", "Repeat", shape=shape)
    def repeat(x: Array, *, times: int = 1) -> Array:
        return np.repeat(x, times, 0)

    session = mine_session("(x: float[n]) -> (y: float[?]) {\na = mine.Repeat(x) {times = 2}\ny = Relu(a)\n}", repeat)
    assert session.explain()[-1].provider == "CPUExecutionProvider"
    assert session.run(None, {"x": X})[0].tolist() == [1, 1, 0, 0, 3, 3]


def test_types_that_an_input_cannot_have_are_refused_when_the_session_is_made() -> None:
    """With those that it can have."""
    strict = sardonyx.op("mine", "Scale", types={"x": ["float", "double"]}, shape=lambda x: x)(scale.function)
    with pytest.raises(InvalidGraph, match=r"mine\.Scale: its input 'x' has elements of int32; expected double or float"):
        mine_session("(x: int32[n]) -> (y: int32[n]) {\ny = mine.Scale(x)\n}", strict)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError("the rank is odd"), InvalidGraph, "mine.Scale: the rank is odd"),
        (KeyError("k"), Fail, "the shape function of mine.Scale failed: KeyError: 'k'"),
    ],
)
def test_what_a_shape_function_raises_names_the_operator(error: Exception, kind: type[Exception], message: str) -> None:
    """A ValueError says that the node is wrong, anything else that the function is."""

    def shape(x: Any) -> Any:
        raise error

    wrong = sardonyx.op("mine", "Scale", shape=shape)(scale.function)
    with pytest.raises(kind, match=message):
        mine_session("(x: float[n]) -> (y: float[n]) {\ny = mine.Scale(x)\n}", wrong)


@pytest.mark.parametrize(
    "said",
    [(-1, 3), (1 << 63, 3), ("n", 3), (None, 3), (1.5, 3), (True, 3), "nm", 5, 3j, {}, ((1,),), (float("nan"),), (1,) * 65],
    ids=repr,
)
def test_what_is_no_shape_is_an_error_when_the_session_is_made(said: Any) -> None:
    """Sizes below 0 or beyond 64 bits, names, fractions, and what is no tuple."""
    wrong = sardonyx.op("mine", "Scale", shape=lambda x: said)(scale.function)
    with pytest.raises(Fail, match=r"the shape function of mine\.Scale returned .*; expected a tuple of sizes"):
        mine_session("(x: float[n]) -> (y: float[?]) {\na = mine.Scale(x)\ny = Relu(a)\n}", wrong)


def test_shapes_of_more_outputs_than_there_are() -> None:
    """They are refused, as is one shape where there are two outputs."""
    for said in (((2,), (2,), (2,)), (2,), None):
        wrong = sardonyx.op("mine", "Two", outputs=("x", "x"), shape=lambda x, said=said: said)(lambda x: (x, x))
        with pytest.raises(Fail, match="expected a tuple with a tuple of sizes for each output"):
            mine_session("(x: float[n]) -> (y: float[?], z: float[?]) {\ny, z = mine.Two(x)\n}", wrong)


@pytest.mark.parametrize("said", [(np.int64(3),), [3], None, (9,)])
def test_results_of_another_shape_than_was_said_are_an_error(said: Any) -> None:
    """Numbers of NumPy are sizes, and a list of them is a shape; what the run gives must have it."""
    made = sardonyx.op("mine", "Scale", shape=lambda x: said)(scale.function)
    session = mine_session("(x: float[n]) -> (y: float[?]) {\na = mine.Scale(x)\ny = Relu(a)\n}", made)
    feed = {"x": np.ones(3, np.float32)}
    if said == (9,):
        with pytest.raises(SardonyxError, match="Scale"):
            session.run(None, feed)
    else:
        assert session.run(None, feed)[0].shape == (3,)


def test_an_attribute_of_another_kind_names_the_node() -> None:
    """When the session is made."""
    plain = sardonyx.op("mine", "Scale")(scale.function)
    graph = '(x: float[n]) -> (y: float[n]) {\ny = mine.Scale(x) {factor = "two"} @here\n}'
    with pytest.raises(
        InvalidGraph, match=r"node \"here\" \(mine\.Scale, opset 1\): its attribute 'factor' is 'two'; expected float"
    ):
        mine_session(graph, plain)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": "", "name": "Mine"}, "a name and a domain of its own, or those of one that it replaces, got '' and 'Mine'"),
        ({"since": 3, "until": 2}, "since version 3 until version 2, which is no range"),
        ({"types": {"z": "float"}}, "types names 'z', which is no input; the inputs are x"),
        ({"outputs": ["float32"]}, "'float32' is no type"),
        ({"outputs": "float"}, r"is the text 'float'; expected a list: outputs=\['float'\]"),
    ],
)
def test_arguments_of_the_decorator_are_checked(arguments: dict[str, Any], message: str) -> None:
    """When the function is decorated."""
    with pytest.raises(InvalidArgument, match=message):
        sardonyx.op(**{"domain": "mine", "name": "Scale", **arguments})(scale.function)


@pytest.mark.parametrize("arguments", [{"domain": 3, "name": "A"}, {"domain": "mine", "name": None}])
def test_names_are_texts(arguments: dict[str, Any]) -> None:
    """The argument is named."""
    with pytest.raises(TypeError, match="domain|name"):
        sardonyx.op(**arguments)(scale.function)


def test_a_partial_function_and_an_object_are_operators() -> None:
    """What is fixed by name is the default of an attribute."""

    class Twice:
        def __call__(self, x: Array) -> Array:
            return x * 2

    for made, expected in (
        (sardonyx.op("mine", "A")(functools.partial(scale.function, factor=3.0)), [3, -6, 9]),
        (sardonyx.op("mine", "A")(Twice()), [2, -4, 6]),
    ):
        assert mine_session("(x: float[n]) -> (y: float[n]) { y = mine.A(x) }", made).run(None, {"x": X})[0].tolist() == expected


def test_what_is_no_function_that_returns_is_refused() -> None:
    """When it is decorated."""

    async def waits(x: Array) -> Array:
        return x

    with pytest.raises(InvalidArgument, match="waits is written with async def"):
        sardonyx.op("mine", "A")(waits)
    for other in (3, min):
        with pytest.raises(InvalidArgument, match="is no function that tells its parameters"):
            sardonyx.op("mine", "A", outputs=["float"])(other)  # type: ignore[arg-type]  # which is the point


def test_an_operator_without_inputs_says_its_outputs() -> None:
    """There is no input whose type they could have."""

    def pi() -> Array:
        return np.float32(3.14159)

    with pytest.raises(InvalidArgument, match="mine.Pi has no inputs; say by outputs"):
        sardonyx.op("mine", "Pi")(pi)
    made = sardonyx.op("mine", "Pi", outputs=["float"])(pi)
    assert mine_session("() -> (y: float[]) {\ny = mine.Pi()\n}", made).run(None, {})[0] == np.float32(3.14159)


def test_an_operator_between_parts_on_a_device_gets_host_arrays() -> None:
    """Copies go in before and after it."""
    seen: list[type] = []

    @sardonyx.op("mine", "Look", shape=lambda x: x)
    def look(x: Array) -> Array:
        seen.append(type(x))
        return x + 1

    graph = "(x: float[n]) -> (y: float[n]) {\na = Neg(x)\nb = mine.Look(a)\ny = Neg(b)\n}"
    device = DeviceProvider(["Neg"])
    session = mine_session(graph, look, providers=[device])
    assert session.run(None, {"x": X})[0].tolist() == [0, -3, 2]
    assert seen == [np.ndarray]
    assert [item.provider for item in session.explain()] == [device.name, "CustomOperators", device.name]


class _StreamingDevice(DeviceProvider):
    """The testing device, with a stream."""

    def __init__(self, operators: Iterable[str]) -> None:
        super().__init__(operators)
        self.stream: object = object()


def test_an_operator_on_a_device_shares_its_memory_and_stream() -> None:
    """Nothing is copied between it and its neighbours there, but what enters and leaves the device."""
    streams: list[object] = []

    @sardonyx.op("mine", "OnDevice", shape=lambda x, w: x, provider="DeviceProvider")
    class OnDevice:
        def __init__(self, stream: object) -> None:
            self.stream = stream

        @classmethod
        def create(cls, site: OperatorSite) -> OnDevice:
            return cls(site.stream)

        def __call__(self, x: DeviceTensor, w: DeviceTensor) -> DeviceTensor:
            streams.append(self.stream)
            return DeviceTensor(x.hidden * w.hidden)

    graph = "(x: float[n]) -> (y: float[n]) {\na = Neg(x)\nw: float[1] = [3]\nb = mine.OnDevice(a, w)\ny = Neg(b)\n}"
    device = _StreamingDevice(["Neg"])
    options = sardonyx.SessionOptions()
    options.add_operator(OnDevice)
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    session = sardonyx.InferenceSession(mine_bytes(graph), options, [device])
    before = device.memory.to_host_count, device.memory.from_host_count
    assert session.run(None, {"x": X})[0].tolist() == [3, -6, 9]
    assert streams == [device.stream]
    assert (device.memory.to_host_count - before[0], device.memory.from_host_count - before[1]) == (1, 1)
    assert [item.provider for item in session.explain()] == [device.name, "CustomOperators of DeviceProvider", device.name]


def test_an_operator_on_a_device_needs_the_device() -> None:
    """Without its provider nobody runs it."""

    @sardonyx.op("mine", "OnDevice", shape=lambda x: x, provider="DeviceProvider")
    def on_device(x: DeviceTensor) -> DeviceTensor:
        return x

    with pytest.raises(sardonyx.errors.NotImplemented, match="CustomOperators: no custom operator"):
        mine_session("(x: float[n]) -> (y: float[n]) {\ny = mine.OnDevice(x)\n}", on_device)


def test_an_operator_on_a_device_returns_what_its_node_has() -> None:
    """Another number of outputs is refused."""

    @sardonyx.op("mine", "OnDevice", shape=lambda x: x, provider="DeviceProvider")
    def on_device(x: DeviceTensor) -> object:
        return (x, x)

    session = mine_session("(x: float[n]) -> (y: float[n]) {\ny = mine.OnDevice(x)\n}", on_device, providers=[DeviceProvider()])
    with pytest.raises(sardonyx.errors.RuntimeException, match=r"mine.OnDevice returned 2 outputs; the node has 1"):
        session.run(None, {"x": X})


def test_an_operator_inside_a_body_sees_captured_values() -> None:
    """A branch of an If holds one."""
    graph = """(c: bool, x: float[n]) -> (y: float[n]) {
    y = If(c) {then_branch = graph() -> (t) {
        t = mine.Scale(x)
    }, else_branch = graph() -> (e) {
        e = Neg(x)
    }}
}"""
    session = mine_session(graph, scale)
    assert session.run(None, {"c": np.array(True), "x": X})[0].tolist() == [2, -4, 6]
    assert session.run(None, {"c": np.array(False), "x": X})[0].tolist() == [-1, 2, -3]


def test_threads_run_one_session_at_a_time_each() -> None:
    """A function without state gives each its own results."""
    session = mine_session("(x: float[n]) -> (y: float[n]) {\ny = mine.Scale(x)\n}", scale)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        feeds = [np.full(5, number, np.float32) for number in range(40)]
        results = list(pool.map(lambda feed: session.run(None, {"x": feed})[0], feeds))
    assert all((result == 2 * feed).all() for result, feed in zip(results, feeds, strict=True))
