"""Weights of few bits in blocks, for products whose activations stay floats: by rounding to nearest, HQQ or k-quant.

    quantizer = MatMulNBitsQuantizer("model.onnx", bits=4, block_size=32, accuracy_level=4)
    quantizer.process()
    quantizer.model.save_model_to_file("model_int4.onnx", use_external_data_format=True)

MatMul becomes MatMulNBits (com.microsoft), or MatMul of a DequantizeLinear with blocks; so does Gemm that neither scales nor
transposes its input, in the first form. Gather of a table becomes GatherBlockQuantized. Names are those of onnxruntime's tool.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.capi.block_quantization import quantize_matmul_2bits, quantize_matmul_4bits, quantize_matmul_8bits
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, Model, Node, Tensor, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.edit import Names, overridable_values, tensor_of
from sardonyx.quantization import hqq, kquant
from sardonyx.quantization.qdq import drop_unused
from sardonyx.quantization.quant_utils import QuantFormat
from sardonyx.quantization.shape_inference import prepared
from sardonyx.tools.models import Given, to_proto
from sardonyx.tools.onnx_model import OnnxModel

__all__ = [
    "DefaultWeightOnlyQuantConfig",
    "HQQWeightOnlyQuantConfig",
    "KQuantWeightOnlyQuantConfig",
    "MatMulNBitsQuantizer",
    "WeightOnlyQuantConfig",
]

_MICROSOFT = "com.microsoft"
_PACKERS = {2: quantize_matmul_2bits, 4: quantize_matmul_4bits, 8: quantize_matmul_8bits}
_BLOCKED_OPSET = 21
"""From which on DequantizeLinear takes blocks."""
_FLOATS = (DataType.FLOAT, DataType.FLOAT16)
_BLOCK_ELEMENTS = 1 << 16
"""Weights that HQQ and k-quant work on at once."""
_SIGNED, _UNSIGNED = {4: DataType.INT4, 8: DataType.INT8}, {4: DataType.UINT4, 8: DataType.UINT8}


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


@dataclasses.dataclass(slots=True)
class KQuantWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Scales and whole zero points that a search finds, by weighted least squares."""


class MatMulNBitsQuantizer:
    """Quantizes the weights of a model."""

    def __init__(
        self,
        model: Given,
        bits: int = 4,
        block_size: int = 128,
        is_symmetric: bool = False,
        accuracy_level: int | None = None,
        nodes_to_exclude: Sequence[str] | None = None,
        nodes_to_include: Sequence[str] | None = None,
        quant_format: QuantFormat = QuantFormat.QOperator,
        op_types_to_quantize: Sequence[str] | None = None,
        quant_axes: Sequence[tuple[str, int]] | None = None,
        channel_wised_quantize: bool = False,
        algo_config: WeightOnlyQuantConfig | None = None,
    ) -> None:
        """Read a model.

        Args:
            model: the path of a model, or an onnx.ModelProto, which stays as it is.
            bits: as in `WeightOnlyQuantConfig`, like the others that it has.
            block_size: see there.
            is_symmetric: see there.
            accuracy_level: see there.
            nodes_to_exclude: names of nodes to leave as they are.
            nodes_to_include: names of the only nodes to quantize; None for all.
            quant_format: see there.
            op_types_to_quantize: see there.
            quant_axes: see there.
            channel_wised_quantize: see there.
            algo_config: says all of this instead.

        Raises:
            InvalidArgument: an argument is none of these.
            SardonyxError: the model cannot be read, or is invalid.
        """
        self.config = algo_config or DefaultWeightOnlyQuantConfig(
            block_size=block_size,
            bits=bits,
            is_symmetric=is_symmetric,
            accuracy_level=accuracy_level,
            quant_format=quant_format,
            op_types_to_quantize=op_types_to_quantize,
            quant_axes=quant_axes,
            channel_wised_quantize=channel_wised_quantize,
        )
        _check(self.config)
        needs_blocks = self.config.quant_format is QuantFormat.QDQ
        self._model = prepared(model, optimizes=False, opset=_BLOCKED_OPSET if needs_blocks else 0)
        self._excluded, self._included = frozenset(nodes_to_exclude or ()), frozenset(nodes_to_include or ())
        self._wrapped: OnnxModel | None = None

    @property
    def model(self) -> OnnxModel:
        """The model as it stands now, with `save_model_to_file`."""
        if self._wrapped is None:
            self._wrapped = OnnxModel(to_proto(self._model))
        return self._wrapped

    def process(self) -> None:
        """Quantize the model.

        Raises:
            InvalidArgument: a weight holds NaN or infinities.
        """
        self._wrapped = None
        _Rewriter(self._model, self.config).run(self._excluded, self._included)
        self._model.producer_name = "sardonyx.quantization"


