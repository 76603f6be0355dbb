"""Operators whose activations are quantized in each run, with weights of 8 bits.

    MatMul(x, w)      x8, s, z = DynamicQuantizeLinear(x);  Cast(MatMulInteger(x8, w8, z, z_w)) * (s * s_w)
    Gemm              as MatMul and Add, where it neither scales nor transposes x
    Conv(x, w, b)     the same by ConvInteger, then + b
    LSTM              DynamicQuantizeLSTM (com.microsoft)
    Attention         QAttention (com.microsoft)
    Gather(w, i)      DequantizeLinear(Gather(w8, i))
    EmbedLayerNormalization   QEmbedLayerNormalization (com.microsoft), tables and scales of uint8
    Transpose         as it is: it moves floats here

One DynamicQuantizeLinear serves all users of x. Names are those that onnxruntime's tool gives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Attribute, Model, Node, Tensor, TensorType, Value
from sardonyx.ir.attribute import AttributeValue
from sardonyx.optimize.edit import Names, overridable_values, tensor_of
from sardonyx.quantization.grids import Grid, grid_of_weights
from sardonyx.quantization.qdq import drop_unused

__all__ = ["OPERATORS", "quantize_operators"]

_MICROSOFT = "com.microsoft"
_EMBEDDED, _SEGMENTS, _MASK, _POSITIONS = range(2, 7), 4, 7, 8
"""Inputs of EmbedLayerNormalization: the tables of words, places and segments, scale and bias; which may be left out; others."""


def quantize_operators(
    model: Model,
    operators: Collection[str],
    included: Collection[str],
    excluded: Collection[str],
    grid: Callable[[Array, int | None], Grid],
    *,
    per_channel: bool,
) -> None:
    """Quantize a model in place; its types are inferred.

    Args:
        model: the model.
        operators: operators that are quantized.
        included: names of the nodes that are, where not empty.
        excluded: names of nodes that are not.
        grid: makes the grid of weights, along an axis or of all of them.
        per_channel: whether weights have a scale for each output channel.

    Raises:
        InvalidArgument: a weight holds NaN or infinities.
    """
    writer = _Writer(model, grid, per_channel)
    for node in list(model.graph):
        is_named = (not included or node.name in included) and node.name not in excluded
        rewrite = _REWRITES.get((node.domain, node.op_type))
        if is_named and rewrite is not None and node.op_type in operators:
            rewrite(writer, node)
    drop_unused(model)


class _Writer:
    """What the rewrites share: constants, nodes, and the quantized activations."""

    def __init__(self, model: Model, grid: Callable[[Array, int | None], Grid], per_channel: bool) -> None:
        self.per_channel = per_channel
        self._model, self._grid = model, grid
        self._names = Names.of(model)
        self._overridable = overridable_values(model)
        self._activations: dict[Value, tuple[Value, ...]] = {}
        self._weights: dict[tuple[Value, object], tuple[Value, Value, Value]] = {}

    def weights_of(self, value: Value | None) -> Array | None:
        """Return the elements of a constant of float32; None for anything else."""
        tensor = tensor_of(value, self._overridable)
        return tensor.numpy() if tensor is not None and tensor.dtype is DataType.FLOAT else None

    def activation(self, node: Node, value: Value) -> tuple[Value, ...]:
        """Return the codes, the scale and the zero point of a value, quantized in each run; `node` reads them."""
        if value not in self._activations:
            name = value.name
            types = TensorType(DataType.UINT8, value.shape), TensorType(DataType.FLOAT, ()), TensorType(DataType.UINT8, ())
            made = [
                Value(self._names.fresh(f"{name}_{part}"), kind)
                for part, kind in zip(("quantized", "scale", "zero_point"), types, strict=True)
            ]
            quantize = self.node("DynamicQuantizeLinear", [value], made, f"{name}_QuantizeLinear")
            graph = self._model.graph
            if value.producer is not None and value.producer.graph is graph:
                graph.insert_after(value.producer, quantize)
            else:
                graph.insert_before(next(iter(graph)), quantize)
            self._activations[value] = tuple(made)
        return self._activations[value]

    def stored(self, node: Node, value: Value, array: Array, axis: int | None, key: object = None) -> tuple[Value, Value, Value]:
        """Return the codes, the scale and the zero point of weights; with `axis`, one for each index along it."""
        place = value, (axis, array.shape, key)
        if place not in self._weights:
            try:
                grid = self._grid(array, axis)
            except ValueError as error:
                raise InvalidArgument(f"{node.place}: weight {value.name!r}: {error}") from error
            parts = {"quantized": grid.quantize(array), "scale": grid.scale, "zero_point": grid.zero_point}
            codes, scale, zero = (self.constant(f"{value.name}_{name}", part) for name, part in parts.items())
            self._weights[place] = codes, scale, zero
        return self._weights[place]

    def constant(self, name: str, array: Array) -> Value:
        """Add a constant."""
        return self._model.graph.add_initializer(Tensor.from_array(array), self._names.fresh(name))

    def value(self, name: str, like: Value | None = None) -> Value:
        """Make a value of a name that nobody has."""
        return Value(self._names.fresh(name), None if like is None else like.type)

    def node(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value],
        name: str,
        attributes: Mapping[str, Attribute | AttributeValue] | None = None,
        domain: str = "",
    ) -> Node:
        """Make a node."""
        if domain:
            self._model.opset_imports.setdefault(domain, 1)
        given = {key: item if isinstance(item, Attribute) else Attribute.of(item) for key, item in (attributes or {}).items()}
        version = self._model.opset_imports.get(domain, 1)
        return Node(kind, inputs, outputs, given, domain=domain, version=version, name=name)

    def replace(self, node: Node, made: Sequence[Node]) -> None:
        """Put nodes, which make the same values, in the place of one."""
        graph = self._model.graph
        for new in made:
            graph.insert_before(node, new)
        node.outputs = ()
        graph.remove(node)

    def grid_of(self, array: Array, axis: int | None) -> Grid:
        """Return the grid of weights."""
        return self._grid(array, axis)

    def sums(self, node: Node, kind: str, x: Value, weights: tuple[Value, Value, Value], scale: Value, result: Value) -> list[Node]:
        """Return nodes that compute a product of codes, and scale it to floats."""
        codes, x_scale, x_zero = self.activation(node, x)
        base = node.name or node.outputs[0].name
        whole = self.value(f"{node.outputs[0].name}_output_quantized")
        floats = self.value(f"{node.outputs[0].name}_output_quantized_cast_output")
        scales = self.value(f"{base}_quant_scales_mul:0")
        attributes = node.attributes if kind == "ConvInteger" else {}
        return [
            self.node(kind, [codes, weights[0], x_zero, weights[2]], [whole], f"{base}_quant", attributes),
            self.node("Cast", [whole], [floats], f"{base}_quant_cast", {"to": int(DataType.FLOAT)}),
            self.node("Mul", [x_scale, scale], [scales], f"{base}_quant_scales_mul"),
            self.node("Mul", [floats, scales], [result], f"{base}_quant_output_scale_mul"),
        ]


def _matmul(writer: _Writer, node: Node) -> None:
    x, w = node.inputs[0], node.inputs[1]
    array = writer.weights_of(w)
    if x is None or w is None or array is None or array.ndim < 1 or x.dtype is not DataType.FLOAT:
        return
    axis = array.ndim - 1 if writer.per_channel and array.ndim == 2 else None
    weights = writer.stored(node, w, array, axis)
    writer.replace(node, writer.sums(node, "MatMulInteger", x, weights, weights[1], node.outputs[0]))


def _gemm(writer: _Writer, node: Node) -> None:
    x, w = node.inputs[0], node.inputs[1]
    array, bias = writer.weights_of(w), node.input(2)
    beta = 1.0 if bias is None else node.number("beta", 1.0)
    is_plain = not node.integer("transA", 0) and node.number("alpha", 1.0) == 1.0 == beta
    if x is None or w is None or array is None or array.ndim != 2 or not is_plain or x.dtype is not DataType.FLOAT:
        return
    array = np.ascontiguousarray(array.T) if node.integer("transB", 0) else array
    weights = writer.stored(node, w, array, 1 if writer.per_channel else None)
    product = node.outputs[0] if bias is None else writer.value(f"{node.outputs[0].name}_MatMul", node.outputs[0])
    made = writer.sums(node, "MatMulInteger", x, weights, weights[1], product)
    if bias is not None:
        made.append(writer.node("Add", [product, bias], [node.outputs[0]], f"{node.name or node.outputs[0].name}_Add"))
    writer.replace(node, made)


def _conv(writer: _Writer, node: Node) -> None:
    x, w, bias = node.inputs[0], node.inputs[1], node.input(2)
    array = writer.weights_of(w)
    if x is None or w is None or array is None or array.ndim < 3 or x.dtype is not DataType.FLOAT:
        return
    codes, scale, zero = writer.stored(node, w, array, 0 if writer.per_channel else None)
    column = (1, -1, *(1 for _ in array.shape[2:]))
    scales, zeros = tensor_of(scale), tensor_of(zero)
    if scales is not None and zeros is not None and scales.shape:
        if zeros.numpy().any():  # onnxruntime takes one zero point only
            codes, scale, zero = writer.stored(node, w, array, None)
        else:
            zero = writer.constant(f"{w.name}_zero_point_0", np.zeros((), zeros.dtype.numpy))
            scale = writer.constant(f"{w.name}_scale_column", scales.numpy().reshape(column))
    weights = codes, scale, zero
    product = node.outputs[0] if bias is None else writer.value(f"{node.outputs[0].name}_product", node.outputs[0])
    made = writer.sums(node, "ConvInteger", x, weights, scale, product)
    if bias is not None:
        name = node.name or node.outputs[0].name
        shaped = writer.value(f"{name}_bias_reshape_output")
        shape = writer.constant(f"{name}_bias_reshape_shape", np.array(column, np.int64))
        made.append(writer.node("Reshape", [bias, shape], [shaped], f"{name}_bias_reshape"))
        made.append(writer.node("Add", [product, shaped], [node.outputs[0]], f"{name}_bias_add"))
    writer.replace(node, made)


def _lstm(writer: _Writer, node: Node) -> None:
    given = [(value, writer.weights_of(value)) for value in node.inputs[1:3]]
    weights = [(value, array) for value, array in given if value is not None and array is not None]
    if len(weights) < len(given) or node.integer("layout", 0):
        return
    stored = [_by_direction(writer, value, np.ascontiguousarray(array.transpose(0, 2, 1))) for value, array in weights]
    inputs = [node.inputs[0], stored[0][0], stored[1][0], *(node.input(place) for place in range(3, 8))]
    inputs += [stored[0][1], stored[0][2], stored[1][1], stored[1][2]]
    name = f"{node.name or node.outputs[0].name}_quant"
    kept = {key: item for key, item in node.attributes.items() if key != "layout"}
    writer.replace(node, [writer.node("DynamicQuantizeLSTM", inputs, node.outputs, name, kept, _MICROSOFT)])


def _by_direction(writer: _Writer, value: Value, array: Array) -> tuple[Value, Value, Value]:
    """Store weights (directions, rows, columns) with scales (directions,), or (directions, columns) by channel."""
    axis = 1 if writer.per_channel else None
    grids = [writer.grid_of(rows, axis) for rows in array]
    codes = np.stack([grid.quantize(rows) for grid, rows in zip(grids, array, strict=True)])
    scale, zero = np.stack([grid.scale for grid in grids]), np.stack([grid.zero_point for grid in grids])
    made = (("quantized", codes), ("scale", scale), ("zero_point", zero))
    first, second, third = (writer.constant(f"{value.name}_{name}", part) for name, part in made)
    return first, second, third


def _attention(writer: _Writer, node: Node) -> None:
    x, w, bias = node.inputs[0], node.inputs[1], node.input(2)
    array = writer.weights_of(w)
    extra = any(node.input(place) is not None for place in range(5, 7)) or "qkv_hidden_sizes" in node.attributes
    if x is None or w is None or bias is None or array is None or array.ndim != 2 or extra or x.dtype is not DataType.FLOAT:
        return
    weights = writer.stored(node, w, array, 1 if writer.per_channel else None)
    codes, scale, zero = writer.activation(node, x)
    inputs = [codes, weights[0], bias, scale, weights[1], node.input(3), zero, weights[2], node.input(4)]
    name = f"{node.name or node.outputs[0].name}_quant"
    writer.replace(node, [writer.node("QAttention", inputs, node.outputs, name, node.attributes, _MICROSOFT)])


def _gather(writer: _Writer, node: Node) -> None:
    table = node.inputs[0]
    array = writer.weights_of(table)
    if table is None or array is None or array.ndim < 1:
        return
    codes, scale, zero = writer.stored(node, table, array, None)
    result = node.outputs[0]
    picked = writer.value(f"{result.name}_quantized")
    name = node.name or result.name
    made = [
        writer.node("Gather", [codes, node.inputs[1]], [picked], f"{name}_quant", node.attributes),
        writer.node("DequantizeLinear", [picked, scale, zero], [result], f"{result.name}_DequantizeLinear"),
    ]
    writer.replace(node, made)


def _embed(writer: _Writer, node: Node) -> None:
    given = [node.input(place) for place in _EMBEDDED]
    arrays = [writer.weights_of(value) for value in given]
    asked = [place for place in _EMBEDDED if place != _SEGMENTS or node.input(place) is not None]
    lacks = any(writer.weights_of(node.input(place)) is None for place in asked)
    if lacks or len(node.outputs) > 2 or node.input(_POSITIONS) is not None:
        return
    parts: list[list[Value | None]] = [[], [], []]
    for value, array in zip(given, arrays, strict=True):
        made: tuple[Value | None, ...] = (None, None, None)
        if value is not None and array is not None:
            try:
                grid = grid_of_weights(array, DataType.UINT8, symmetric=False)
            except ValueError as error:
                raise InvalidArgument(f"{node.place}: weight {value.name!r}: {error}") from error
            named = {"quantized": grid.quantize(array), "scale": grid.scale, "zero_point": grid.zero_point}
            made = tuple(writer.constant(f"{value.name}_{name}", part) for name, part in named.items())
        for column, part in zip(parts, made, strict=True):
            column.append(part)
    inputs = [node.inputs[0], node.inputs[1], *parts[0], node.input(_MASK), *parts[1], *parts[2]]
    name = f"{node.name or node.outputs[0].name}_quant"
    kept = {key: item for key, item in node.attributes.items() if key == "epsilon"}
    writer.replace(node, [writer.node("QEmbedLayerNormalization", inputs, node.outputs, name, kept, _MICROSOFT)])


def _leave(_writer: _Writer, _node: Node) -> None:
    """Leave a node as it is."""


_REWRITES: Mapping[tuple[str, str], Callable[[_Writer, Node], None]] = {
    ("", "MatMul"): _matmul,
    ("", "Gemm"): _gemm,
    ("", "Conv"): _conv,
    ("", "LSTM"): _lstm,
    ("", "Gather"): _gather,
    ("", "Transpose"): _leave,
    (_MICROSOFT, "Attention"): _attention,
    (_MICROSOFT, "EmbedLayerNormalization"): _embed,
}
OPERATORS = tuple(dict.fromkeys(name for _, name in _REWRITES))
"""The operators that can be quantized so."""
