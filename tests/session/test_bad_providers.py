"""What a session says to a provider that breaks the contract, and how it goes on without it where that is asked for."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from support.models import model
from support.providers import DeviceMemory, DeviceProvider, FusingProvider

import sardonyx as ort
from sardonyx.dtypes import DataType
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Graph, Value
from sardonyx.provider import Body, Bound, Capability, Claims, GraphView, Partition, Program, TensorSpec

TEXT = "graph(x: float[2]) -> (y: float[2]) {\na = Neg(x) @first\ny = Relu(a) @second\n}"


class _Faulty(FusingProvider):
    """Claims Relu; does wrong in the way that its subclass says."""

    def __init__(self) -> None:
        super().__init__({"Relu"}, "FaultyProvider", fuse=False)


class _RaisesWhenAsked(_Faulty):
    def capabilities(self, view: GraphView) -> Claims:
        raise KeyError("no table")


class _ClaimsNothingKnown(_Faulty):
    def capabilities(self, view: GraphView) -> Any:
        return None


class _ClaimsAStranger(_Faulty):
    def capabilities(self, view: GraphView) -> Claims:
        return Claims([Capability(tuple(model(TEXT).graph))])


class _ClaimsTwice(_Faulty):
    def capabilities(self, view: GraphView) -> Claims:
        return Claims([Capability((view.nodes[0], view.nodes[0]), fused=True, name="pair")])


class _ClaimsEmptiness(_Faulty):
    def capabilities(self, view: GraphView) -> Claims:
        return Claims([Capability((), fused=True, name="void")])


class _RaisesInCompile(_Faulty):
    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        raise MemoryError("too big")


class _RefusesInCompile(_Faulty):
    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        raise ort.NotImplemented("Relu of two elements")


class _CompilesToNothing(_Faulty):
    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Any:
        return None


class _Program:
    """A program that is right but for what is given."""

    def __init__(self, makes_outputs: bool, bound: Any, values: Any) -> None:
        self.makes_outputs, self._bound, self._values = makes_outputs, bound, values

    def bind(self, shapes: Any) -> Any:
        return _value_of(self._bound)

    def run(self, bound: Bound, inputs: Any, outputs: Any, scratch: Any) -> Any:
        return _value_of(self._values)


def _value_of(thing: Any) -> Any:
    if isinstance(thing, Exception):
        raise thing
    return thing


def _running(makes_outputs: bool, bound: Any, values: Any) -> type[_Faulty]:
    class Running(_Faulty):
        def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Any:
            return _Program(makes_outputs, bound, values)

    return Running


class _Odd(Exception):
    def __str__(self) -> str:
        return str(1 // 0)


class _Trap:
    @property
    def makes_outputs(self) -> bool:
        raise OSError("gone")


def _raise_odd(thing: Any) -> Any:
    raise _Odd


def _midway(view: GraphView) -> Any:
    yield Capability(view.nodes[:1])
    raise ValueError("midway")


def _changing(view: GraphView) -> Claims:
    for node in view.nodes:
        node.op_type = "Abs"
    return Claims()


def _asked(answer: Callable[[GraphView], Any]) -> type[_Faulty]:
    return _with(capabilities=lambda self, view: answer(view))


def _reading(choose: Callable[[GraphView], Value]) -> type[_Faulty]:
    return _asked(lambda view: Claims([Capability(view.nodes[:1], reads=(choose(view),))]))


def _compiling(made: type[Any]) -> type[_Faulty]:
    return _with(compile=lambda self, partition, bodies: made())


def _with(**attributes: Any) -> type[_Faulty]:
    return type("Changed", (_Faulty,), attributes)


WHEN_BUILT: dict[str, tuple[type[_Faulty], type[Exception], str]] = {
    "raises when asked": (_RaisesWhenAsked, ort.EPFail, "FaultyProvider raised when asked .* KeyError: 'no table'"),
    "raises what has no text": (_asked(_raise_odd), ort.EPFail, "FaultyProvider raised .* _Odd, whose text raises Zero"),
    "raises midway": (_asked(lambda view: Claims(_midway(view))), ort.EPFail, "FaultyProvider raised .* ValueError: midway"),
    "claims what is no claim": (_asked(lambda view: Claims([view.nodes])), ort.EPFail, "FaultyProvider claims .* is a Capability"),
    "declines no mapping": (_asked(lambda view: Claims([], ["no"])), ort.EPFail, "FaultyProvider gives the reasons .* mapping"),
    "reads a stranger": (_reading(lambda view: Value("z")), ort.EPFail, "FaultyProvider wants to read .* no value of its graph"),
    "reads what comes later": (_reading(lambda view: view.graph.outputs[0]), ort.EPFail, "to read y for it, which is computed"),
    "changes the graph": (_asked(_changing), ort.EPFail, "FaultyProvider changed the graph when it was asked"),
    "has no layout": (_with(preferred_layout="NHWC"), ort.EPFail, "FaultyProvider prefers the layout 'NHWC', which is no Layout"),
    "has no memory": (_with(memory=None), ort.EPFail, "FaultyProvider lacks memory.allocate, memory.view, memory.to_host"),
    "raises when its attributes are read": (
        _with(preferred_operators=property(_raise_odd)),
        ort.EPFail,
        "FaultyProvider raises when its attributes are read",
    ),
    "claims nothing known": (_ClaimsNothingKnown, ort.EPFail, "FaultyProvider answers .* with None; it must return Claims"),
    "claims a stranger": (_ClaimsAStranger, ort.EPFail, "FaultyProvider claims .*'first'.* which it was not offered"),
    "claims a node twice": (_ClaimsTwice, ort.EPFail, "FaultyProvider claims .*'first'.* twice in pair"),
    "claims emptiness": (_ClaimsEmptiness, ort.EPFail, "FaultyProvider claims void without nodes"),
    "raises in compile": (_RaisesInCompile, ort.EPFail, 'FaultyProvider claimed 1 nodes, .*"second".* MemoryError: too big'),
    "refuses in compile": (_RefusesInCompile, ort.NotImplemented, "FaultyProvider compiling .*: Relu of two elements"),
    "compiles to nothing": (_CompilesToNothing, ort.EPFail, "FaultyProvider compiled .* to None, no program: it lacks makes_out"),
    "compiles to what raises": (_compiling(_Trap), ort.EPFail, "FaultyProvider compiled .* its attributes are read: OSError: gone"),
}
WHEN_RUN: dict[str, tuple[type[_Faulty], type[Exception], str]] = {
    "raises in bind": (_running(False, OSError("gone"), []), ort.EPFail, "FaultyProvider failed to bind .*: OSError: gone"),
    "binds to nothing": (_running(False, None, []), ort.EPFail, "FaultyProvider binds .* to None; it must return Bound"),
    "binds too much": (_running(False, Bound((None, None)), []), ort.EPFail, "FaultyProvider gives 2 sizes .*, expected 1"),
    "raises in run": (_running(True, Bound((None,)), OSError("gone")), ort.EPFail, "FaultyProvider failed to run .* OSError: gone"),
    "fails in run": (_running(True, Bound((None,)), ort.EPFail("no device")), ort.EPFail, "no device"),
    "returns nothing": (_running(True, Bound((None,)), None), ort.EPFail, "FaultyProvider returned None .* a sequence"),
    "returns too much": (_running(True, Bound((None,)), [1, 2]), ort.EPFail, "FaultyProvider returned 2 values .*, expected 1"),
    "returns too little": (_running(True, Bound((None,)), []), ort.EPFail, "FaultyProvider returned 0 values .*, expected 1"),
    "gives no size": (_running(False, Bound((None,)), []), ort.EPFail, "FaultyProvider gives output 0 .* no size"),
    "gives another type": (_running(False, Bound((TensorSpec(DataType.INT8, (2,)),)), []), ort.EPFail, "the size int8.* has float"),
    "returns another type": (_running(True, Bound((None,)), [np.zeros(2)]), ort.EPFail, "FaultyProvider returned float64.* float"),
    "returns another tensor": (
        _running(False, Bound((TensorSpec(DataType.FLOAT, (2,)),)), [np.float32([1, 0])]),
        ort.EPFail,
        "FaultyProvider returned another tensor for output 0",
    ),
    "does not run it": (_running(True, Bound((None,)), ort.NotImplemented("not here")), ort.NotImplemented, "not here"),
}


def _losing(method: str) -> type[_Faulty]:
    """A device whose memory raises in one of its methods."""

    def lost(*arguments: Any) -> Any:
        raise OSError("device lost")

    class Losing(_Faulty):
        def __init__(self) -> None:
            super().__init__()
            self.memory = type("LostMemory", (DeviceMemory,), {method: lost})()

        compile = DeviceProvider.compile

    return Losing


LOST: dict[str, tuple[type[_Faulty], type[Exception], str]] = {
    "loses what goes there": (_losing("from_host"), ort.EPFail, r"FaultyProvider failed to copy a tensor of shape \(2,\) to"),
    "loses what comes back": (_losing("to_host"), ort.EPFail, "FaultyProvider failed to copy .* from pretended:0: OSError"),
    "has no memory": (_losing("allocate"), ort.EPFail, "FaultyProvider failed to allocate [0-9]+ bytes of pretended:0: OSError"),
    "has no places": (_losing("view"), ort.EPFail, "FaultyProvider failed to get memory for its partition .*: OSError"),
}
CASES = {**WHEN_BUILT, **WHEN_RUN, **LOST}
SKIP = ort.SessionOptions()
SKIP.provider_failure = "skip"
skips = pytest.mark.filterwarnings("ignore:provider .* failed and is left out of this session")


def _answer(session: ort.InferenceSession) -> list[float]:
    answer: list[float] = session.run(None, {"x": np.float32([-1, 1])})[0].tolist()
    return answer


@pytest.mark.parametrize("case", CASES)
def test_what_a_provider_does_wrong_is_told_with_its_name(case: str) -> None:
    """When the session is made, or when it runs."""
    make, kind, message = CASES[case]
    with pytest.raises(kind, match=message) as caught:
        _answer(ort.InferenceSession(to_bytes(model(TEXT)), providers=[make()]))
    assert getattr(caught.value, "provider", None) == "FaultyProvider"


@skips
@pytest.mark.parametrize("case", CASES)
def test_a_session_goes_on_without_a_provider_that_fails(case: str) -> None:
    """The answer is right, the provider is no longer listed, and the report says why."""
    make, _, message = CASES[case]
    session = ort.InferenceSession(to_bytes(model(TEXT)), SKIP, providers=[make(), "ReferenceExecutionProvider"])
    assert _answer(session) == [1, 0]
    assert session.get_providers() == ["ReferenceExecutionProvider"]
    for placement in session.explain():
        assert placement.provider == "ReferenceExecutionProvider"
    assert re.search(f"left out: .*{message}", session.explain()[0].declined["FaultyProvider"])


@skips
def test_the_others_stay() -> None:
    """Only the provider that fails is left out."""
    providers = [_RaisesInCompile(), FusingProvider({"Neg"}, "Other"), "ReferenceExecutionProvider"]
    session = ort.InferenceSession(to_bytes(model(TEXT)), SKIP, providers=providers)
    assert session.get_providers() == ["Other", "ReferenceExecutionProvider"]
    assert [placement.provider for placement in session.explain()] == ["Other", "ReferenceExecutionProvider"]


@skips
@pytest.mark.parametrize("case", ["raises in compile", "raises in run"])
@pytest.mark.parametrize("form", [bytes, io.BytesIO, onnx.ModelProto.FromString])
def test_whatever_the_model_came_as_a_session_goes_on(form: Callable[[bytes], Any], case: str) -> None:
    """Bytes, a file object and a ModelProto are loaded again, when the session is made and when it runs."""
    session = ort.InferenceSession(form(to_bytes(model(TEXT))), SKIP, providers=[CASES[case][0]()])
    assert _answer(session) == [1, 0]


@skips
def test_errors_of_the_model_are_not_a_providers() -> None:
    """The last provider's error is raised; there is nobody to go on with."""
    text = "graph(x: float[2]) -> (y: float[2]) {\ny = local.Nothing(x)\n}"
    with pytest.raises(ort.InvalidGraph, match="Nothing"):
        ort.InferenceSession(to_bytes(model(text)), SKIP, providers=[_RaisesWhenAsked()])


