"""What becomes float16, and where casts go."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.formats.onnx import to_bytes, to_proto
from sardonyx.ir import Model
from sardonyx.tools.half_conversion import HalfPolicy, to_half

_NARROW = {"narrow": lambda array: np.asarray(array, np.float16)}


def _converted(text: str, **policy: Any) -> Model:
    made = model(text)
    to_half(made, HalfPolicy(**_NARROW, **policy))
    onnx.checker.check_model(to_proto(made), full_check=True)
    return made


def _operators(made: Model) -> list[str]:
    return [node.op_type for node in made.graph]


def _run(made: Model, **feed: Any) -> Any:
    return ort.InferenceSession(to_bytes(made)).run(None, feed)[0]


CHAIN = """graph(x: float[2, 2]) -> (y: float[2, 2]) {
    w: float[2, 2] = [[1, 2], [3, 4]]
    a = MatMul(x, w) @first
    b = Softmax(a) @second
    y = Mul(b, w) @third
}"""
X = np.float32([[1, 2], [0.5, 0.25]])


def test_all_of_a_chain_becomes_float16() -> None:
    """Inputs, outputs and constants too, without a Cast."""
    made = _converted(CHAIN)
    assert _operators(made) == ["MatMul", "Softmax", "Mul"]
    assert _run(made, x=X.astype(np.float16)).dtype == np.float16


def test_ends_keep_their_type_and_name_when_asked_for() -> None:
    """One Cast for each, however many read it; of some by name."""
    made = _converted(CHAIN, kept_ends=None)
    assert _operators(made) == ["Cast", "MatMul", "Softmax", "Mul", "Cast"]
    result = _run(made, x=X)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, ort.InferenceSession(to_bytes(model(CHAIN))).run(None, {"x": X})[0], rtol=3e-3)
    assert _operators(_converted(CHAIN, kept_ends=["y"])) == ["MatMul", "Softmax", "Mul", "Cast"]


def test_a_blocked_node_reads_and_makes_float32() -> None:
    """By name or operator; of a constant that others read in float16 it gets a copy that loses nothing."""
    for blocked in ({"blocked_nodes": ["second"]}, {"blocked_operators": ["Softmax"]}):
        assert _operators(_converted(CHAIN, **blocked)) == ["MatMul", "Cast", "Softmax", "Cast", "Mul"]
    made = _converted(CHAIN, blocked_nodes=["third"])
    assert sorted(str(value.dtype) for value in made.graph.initializers.values()) == ["float", "float16"]


def test_two_blocked_neighbours_have_no_cast_between_them() -> None:
    """What one makes in float32 the other reads as it is."""
    assert _operators(_converted(CHAIN, blocked_nodes=["second", "third"])) == ["MatMul", "Cast", "Softmax", "Mul", "Cast"]
    assert _operators(_converted(CHAIN, blocked_nodes=["first", "second", "third"], kept_ends=None)) == ["MatMul", "Softmax", "Mul"]


def test_constants_that_only_blocked_nodes_read_stay() -> None:
    """Unless all are to become float16."""
    text = "graph(x: float[2]) -> (y: float[2]) {\nw: float[2] = [1, 2]\na = Add(x, w) @one\ny = Relu(a)\n}"
    made = _converted(text, blocked_nodes=["one"])
    assert [str(value.dtype) for value in made.graph.initializers.values()] == ["float"]
    forced = _converted(text, blocked_nodes=["one"], narrows_all_constants=True)
    assert [str(value.dtype) for value in forced.graph.initializers.values()] == ["float16"]
    assert _operators(forced).count("Cast") == 3


def test_operands_that_the_operator_takes_in_float32_stay() -> None:
    """Scales of Resize; unless they are forced, where the operator would take it."""
    text = 'graph(x: float[1, 1, 2, 2]) -> (y) {\ns: float[4] = [1, 1, 2, 2]\ny = Resize(x, _, s) {mode = "nearest"}\n}'
    made = _converted(text)
    assert [str(value.dtype) for value in made.graph.initializers.values()] == ["float"]
    assert _run(made, x=np.ones((1, 1, 2, 2), np.float16)).shape == (1, 1, 4, 4)


def test_outputs_that_are_float32_always_are_cast() -> None:
    """DequantizeLinear before opset 19 makes nothing else."""
    text = "graph(x: uint8[2]) -> (y: float[2]) {\ns: float[] = [0.5]\nz: uint8[] = [1]\na = DequantizeLinear(x, s, z) {} : 13\ny = Relu(a)\n}"
    made = model(text.replace(" {} : 13", ""))
    for node in made.graph:
        node.version = 13
    made.opset_imports[""] = 13
    to_half(made, HalfPolicy(**_NARROW))
    assert _operators(made) == ["DequantizeLinear", "Cast", "Relu"]
    assert _run(made, x=np.uint8([3, 5])).tolist() == [1, 2]


def test_attributes_that_say_a_type_say_float16() -> None:
    """Cast, Constant in its forms, ConstantOfShape with and without a value, random numbers."""
    text = """graph(i: int64[2], x: float[2]) -> (y: float[2]) {
        a = Cast(i) {to = 1}
        n: int64[1] = [2]
        b = ConstantOfShape(n)
        c = Constant() {value_floats = [1.5, 2.5]}
        d = Constant() {value_float = 0.5}
        e = RandomUniform() {shape = [2]}
        f = Sum(a, b, c, d, x)
        g = Mul(e, b)
        y = Add(f, g)
    }"""
    result = _run(_converted(text), i=np.int64([1, 2]), x=np.float16([1, 1]))
    assert result.dtype == np.float16
    assert result.tolist() == [4, 6]


def test_bodies_are_converted_too() -> None:
    """Of If and Loop, with what they capture and carry; a blocked node inside stays."""
    text = """graph(c: bool[], n: int64[], x: float[2]) -> (y: float[2], s: float[k, 2]) {
        w: float[2] = [0.5, 0.25]
        go: bool[] = [1]
        z = If(c) {then_branch = graph() -> (t) {
            t = Mul(x, w)
        }, else_branch = graph() -> (e) {
            e = Exp(x) @inner
        }}
        y, s = Loop(n, go, z) {body = graph(i: int64[], g: bool[], a: float[2]) -> (h: bool[], b: float[2], o: float[2]) {
            h = Identity(g)
            b = Add(a, w)
            o = Identity(b)
        }}
    }"""
    made = _converted(text, blocked_nodes=["inner"])
    for condition, expected in ((True, [1.5, 0.75]), (False, None)):
        result = _run(made, c=np.bool_(condition), n=np.int64(2), x=np.float16([1, 1]))
        assert result.dtype == np.float16
        assert expected is None or result.tolist() == expected


def test_sequences_are_converted_and_cannot_stay() -> None:
    """Their elements become float16; a node that stays and reads them is refused with what to do."""
    text = "graph(x: float[2]) -> (y: float[2]) {\ni: int64[] = [0]\ns = SequenceConstruct(x, x)\ny = SequenceAt(s, i) @at\n}"
    assert _run(_converted(text), x=np.float16([1, 2])).tolist() == [1, 2]
    with pytest.raises(ort.InvalidArgument, match=r"at.* stays in float32.*no Cast converts"):
        _converted(text, blocked_nodes=["at"])


def test_outputs_given_out_twice_and_inputs_given_out_keep_their_names() -> None:
    """However their types are kept."""
    made = _converted("graph(x: float[2]) -> (y: float[2], y: float[2], x: float[2]) {\ny = Relu(x)\n}", kept_ends=None)
    assert [value.name for value in made.graph.outputs] == ["y", "y", "x"]
    assert [str(value.dtype) for value in made.graph.outputs] == ["float"] * 3


def test_calls_of_functions_are_inlined() -> None:
    """Since types inside follow those of the call."""
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21, "m" : 1]>\ng (float[2] x) => (float[2] y) {\n y = m.F(x)\n}\n'
        '<domain: "m", opset_import: ["" : 21]>\nF (a) => (b) {\n one = Constant<value = float {1.0}>()\n b = Add(a, one)\n}'
    )
    from sardonyx.formats.onnx import load

    made = load(proto)
    to_half(made, HalfPolicy(**_NARROW))
    assert _run(made, x=np.float16([1, 2])).tolist() == [2, 3]
