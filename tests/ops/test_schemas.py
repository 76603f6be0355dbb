"""Facts about finding schemas and checking nodes."""

from __future__ import annotations

import numpy as np
import pytest
from support.session_models import session

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import AttributeKind, Node, TensorType, Value
from sardonyx.ops.schemas import ParameterOption, check_node, check_types, find_schema, unknown_operator


def test_schema_in_force_is_the_newest_not_after_the_version() -> None:
    """At opset 13 Conv is still Conv-11."""
    schema = find_schema("", "Conv", 13)
    assert schema is not None
    assert schema.since_version == 11
    assert schema.label == "Conv-11"


def test_newer_opset_than_known_uses_the_newest_schema() -> None:
    """An opset from the future finds the newest schema."""
    newest, future = find_schema("", "Conv", 22), find_schema("", "Conv", 9999)
    assert newest is future


def test_operator_before_its_first_version_is_unknown() -> None:
    """Gelu does not exist at opset 13."""
    assert find_schema("", "Gelu", 13) is None
    assert "exists only from opset 20" in unknown_operator("", "Gelu", 13)


def test_both_names_of_the_standard_domain_find_the_schema() -> None:
    """The domain ai.onnx is the empty domain."""
    assert find_schema("ai.onnx", "Relu", 14) is find_schema("", "Relu", 14)


def test_defaults_are_python_values() -> None:
    """Defaults arrive as int, float, str or None."""
    schema = find_schema("", "Conv", 11)
    assert schema is not None
    assert schema.attributes["group"].default == 1
    assert schema.attributes["auto_pad"].default == "NOTSET"
    assert schema.attributes["pads"].default is None
    assert schema.attributes["pads"].kind is AttributeKind.INTS


def test_type_constraints_are_sets_of_type_strings() -> None:
    """A type variable knows the types that it may stand for."""
    schema = find_schema("", "Conv", 11)
    assert schema is not None
    assert schema.type_constraints["T"].types == {"tensor(float)", "tensor(float16)", "tensor(double)"}


def test_every_schema_of_the_standard_converts() -> None:
    """All versions of all operators have a schema."""
    import onnx.defs

    for known in onnx.defs.get_all_schemas_with_history():
        schema = find_schema(known.domain, known.name, known.since_version)
        assert schema is not None
        assert schema.since_version == known.since_version


def test_contributed_operator_has_a_schema() -> None:
    """Operators of com.microsoft are found although onnx lacks them."""
    schema = find_schema("com.microsoft", "MatMulNBits", 1)
    assert schema is not None
    assert schema.min_inputs == 3
    assert schema.inputs[3].option is ParameterOption.OPTIONAL
    assert schema.attributes["K"].is_required


def test_unknown_operator_message_lists_close_names_and_domains() -> None:
    """A misspelt operator gets a suggestion, an unknown domain the list of domains."""
    assert "did you mean Conv?" in unknown_operator("", "Cnv", 13)
    assert "com.microsoft has an operator of that name" in unknown_operator("", "BiasGelu", 13)
    assert "known are ai.onnx, ai.onnx.ml" in unknown_operator("my.domain", "Thing", 1)


def test_a_model_saved_for_one_processor_says_how_to_save_it_for_all() -> None:
    """The blocks of com.microsoft.nchwc are of a size that the file does not tell."""
    assert "ORT_ENABLE_EXTENDED or lower" in unknown_operator("com.microsoft.nchwc", "Conv", 1)


def _check(op_type: str, inputs: list[Value | None], version: int, outputs: int = 1, **attributes: object) -> None:
    schema = find_schema("", op_type, version)
    assert schema is not None
    check_node(Node(op_type, inputs, outputs, attributes, version=version, name="n"), schema)


X = Value("x")


def test_valid_nodes_pass() -> None:
    """Nodes that follow the standard raise nothing, with optional inputs left out too."""
    _check("Conv", [X, X], 11, strides=(1, 1))
    _check("Clip", [X, None, X], 13)
    _check("Concat", [X] * 40, 13, axis=0)
    _check("Split", [X], 13, outputs=5)


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "attributes", "message"),
    [
        ("Conv", [X], 1, {}, r"has 1 inputs, expected 2 to 3: Conv-11 takes \(X, W, B\?\)"),
        ("Conv", [X] * 4, 1, {}, "has 4 inputs, expected 2 to 3"),
        ("Conv", [None, X], 1, {}, r"input 0 \('X'\) is left out"),
        ("Concat", [], 1, {"axis": 0}, r"has 0 inputs, expected at least 1: Concat-13 takes \(inputs...\)"),
        ("Relu", [X], 2, {}, "has 2 outputs, expected 1"),
        ("Cast", [X], 1, {}, r"required attribute 'to' \(INT\) is missing"),
        ("Conv", [X, X], 1, {"stride": (1, 1)}, "unknown attribute 'stride'; did you mean 'strides'?"),
        ("Conv", [X, X], 1, {"strides": 1}, r"'strides' has type INT \(1\), expected INTS"),
    ],
)
def test_broken_node_is_refused_with_a_teaching_message(
    op_type: str, inputs: list[Value | None], outputs: int, attributes: dict[str, object], message: str
) -> None:
    """The message names the node, what was found and what was expected."""
    with pytest.raises(InvalidGraph, match=message) as caught:
        _check(op_type, inputs, 13, outputs, **attributes)
    assert str(caught.value).startswith('node "n" (')