@skips
def test_a_config_entry_asks_for_it_too() -> None:
    """`session.provider_failure`; another choice is refused."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.provider_failure", "skip")
    assert _answer(ort.InferenceSession(to_bytes(model(TEXT)), options, providers=[_RaisesInCompile()])) == [1, 0]
    options.provider_failure = "ignore"
    with pytest.raises(ort.InvalidArgument, match="got 'ignore'"):
        ort.InferenceSession(to_bytes(model(TEXT)), options)


def _answers_twice(case: str) -> None:
    session = ort.InferenceSession(to_bytes(model(TEXT)), SKIP, providers=[CASES[case][0]()])
    assert [_answer(session), _answer(session)] == [[1, 0], [1, 0]]


@pytest.mark.parametrize("case", ["raises in compile", "raises in run"])
def test_going_on_is_warned_of_once(case: str) -> None:
    """With the provider and what it raised: nobody wonders later why a device is idle."""
    with pytest.warns(
        UserWarning, match='^provider FaultyProvider failed and is left out of this session, as .* "skip": '
    ) as caught:
        _answers_twice(case)
    assert len(caught) == 1


class _WrongLength(_Faulty):
    """Returns one element too many, which the size of a symbol shows."""

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        return _TooLong()


class _TooLong:
    makes_outputs = True

    def bind(self, shapes: tuple[tuple[int, ...] | None, ...]) -> Bound:
        return Bound((None,))

    def run(self, bound: Bound, inputs: Any, outputs: Any, scratch: Any) -> list[Any]:
        return [np.zeros(len(inputs[0]) + 1, np.float32)]


def test_a_size_that_does_not_follow_from_the_inputs_is_blamed_on_who_made_it() -> None:
    """By provider and node, not on what was fed."""
    text = "graph(x: float[n]) -> (y: float[n]) {\na = Relu(x) @mine\ny = Add(a, x)\n}"
    session = ort.InferenceSession(to_bytes(model(text)), providers=[_WrongLength()])
    expected = r'FaultyProvider makes float\[3\] of output 0 of partition .*, node "mine" \(Relu, .* of shape \(n\) .* n = 2$'
    with pytest.raises(ort.EPFail, match=expected):
        session.run(None, {"x": np.float32([1, 2])})
