"""How weights of few bits in blocks are rounded: the configurations of `MatMulNBitsQuantizer`, with onnxruntime's names."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from sardonyx import errors
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.quantization.quant_utils import QuantFormat

__all__ = [
    "DefaultWeightOnlyQuantConfig",
    "GPTQWeightOnlyQuantConfig",
    "HQQWeightOnlyQuantConfig",
    "KQuantWeightOnlyQuantConfig",
    "NVAWQWeightOnlyQuantConfig",
    "RTNWeightOnlyQuantConfig",
    "WeightOnlyQuantConfig",
    "check_config",
]


@dataclasses.dataclass(slots=True)
class WeightOnlyQuantConfig:
    """How weights are rounded."""

    block_size: int = 128
    """Weights along K that share a scale: a power of 2, at least 16."""
    is_symmetric: bool = False
    """Whether blocks have no zero point of their own."""
    accuracy_level: int | None = None
    """The attribute of MatMulNBits: 4 lets activations be rounded to 8 bits."""
    quant_format: QuantFormat = QuantFormat.QOperator
    """MatMulNBits, or DequantizeLinear and MatMul."""
    op_types_to_quantize: Sequence[str] | None = None
    """MatMul, Gather or both; None for MatMul."""
    quant_axes: Sequence[tuple[str, int]] | None = None
    """The axis of blocks by operator; MatMul has 0, Gather 1 where nothing is said."""
    bits: int = 4
    """Of a code: 2, 4 or 8."""
    channel_wised_quantize: bool = False
    """Whether a block is a whole column."""

    def within(self, outer: WeightOnlyQuantConfig) -> WeightOnlyQuantConfig:
        """Return what holds in a quantizer with arguments of its own: what this configuration says."""
        return self

    def of_node(self, name: str) -> WeightOnlyQuantConfig:
        """Return the configuration of a node."""
        return self


@dataclasses.dataclass(slots=True)
class DefaultWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Round to nearest between the extremes of each block."""


@dataclasses.dataclass(slots=True, init=False)
class HQQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Half-quadratic quantization: zero points that are floats, found step by step."""

    axis: int = 1
    """Accepted: blocks lie along K."""

    def __init__(
        self,
        block_size: int = 128,
        bits: int = 4,
        axis: int = 1,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        quant_axes: Sequence[tuple[str, int]] | None = None,
        *,
        is_symmetric: bool = False,
        accuracy_level: int | None = None,
        channel_wised_quantize: bool = False,
    ) -> None:
        """Take the fields, in onnxruntime's order, and by name those that it has not."""
        blocks, nodes = (block_size, is_symmetric, accuracy_level), (quant_format, op_types_to_quantize, quant_axes)
        WeightOnlyQuantConfig.__init__(self, *blocks, *nodes, bits, channel_wised_quantize)
        self.axis = axis


@dataclasses.dataclass(slots=True, init=False)
class _NamedConfig(WeightOnlyQuantConfig):
    """With onnxruntime's order of arguments; blocks and bits are the quantizer's unless the configuration says them itself."""

    ratios: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Name of a weight -> which part of the range of each of its blocks counts, in rounding to nearest; the rest is cut off."""
    customized_weight_config: Mapping[str, Mapping[str, object]] = dataclasses.field(default_factory=dict)
    """Name of a node -> its own `bits`, `group_size` and `scheme` ("sym" or "asym")."""

    def __init__(
        self,
        ratios: Mapping[str, float] | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        customized_weight_config: Mapping[str, Mapping[str, object]] | None = None,
        *,
        block_size: int = 0,
        bits: int = 0,
        is_symmetric: bool = False,
        accuracy_level: int | None = None,
        channel_wised_quantize: bool = False,
    ) -> None:
        """Take the fields, in onnxruntime's order, and by name those that it has not; 0 is the quantizer's number."""
        blocks = block_size, is_symmetric, accuracy_level
        WeightOnlyQuantConfig.__init__(self, *blocks, quant_format, op_types_to_quantize, None, bits, channel_wised_quantize)
        self.ratios, self.customized_weight_config = dict(ratios or {}), dict(customized_weight_config or {})

    def within(self, outer: WeightOnlyQuantConfig) -> WeightOnlyQuantConfig:
        """Return a copy that takes from the quantizer's arguments what it does not say itself."""
        made = copy.copy(self)
        made.block_size, made.bits = self.block_size or outer.block_size, self.bits or outer.bits
        made.is_symmetric = self.is_symmetric or outer.is_symmetric
        made.accuracy_level = outer.accuracy_level if self.accuracy_level is None else self.accuracy_level
        made.channel_wised_quantize = self.channel_wised_quantize or outer.channel_wised_quantize
        return made

    def of_node(self, name: str) -> WeightOnlyQuantConfig:
        """Return the configuration of a node; raises InvalidArgument where its own is none."""
        own = self.customized_weight_config.get(name)
        if not own:
            return self
        made = copy.copy(self)
        made.bits, made.block_size = _number(own, "bits", self.bits), _number(own, "group_size", self.block_size)
        scheme = own.get("scheme", "sym" if self.is_symmetric else "asym")
        if scheme not in ("sym", "asym"):
            raise InvalidArgument(f'customized_weight_config of {name!r}: the scheme is "sym" or "asym", got {scheme!r}')
        made.is_symmetric = scheme == "sym"
        check_config(made)
        return made