def test_internal_attributes_pass() -> None:
    """Attributes whose names begin with two underscores are ignored, as in ONNX Runtime."""
    _check("Relu", [X], 13, __hint=1)


def test_deprecated_operator_passes() -> None:
    """An operator that the standard dropped is still accepted."""
    _check("Upsample", [X, X], 13)


def _types(op_type: str, *dtypes: DataType | None) -> None:
    schema = find_schema("", op_type, 13)
    assert schema is not None
    values = [Value("x", None if dtype is None else TensorType(dtype)) for dtype in dtypes]
    check_types(Node(op_type, values, version=13, name="n"), schema)


def test_one_type_variable_has_one_type() -> None:
    """Inputs that share a type variable must have one type."""
    with pytest.raises(InvalidGraph, match=r"inputs 0 and 1 are tensor\(float\) and tensor\(int64\), but Add-13 takes one type T"):
        _types("Add", DataType.FLOAT, DataType.INT64)
    with pytest.raises(
        InvalidGraph, match=r"Type parameter \(T\) of Optype \(Add\) bound to different types \(tensor\(float\) and "
    ):
        _types("Add", DataType.FLOAT, DataType.INT64)
    with pytest.raises(InvalidGraph, match="inputs 0 and 2"):
        _types("Concat", DataType.FLOAT, DataType.FLOAT, DataType.INT64)


def test_unknown_and_independent_types_pass() -> None:
    """Unknown types pass, as do inputs of different type variables."""
    _types("Add", DataType.FLOAT, None)
    _types("Reshape", DataType.FLOAT, DataType.INT64)
    _types("Where", DataType.BOOL, DataType.FLOAT, DataType.FLOAT)


def test_types_of_other_versions_pass() -> None:
    """Relu-13 does not list int32, but Relu-14 does; no version of Relu lists texts."""
    _types("Relu", DataType.INT32)
    with pytest.raises(InvalidGraph, match=r'node "n" .*: input 0 is tensor\(string\), but Relu-13 takes tensor\(bfloat16\), '):
        _types("Relu", DataType.STRING)
    with pytest.raises(
        InvalidGraph, match=r"Type Error: Type 'tensor\(string\)' of input parameter \(x\) of operator \(Relu\) in node"
    ):
        _types("Relu", DataType.STRING)


@pytest.mark.parametrize(
    ("op_type", "dtypes", "problem"),
    [
        ("Gelu", [DataType.STRING], r"input 0 is tensor\(string\)"),
        ("QLinearSigmoid", [DataType.UINT8, DataType.DOUBLE], "input 1"),
        ("RotaryEmbedding", [DataType.FLOAT, DataType.BOOL], r"input 1 is tensor\(bool\)"),
        ("ExpandDims", [DataType.STRING], None),
        ("MurmurHash3", [DataType.STRING], None),
    ],
)
def test_schemas_without_types_still_refuse_some(op_type: str, dtypes: list[DataType], problem: str | None) -> None:
    """Strings where an operator computes, bool as an index, and another type than the one that is written down."""
    schema = find_schema("com.microsoft", op_type, 1)
    assert schema is not None
    node = Node(op_type, [Value("x", TensorType(dtype)) for dtype in dtypes], domain="com.microsoft", version=1, name="n")
    if problem is None:
        check_types(node, schema)
        return
    with pytest.raises(InvalidGraph, match=f'node "n" .*: {problem}'):
        check_types(node, schema)


@pytest.mark.parametrize(("version", "since"), [(1, 1), (14, 1), (17, 17), (21, 17)])
def test_layer_normalization_is_in_every_opset(version, since):
    """Before the standard had it, as onnxruntime has it, which writes it so."""
    schema = find_schema("", "LayerNormalization", version)
    assert (schema.since_version, schema.attributes["axis"].default) == (since, -1)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_dynamic_quantization_takes_any_float(dtype: type) -> None:
    """As converters to half precision leave it; the standard lists float only."""
    kind = {np.float16: "float16", np.float64: "double"}[dtype]
    graph = f"graph(x: {kind}[3]) -> (y: uint8[3], s: float[], z: uint8[]) {{ y, s, z = DynamicQuantizeLinear(x) }}"
    y, scale, zero = session(graph).run(None, {"x": np.array([0, 1, 4], dtype)})
    assert (y.tolist(), float(scale), int(zero)) == ([0, 64, 255], pytest.approx(4 / 255), 0)


def test_errors_hold_what_onnxruntime_says() -> None:
    """Its own tools look for these words to know why a model cannot run."""
    assert "com.microsoft:QLinearMatMul(-1) is not a registered function/op" in unknown_operator(
        "com.microsoft", "QLinearMatMul", 1
    )
    node = Node("DynamicQuantizeLinear", [Value("input", TensorType(DataType.INT32))], [Value("y")], version=19, name="n")
    schema = find_schema("", "DynamicQuantizeLinear", 19)
    assert schema is not None
    expected = r"Type 'tensor\(int32\)' of input parameter \(input\) of operator \(DynamicQuantizeLinear\) in node \(n\) is invalid"
    with pytest.raises(InvalidGraph, match=expected):
        check_types(node, schema)
