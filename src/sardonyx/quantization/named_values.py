"""The names that values of a quantized model are given, and the records that scripts keep of them, as in onnxruntime's tools."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.formats.protos import Message

__all__ = [
    "DEQUANT_OP_NAME",
    "DEQUANT_OUTPUT_SUFFIX",
    "QUANT_INPUT_SUFFIX",
    "QUANT_OP_NAME",
    "TENSOR_NAME_QUANT_SUFFIX",
    "BiasToQuantize",
    "QuantizedInitializer",
    "QuantizedValue",
    "QuantizedValueType",
    "add_dequant_input_suffix",
    "add_dequant_output_suffix",
    "add_dequant_suffix",
    "add_quant_input_suffix",
    "add_quant_output_suffix",
    "add_quant_suffix",
]

QUANT_OP_NAME, DEQUANT_OP_NAME = "QuantizeLinear", "DequantizeLinear"
QUANT_INPUT_SUFFIX, DEQUANT_OUTPUT_SUFFIX = "_QuantizeLinear_Input", "_DequantizeLinear_Output"
TENSOR_NAME_QUANT_SUFFIX = "_quantized"
"""The names that onnxruntime's tools give."""


class QuantizedValueType(enum.Enum):
    """What a quantized value is."""

    Input = 0
    Initializer = 1

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def from_string(v: str) -> QuantizedValueType:
        """Return the type of a name; raises InvalidArgument, a ValueError, for another text."""
        if v not in QuantizedValueType.__members__:
            raise InvalidArgument(f"a QuantizedValueType is one of {', '.join(QuantizedValueType.__members__)}, got {v!r}")
        return QuantizedValueType[v]


@dataclasses.dataclass(slots=True)
class QuantizedInitializer:
    """What a script notes of a weight that it quantized."""

    name: str
    """The weight's name."""
    initializer: Message
    """The onnx.TensorProto."""
    rmins: Sequence[Any]
    """The least number of each part that has a scale."""
    rmaxs: Sequence[Any]
    """The greatest."""
    zero_points: Sequence[Any]
    """The zero point of each."""
    scales: Sequence[Any]
    """The scale of each."""
    data: Array | Sequence[Any] = ()
    """The numbers."""
    quantized_data: Array | Sequence[Any] = ()
    """Their codes."""
    axis: int | None = None
    """The axis along which parts lie; None for one part."""


class QuantizedValue:
    """What a script notes of a value that it quantized: an input, an output or a weight."""

    def __init__(
        self,
        name: str,
        new_quantized_name: str,
        scale_name: str,
        zero_point_name: str,
        quantized_value_type: QuantizedValueType,
        axis: int | None = None,
        node_type: str | None = None,
        node_qtype: int | None = None,
        scale_type: int | None = None,
    ) -> None:
        """Note a value.

        Args:
            name: its name in floats.
            new_quantized_name: the name of its codes.
            scale_name: of their scale.
            zero_point_name: of their zero point.
            quantized_value_type: what it is.
            axis: the axis that scales go along; None for one scale.
            node_type: the operator that makes it.
            node_qtype: the number of the type of its codes.
            scale_type: the number of the type of its scale.
        """
        self.original_name, self.q_name = name, new_quantized_name
        self.scale_name, self.zp_name = scale_name, zero_point_name
        self.value_type, self.axis = quantized_value_type, axis
        self.node_type, self.node_qtype, self.scale_type = node_type, node_qtype, scale_type


@dataclasses.dataclass(slots=True)
class BiasToQuantize:
    """A bias, which is quantized by the scales of what it is added to."""

    bias_name: str
    """Its name."""
    input_name: str
    """The name of the product's first operand."""
    weight_name: str
    """Of its second."""


def add_quant_suffix(tensor_name: str) -> str:
    """Return the name of the QuantizeLinear of a tensor."""
    return f"{tensor_name}_{QUANT_OP_NAME}"


def add_quant_input_suffix(tensor_name: str) -> str:
    """Return the name of what that reads."""
    return f"{tensor_name}{QUANT_INPUT_SUFFIX}"


def add_quant_output_suffix(tensor_name: str) -> str:
    """Return the name of what it gives."""
    return f"{tensor_name}_{QUANT_OP_NAME}_Output"


def add_dequant_suffix(tensor_name: str) -> str:
    """Return the name of the DequantizeLinear of a tensor."""
    return f"{tensor_name}_{DEQUANT_OP_NAME}"


def add_dequant_input_suffix(tensor_name: str) -> str:
    """Return the name of what that reads."""
    return f"{tensor_name}_{DEQUANT_OP_NAME}_Input"


def add_dequant_output_suffix(tensor_name: str) -> str:
    """Return the name of what it gives."""
    return f"{tensor_name}{DEQUANT_OUTPUT_SUFFIX}"