@dataclasses.dataclass(slots=True, init=False)
class RTNWeightOnlyQuantConfig(_NamedConfig):
    """Round to nearest between the extremes of each block, or within a part of them."""


@dataclasses.dataclass(slots=True, init=False)
class KQuantWeightOnlyQuantConfig(_NamedConfig):
    """Scales and whole zero points that a search finds, by weighted least squares; always with zero points."""


@dataclasses.dataclass(slots=True, init=False)
class GPTQWeightOnlyQuantConfig(_NamedConfig):
    """Rounding whose errors the weights that follow make up for, by what calibration data gives the products (`gptq.py`)."""

    calibration_data_reader: Iterable[Mapping[str, OnnxValue]] | None = None
    """Feeds of the model; a CalibrationDataReader, or a list."""
    percdamp: float = 0.01
    """What is added to the diagonal of the moments, as a part of its mean."""
    actorder: bool = False
    """Whether rows with large inputs are rounded first."""
    mse: bool = False
    """Whether narrower ranges are tried, for the least error."""

    def __init__(
        self,
        calibration_data_reader: Iterable[Mapping[str, OnnxValue]] | None = None,
        percdamp: float = 0.01,
        block_size: int = 128,
        actorder: bool = False,
        mse: bool = False,
        perchannel: bool = True,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
    ) -> None:
        """Take the fields, in onnxruntime's order.

        Args:
            calibration_data_reader: see there.
            percdamp: see there.
            block_size: accepted: how many rows are updated at once changes no result; blocks are the quantizer's.
            actorder: see there.
            mse: see there.
            perchannel: accepted: each column of a block has a scale.
            quant_format: QOperator.
            op_types_to_quantize: MatMul, as where it is None.
        """
        _NamedConfig.__init__(self, None, quant_format, op_types_to_quantize)
        self.calibration_data_reader, self.percdamp, self.actorder, self.mse = calibration_data_reader, percdamp, actorder, mse


class NVAWQWeightOnlyQuantConfig:
    """A name of onnxruntime's for NVIDIA's modelopt, whose algorithm is not offered."""

    def __init__(self, *_arguments: object, **_named: object) -> None:
        """Raise NotImplemented."""
        raise errors.NotImplemented(
            "weights by NVIDIA's AWQ need the package nvidia-modelopt and its quantizer; choose GPTQWeightOnlyQuantConfig, which "
            "weighs errors by calibration data too, or KQuantWeightOnlyQuantConfig, which needs no data"
        )


def _number(own: Mapping[str, object], key: str, default: int) -> int:
    value = own.get(key, default)
    if not isinstance(value, int):
        raise InvalidArgument(f"customized_weight_config: {key} is an integer, got {value!r}")
    return value


def check_config(config: WeightOnlyQuantConfig) -> None:
    """Raise InvalidArgument where a number of a configuration is none of those that there are."""
    block, bits = config.block_size, config.bits
    if bits not in (2, 4, 8):
        raise InvalidArgument(f"bits is 2, 4 or 8, got {bits!r}")
    if block < 16 or block & (block - 1):
        raise InvalidArgument(f"block_size is a power of 2, at least 16, got {block!r}")
    unknown = [name for name in config.op_types_to_quantize or () if name not in ("MatMul", "Gather")]
    if unknown:
        raise InvalidArgument(f"op_types_to_quantize has {unknown[0]!r}; weights of MatMul and Gather can be quantized")
    if config.accuracy_level is not None and config.accuracy_level not in range(5):
        raise InvalidArgument(f"accuracy_level is from 0 to 4, got {config.accuracy_level!r}")
