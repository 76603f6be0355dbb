"""Weights of few bits in blocks, for products whose activations stay floats: by rounding to nearest, HQQ, k-quant or GPTQ.

    quantizer = MatMulNBitsQuantizer("model.onnx", bits=4, block_size=32, accuracy_level=4)
    quantizer.process()
    quantizer.model.save_model_to_file("model_int4.onnx", use_external_data_format=True)

MatMul becomes MatMulNBits (com.microsoft), or MatMul of a DequantizeLinear with blocks; so does Gemm that neither scales nor
transposes its input, in the first form. Gather of a table becomes GatherBlockQuantized. Names are those of onnxruntime's tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sardonyx.capi.block_quantization import quantize_matmul_2bits, quantize_matmul_4bits, quantize_matmul_8bits
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Graph, Model, Node, Tensor, Value
from sardonyx.ir.walk import nested_graphs
from sardonyx.optimize.edit import Names, overridable_values, tensor_of
from sardonyx.quantization import gptq, hqq, kquant
from sardonyx.quantization.qdq import drop_unused
from sardonyx.quantization.quant_utils import QuantFormat
from sardonyx.quantization.shape_inference import prepared
from sardonyx.quantization.weight_configs import (
    DefaultWeightOnlyQuantConfig,
    GPTQWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    NVAWQWeightOnlyQuantConfig,
    RTNWeightOnlyQuantConfig,
    WeightOnlyQuantConfig,
    check_config,
)
from sardonyx.tools.models import Given, to_proto
from sardonyx.tools.onnx_model import OnnxModel

__all__ = [
    "DefaultWeightOnlyQuantConfig",
    "GPTQWeightOnlyQuantConfig",
    "HQQWeightOnlyQuantConfig",
    "KQuantWeightOnlyQuantConfig",
    "MatMulNBitsQuantizer",
    "NVAWQWeightOnlyQuantConfig",
    "RTNWeightOnlyQuantConfig",
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
            algo_config: says all of this instead; RTN, k-quant and GPTQ take bits, blocks and symmetry from these arguments, unless
                they say them too.

        Raises:
            InvalidArgument: an argument is none of these.
            SardonyxError: the model cannot be read, or is invalid.
        """
        own = DefaultWeightOnlyQuantConfig(
            block_size=block_size,
            bits=bits,
            is_symmetric=is_symmetric,
            accuracy_level=accuracy_level,
            quant_format=quant_format,
            op_types_to_quantize=op_types_to_quantize,
            quant_axes=quant_axes,
            channel_wised_quantize=channel_wised_quantize,
        )
        self.config = own if algo_config is None else algo_config.within(own)
        check_config(self.config)
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
            InvalidArgument: a weight holds NaN or infinities, or GPTQ has no calibration data.
        """
        self._wrapped = None
        _Rewriter(self._model, self.config).run(self._excluded, self._included)
        self._model.producer_name = "sardonyx.quantization"


_SEARCHING = (HQQWeightOnlyQuantConfig, KQuantWeightOnlyQuantConfig)


class _Rewriter:
    def __init__(self, model: Model, config: WeightOnlyQuantConfig) -> None:
        self._model, self._config, self._all = model, config, config
        self._rounded: dict[tuple[Value, str], tuple[Array, Array, Array]] = {}
        self._names = Names.of(model)
        self._overridable = overridable_values(model)
        self._operators = frozenset(config.op_types_to_quantize or ("MatMul",))
        self._stored: dict[tuple[Value, str], Sequence[Value]] = {}

    def run(self, excluded: frozenset[str], included: frozenset[str]) -> None:
        chosen = [
            (graph, node)
            for graph in nested_graphs(self._model.graph)
            for node in graph
            if (not included or node.name in included) and node.name not in excluded and self._has_weights(node)
        ]
        if isinstance(self._all, GPTQWeightOnlyQuantConfig):
            self._round_by_data([node for graph, node in chosen if graph is self._model.graph], self._all)
        for graph, node in chosen:
            self._config = self._all.of_node(node.name)
            if node.op_type == "Gather":
                self._rewrite_table(graph, node)
            else:
                self._rewrite_product(graph, node)
        drop_unused(self._model)

    def _has_weights(self, node: Node) -> bool:
        kind = "MatMul" if node.op_type == "Gemm" else node.op_type
        return not node.domain and kind in self._operators and (node.op_type != "Gemm" or _is_plain_gemm(node))

    def _round_by_data(self, nodes: Iterable[Node], config: GPTQWeightOnlyQuantConfig) -> None:
        """Round the weights of products by what calibration data gives their first operands."""
        lengths: dict[str, int] = {}
        products: list[tuple[Node, Value, Array]] = []
        for node in nodes:
            given, matrix = node.inputs[0], None if node.op_type == "Gather" else self._matrix(node)
            if matrix is not None and given is not None and (given.producer is not None or given in self._model.graph.inputs):
                lengths[given.name] = len(matrix[1])
                products.append((node, *matrix))
        reader = config.calibration_data_reader
        feeds = [] if reader is None else [dict(feed) for feed in reader]
        for moments in gptq.second_moments(self._model, list(lengths.items()), feeds):
            for node, weights, array in products:
                own, given = config.of_node(node.name), node.inputs[0]
                block = self._block(len(array), own)
                key = _key(weights, node, own, block)
                if given is not None and given.name in moments and key not in self._rounded:
                    self._rounded[key] = gptq.quantize_rows(
                        array,
                        moments[given.name],
                        own.bits,
                        block,
                        symmetric=own.is_symmetric,
                        damping=config.percdamp,
                        by_importance=config.actorder,
                        searches=config.mse,
                    )

    def _matrix(self, node: Node) -> tuple[Value, Array] | None:
        """Return the constant weights of a product as (K, N), with their value."""
        weights = node.inputs[1]
        array = self._weights(node, weights)
        if array is None or weights is None:
            return None
        return weights, np.ascontiguousarray(array.T) if _is_turned(node) else array

    def _rewrite_product(self, graph: Graph, node: Node) -> None:
        matrix = self._matrix(node)
        if matrix is None:
            return
        weights, array = matrix
        K, N = array.shape
        block = self._block(K)
        if self._config.quant_format is QuantFormat.QDQ:
            if node.op_type == "MatMul":
                self._dequantize_in_graph(graph, node, weights, array, block)
            return
        key = _key(weights, node, self._config, block)
        if key not in self._stored:
            self._stored[key] = self._packed(weights, array, block, self._rounded.get(key))
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

    def _block(self, length: int, config: WeightOnlyQuantConfig | None = None) -> int:
        chosen = config or self._config
        if not chosen.channel_wised_quantize:
            return chosen.block_size
        return max(16, 1 << (length - 1).bit_length())

    def _packed(
        self, weights: Value, array: Array, block: int, rounded: tuple[Array, Array, Array] | None = None
    ) -> Sequence[Value]:
        """Return codes, scales and zero points as MatMulNBits takes them, of `rounded` codes (K, N) where there are any."""
        (K, N), bits = array.shape, self._config.bits
        blocks = -(-K // block)
        codes = np.zeros((N, blocks, block * bits // 8), np.uint8)
        scales = np.zeros((N, blocks), array.dtype)
        zeros = np.zeros((N, -(-blocks * bits // 8)), np.uint8)
        if rounded is not None:
            numbers = np.zeros((blocks * block, N), np.uint8)
            numbers[:K] = rounded[0]
            codes[:] = _pack(np.ascontiguousarray(numbers.reshape(blocks, block, N).transpose(2, 0, 1)), bits)
            scales[:] = rounded[1].T
            zeros = _pack(_padded(np.ascontiguousarray(rounded[2].T).astype(np.uint8), 8 // bits), bits)
        elif isinstance(self._config, _SEARCHING):
            is_hqq, found = isinstance(self._config, HQQWeightOnlyQuantConfig), np.empty((N, blocks), np.float32)
            by_column, quantize = self._blocks(array, block).transpose(2, 0, 1), (hqq if is_hqq else kquant).quantize_blocks
            step = max(1, _BLOCK_ELEMENTS // (blocks * block))
            for part in (slice(first, first + step) for first in range(0, N, step)):
                numbers, steps, middles = quantize(np.ascontiguousarray(by_column[part]), bits)
                codes[part], scales[part], found[part] = _pack(numbers, bits), steps[..., 0], middles[..., 0]
            zeros = found.astype(array.dtype) if is_hqq else _pack(_padded(found.astype(np.uint8), 8 // bits), bits)
        else:
            _PACKERS[bits](codes, self._clipped(weights.name, array, block), scales, zeros, block, N, K, self._config.is_symmetric)
        has_zeros = isinstance(self._config, _SEARCHING) or not self._config.is_symmetric
        parts = [(f"Q{bits}", codes), ("scales", scales), *([("zero_points", zeros)] if has_zeros else [])]
        return [self._constant(f"{weights.name}_{name}", Tensor.from_array(part)) for name, part in parts]

    def _codes_by_row(self, weights: Value, array: Array, block: int, *, turned: bool = False) -> tuple[Value, Value, Value | None]:
        """Return codes, scales and zero points for DequantizeLinear, of blocks along the first axis; `turned`, along the last."""
        bits, K = self._config.bits, array.shape[0]
        if bits not in _UNSIGNED:
            raise InvalidArgument(f"QDQ and Gather have codes of 4 or 8 bits, got {bits}")
        if isinstance(self._config, (GPTQWeightOnlyQuantConfig, *_SEARCHING)):
            raise InvalidArgument(
                "weights by HQQ, k-quant and GPTQ are those of MatMulNBits only: choose QuantFormat.QOperator, without Gather"
            )
        parts = self._blocks(self._clipped(weights.name, array, block), block)
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

    def _clipped(self, name: str, array: Array, block: int) -> Array:
        """Return weights (K, N) within the part of the range of each block that a configuration by rounding says for them."""
        ratio = self._config.ratios.get(name, 1.0) if isinstance(self._config, RTNWeightOnlyQuantConfig) else 1.0
        if ratio == 1.0:
            return array
        parts = self._blocks(array, block)
        low, high = parts.min(axis=1, keepdims=True) * ratio, parts.max(axis=1, keepdims=True) * ratio
        cut: Array = np.clip(parts, low, high).reshape(-1, array.shape[1])[: len(array)].astype(array.dtype)
        return np.ascontiguousarray(cut)

    def _blocks(self, array: Array, block: int) -> Array:
        """Return float32 (blocks, block, N) of weights (K, N), 0 behind the last row."""
        K, N = array.shape
        padded = np.zeros((-(-K // block) * block, N), np.float32)
        padded[:K] = array
        return padded.reshape(-1, block, N)

    def _constant(self, name: str, tensor: Tensor) -> Value:
        return self._model.graph.add_initializer(tensor, self._names.fresh(name))


def _is_turned(node: Node) -> bool:
    return node.op_type == "Gemm" and bool(node.integer("transB", 0))


def _key(weights: Value, node: Node, config: WeightOnlyQuantConfig, block: int) -> tuple[Value, str]:
    """Return by what the codes of weights are told apart."""
    return weights, f"{_is_turned(node)} {config.bits} {block} {config.is_symmetric}"


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