_SEARCHING = (HQQWeightOnlyQuantConfig, KQuantWeightOnlyQuantConfig)


class _Rewriter:
    def __init__(self, model: Model, config: WeightOnlyQuantConfig) -> None:
        self._model, self._config = model, config
        self._names = Names.of(model)
        self._overridable = overridable_values(model)
        self._operators = frozenset(config.op_types_to_quantize or ("MatMul",))
        self._stored: dict[tuple[Value, str], Sequence[Value]] = {}

    def run(self, excluded: frozenset[str], included: frozenset[str]) -> None:
        for graph in list(nested_graphs(self._model.graph)):
            for node in list(graph):
                is_named = (not included or node.name in included) and node.name not in excluded
                kind = "MatMul" if node.op_type == "Gemm" else node.op_type
                if not is_named or node.domain or kind not in self._operators:
                    continue
                if node.op_type == "Gather":
                    self._rewrite_table(graph, node)
                elif node.op_type == "MatMul" or _is_plain_gemm(node):
                    self._rewrite_product(graph, node)
        drop_unused(self._model)

    def _rewrite_product(self, graph: Graph, node: Node) -> None:
        weights = node.inputs[1]
        array = self._weights(node, weights)
        if array is None or weights is None:
            return
        is_turned = node.op_type == "Gemm" and bool(node.integer("transB", 0))
        array = np.ascontiguousarray(array.T) if is_turned else array
        K, N = array.shape
        block = self._block(K)
        if self._config.quant_format is QuantFormat.QDQ:
            if node.op_type == "MatMul":
                self._dequantize_in_graph(graph, node, weights, array, block)
            return
        key = weights, f"MatMul{is_turned}"
        if key not in self._stored:
            self._stored[key] = self._packed(weights, array, block)
        attributes = {"K": K, "N": N, "bits": self._config.bits, "block_size": block}
        if self._config.accuracy_level is not None:
            attributes["accuracy_level"] = self._config.accuracy_level
        bias, result = node.input(2), node.outputs[0]
        if bias is not None:
            product = Value(self._names.fresh(f"{result.name}_product"), result.type)
            name = f"{node.name or result.name}_Add"
            node.outputs = (product,)
            graph.insert_after(node, Node("Add", [product, bias], [result], version=node.version, name=name))
        self._replace(graph, node, "MatMulNBits", [node.inputs[0], *self._stored[key]], attributes)

    def _dequantize_in_graph(self, graph: Graph, node: Node, weights: Value, array: Array, block: int) -> None:
        codes, scales, zeros = self._codes_by_row(weights, array, block)
        back = Value(self._names.fresh(f"{weights.name}_dequantized"), weights.type)
        given = [codes, scales, *([] if zeros is None else [zeros])]
        version = self._model.opset_imports[""]
        made = Node("DequantizeLinear", given, [back], {"axis": 0, "block_size": block}, version=version, name=back.name)
        graph.insert_before(node, made)
        node.replace_input(1, back)

    def _rewrite_table(self, graph: Graph, node: Node) -> None:
        table = node.inputs[0]
        array = self._weights(node, table)
        if array is None or table is None or self._config.bits not in _UNSIGNED:
            return
        axis = dict(self._config.quant_axes or ()).get("Gather", 1) % array.ndim
        if axis != 1:
            return
        block = self._block(array.shape[1])
        codes, scales, zeros = self._codes_by_row(table, np.ascontiguousarray(array.T), block, turned=True)
        attributes = {"block_size": block, "gather_axis": node.integer("axis", 0), "quantize_axis": axis}
        given = [codes, node.inputs[1], scales, *([] if zeros is None else [zeros])]
        self._replace(graph, node, "GatherBlockQuantized", given, attributes)

    def _replace(self, graph: Graph, node: Node, kind: str, inputs: Sequence[Value | None], attributes: Mapping[str, int]) -> None:
        self._model.opset_imports.setdefault(_MICROSOFT, 1)
        outputs, name = node.outputs, f"{node.name or node.outputs[0].name}_Q{self._config.bits}"
        made = Node(kind, inputs, outputs, dict(attributes), domain=_MICROSOFT, version=1, name=name)
        graph.insert_before(node, made)
        node.outputs = ()
        graph.remove(node)

    def _weights(self, node: Node, value: Value | None) -> Array | None:
        tensor = tensor_of(value, self._overridable)
        if tensor is None or value is None or tensor.dtype not in _FLOATS or len(tensor.shape) != 2 or 0 in tensor.shape:
            return None
        array = tensor.numpy()
        if not np.isfinite(array).all():
            raise InvalidArgument(f"{node.place}: weight {value.name!r} holds NaN or infinities, which codes cannot stand for")
        return array

    def _block(self, length: int) -> int:
        if not self._config.channel_wised_quantize:
            return self._config.block_size
        return max(16, 1 << (length - 1).bit_length())

    def _packed(self, weights: Value, array: Array, block: int) -> Sequence[Value]:
        """Return codes, scales and zero points as MatMulNBits takes them."""
        (K, N), bits = array.shape, self._config.bits
        blocks = -(-K // block)
        codes = np.zeros((N, blocks, block * bits // 8), np.uint8)
        scales = np.zeros((N, blocks), array.dtype)
        zeros = np.zeros((N, -(-blocks * bits // 8)), np.uint8)
        if isinstance(self._config, _SEARCHING):
            is_hqq, found = isinstance(self._config, HQQWeightOnlyQuantConfig), np.empty((N, blocks), np.float32)
            by_column, quantize = self._blocks(array, block).transpose(2, 0, 1), (hqq if is_hqq else kquant).quantize_blocks
            step = max(1, _BLOCK_ELEMENTS // (blocks * block))
            for part in (slice(first, first + step) for first in range(0, N, step)):
                numbers, steps, middles = quantize(np.ascontiguousarray(by_column[part]), bits)
                codes[part], scales[part], found[part] = _pack(numbers, bits), steps[..., 0], middles[..., 0]
            zeros = found.astype(array.dtype) if is_hqq else _pack(_padded(found.astype(np.uint8), 8 // bits), bits)
        else:
            _PACKERS[bits](codes, array, scales, zeros, block, N, K, self._config.is_symmetric)
        has_zeros = isinstance(self._config, _SEARCHING) or not self._config.is_symmetric
        parts = [(f"Q{bits}", codes), ("scales", scales), *([("zero_points", zeros)] if has_zeros else [])]
        return [self._constant(f"{weights.name}_{name}", Tensor.from_array(part)) for name, part in parts]

    def _codes_by_row(self, weights: Value, array: Array, block: int, *, turned: bool = False) -> tuple[Value, Value, Value | None]:
        """Return codes, scales and zero points for DequantizeLinear, of blocks along the first axis; `turned`, along the last."""
        bits, K = self._config.bits, array.shape[0]
        if bits not in _UNSIGNED:
            raise InvalidArgument(f"QDQ and Gather have codes of 4 or 8 bits, got {bits}")
        if isinstance(self._config, _SEARCHING):
            raise InvalidArgument(
                "weights by HQQ and k-quant are those of MatMulNBits only: choose QuantFormat.QOperator, without Gather"
            )
        parts = self._blocks(array, block)
        low, high = parts.min(axis=1, initial=0), parts.max(axis=1, initial=0)
        half, top = 1 << (bits - 1), (1 << bits) - 1
        if self._config.is_symmetric:
            places = np.abs(parts).argmax(axis=1)
            scales = np.take_along_axis(parts, places[:, None], axis=1)[:, 0] / np.float32(-half)
            zeros = np.zeros(scales.shape, np.int32)
            limits, dtype = (-half, half - 1), _SIGNED[bits]
        else:
            scales = (high - low) / np.float32(top)
            zeros = np.clip(np.rint(-low / np.where(scales, scales, 1)), 0, top).astype(np.int32)
            limits, dtype = (0, top), _UNSIGNED[bits]
        steps = np.where(scales, scales, 1)
        numbers = np.clip(np.rint(parts / steps[:, None]) + zeros[:, None], *limits).astype(np.int32)
        codes = numbers.reshape(-1, array.shape[1])[:K]
        turn = (lambda part: np.ascontiguousarray(part.T)) if turned else (lambda part: part)
        made = [("Q", _narrow(turn(codes), dtype)), ("scales", Tensor.from_array(turn(scales).astype(array.dtype)))]
        made += [] if self._config.is_symmetric else [("zero_points", _narrow(turn(zeros), dtype))]
        values = [self._constant(f"{weights.name}_{name}", tensor) for name, tensor in made]
        return values[0], values[1], values[2] if len(values) > 2 else None

    def _blocks(self, array: Array, block: int) -> Array:
        """Return float32 (blocks, block, N) of weights (K, N), 0 behind the last row."""
        K, N = array.shape
        padded = np.zeros((-(-K // block) * block, N), np.float32)
        padded[:K] = array
        return padded.reshape(-1, block, N)

    def _constant(self, name: str, tensor: Tensor) -> Value:
        return self._model.graph.add_initializer(tensor, self._names.fresh(name))


def _is_plain_gemm(node: Node) -> bool:
    """Return whether a Gemm is a product of two matrices, the first as it is, and perhaps a sum."""
    beta = 1.0 if node.input(2) is None else node.number("beta", 1.0)
    return node.op_type == "Gemm" and not node.integer("transA", 0) and node.number("alpha", 1.0) == 1.0 == beta


def _narrow(codes: Array, dtype: DataType) -> Tensor:
    return Tensor.from_array(codes.astype(dtype.numpy))


def _padded(codes: Array, multiple: int) -> Array:
    """Return rows with zeros behind them, so that their length is a multiple of a number."""
    return np.pad(codes, ((0, 0), (0, -codes.shape[-1] % multiple)))


def _pack(codes: Array, bits: int) -> Array:
    """Return codes of few bits in bytes along the last axis, the first in the lowest bits."""
    of_byte = 8 // bits
    grouped = codes.reshape(*codes.shape[:-1], -1, of_byte)
    packed = np.zeros(grouped.shape[:-1], np.uint8)
    for place in range(of_byte):
        packed |= grouped[..., place] << np.uint8(place * bits)
    return packed


def _check(config: WeightOnlyQuantConfig) -> None:
    block, bits = config.block_size, config.bits
    if bits not in _PACKERS:
        raise InvalidArgument(f"bits is 2, 4 or 8, got {bits!r}")
    if block < 16 or block & (block - 1):
        raise InvalidArgument(f"block_size is a power of 2, at least 16, got {block!r}")
    unknown = [name for name in config.op_types_to_quantize or () if name not in ("MatMul", "Gather")]
    if unknown:
        raise InvalidArgument(f"op_types_to_quantize has {unknown[0]!r}; weights of MatMul and Gather can be quantized")
    if config.accuracy_level is not None and config.accuracy_level not in range(5):
        raise InvalidArgument(f"accuracy_level is from 0 to 4, got {config.accuracy_level!r}")
