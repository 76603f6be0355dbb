"""Facts about the table of contributed operators."""

from __future__ import annotations

from sardonyx.ir import AttributeKind
from sardonyx.ops.schema import ParameterOption
from sardonyx.ops.schemas_contrib import CONTRIB_SCHEMAS


def test_signature_is_read_in_full() -> None:
    """Optional parameters, type strings, required attributes and defaults of a signature are understood."""
    schema = CONTRIB_SCHEMAS["com.microsoft", "QLinearConcat"]
    assert [formal.name for formal in schema.inputs] == ["Y_scale", "Y_zero_point", "inputs"]
    assert schema.inputs[2].option is ParameterOption.VARIADIC
    assert not schema.inputs[2].is_homogeneous
    assert schema.min_inputs == 3
    assert schema.max_inputs == 2**31 - 1
    assert schema.attributes["axis"].is_required
    pool = CONTRIB_SCHEMAS["com.microsoft", "QLinearAveragePool"]
    assert pool.inputs[1].type == "tensor(float)"
    assert pool.attributes["auto_pad"].default == "NOTSET"
    assert pool.attributes["strides"].kind is AttributeKind.INTS


def test_outer_required_input_makes_inner_optional_ones_listed() -> None:
    """An optional input before a required one must still have its place."""
    schema = CONTRIB_SCHEMAS["com.microsoft", "GroupQueryAttention"]
    assert schema.min_inputs == 7
    assert (schema.min_outputs, schema.max_outputs) == (1, 4)


def test_contributed_schemas_are_open() -> None:
    """Newer ONNX Runtimes add attributes, so unlisted ones are allowed."""
    assert all(schema.is_open for schema in CONTRIB_SCHEMAS.values())
