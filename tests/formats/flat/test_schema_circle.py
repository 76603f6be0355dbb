"""The tables of Circle models."""

from __future__ import annotations

from sardonyx.formats.flat.schema_circle import CIRCLE


def test_what_circle_adds_has_numbers_below_0_and_codes_above_246() -> None:
    """Beside the operators of TensorFlow Lite."""
    operators, options = CIRCLE.codes("BuiltinOperator"), CIRCLE.codes("BuiltinOptions")
    assert [operators[name] for name in ("ATTENTION", "ROPE", "RMS_NORM", "GRU", "INSTANCE_NORM", "ADD")] == [-9, -7, -6, -5, -2, 0]
    assert [options[name] for name in ("AttentionOptions", "RoPEOptions", "InstanceNormOptions", "AddOptions")] == [
        247,
        249,
        254,
        11,
    ]
    assert CIRCLE.codes("TensorType")["UINT4"] == -1


def test_tables_differ_where_circle_took_a_slot_before() -> None:
    """A tensor's compression stands where TensorFlow Lite has an external buffer."""
    assert "compression_type" in CIRCLE.fields("Tensor")
    assert "external_buffer" not in CIRCLE.fields("Tensor")
    assert CIRCLE.fields("SubGraph")["debug_metadata_index"].slot == 6
