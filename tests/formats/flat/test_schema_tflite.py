"""The tables of TensorFlow Lite models."""

from __future__ import annotations

from sardonyx.formats.flat.schema_tflite import TFLITE


def test_operators_have_the_numbers_of_the_format() -> None:
    """The first, one in the middle, the last."""
    codes = TFLITE.codes("BuiltinOperator")
    assert (codes["ADD"], codes["CUSTOM"], codes["WHILE"], codes["PLACEHOLDER_FOR_GREATER_OP_CODES"]) == (0, 32, 119, 127)
    assert (codes["BITWISE_XOR"], codes["DILATE"], codes["STABLEHLO_CASE"]) == (160, 203, 209)


def test_options_have_the_codes_of_the_format() -> None:
    """Of both unions."""
    assert [TFLITE.codes("BuiltinOptions")[name] for name in ("Conv2DOptions", "WhileOptions", "RightShiftOptions")] == [1, 93, 126]
    assert TFLITE.codes("BuiltinOptions2")["DilateOptions"] == 18


def test_every_table_can_be_parsed() -> None:
    """Of the root and of both unions."""
    names = ["Model", "SubGraph", "Tensor", "Operator", *TFLITE.codes("BuiltinOptions"), *TFLITE.codes("BuiltinOptions2")]
    assert TFLITE.fields("Operator")["builtin_options_2"].slot == 11
    assert all(isinstance(TFLITE.fields(name), dict) for name in names)
    assert TFLITE.fields("BidirectionalSequenceLSTMOptions")["time_major"].default == 1
