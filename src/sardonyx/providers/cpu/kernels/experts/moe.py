"""MoE and QMoE of com.microsoft: each token goes through the k experts that its router likes best.

Dimension letters: T tokens, C hidden size, E experts, I inner size of an expert, k chosen experts of a token; R = T k rows.

    choose ─► group ─► spread ─► product with fc1, and fc3 beside it ─► gates ─► product with fc2 ─► collect

The rows of one expert lie together, so that its weights are read once for all of them, and those of experts that nobody chose
not at all. Weights of few bits are decoded as they are multiplied. Each token is computed as it is alone.
"""

from __future__ import annotations

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import U8
from sardonyx.codegen.float_words import float_word
from sardonyx.codegen.kernels.experts.gates import ACTIVATIONS, SWIGLU, write_gates
from sardonyx.codegen.kernels.experts.routing import write_choose, write_collect, write_group, write_spread
from sardonyx.codegen.kernels.gemm import WIDE, tiling, write_gemm
from sardonyx.codegen.kernels.gemm_params import GemmParams
from sardonyx.codegen.kernels.panels import BlockPanels, NarrowPanels, Panels
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.ir import Dim, Node, Value
from sardonyx.ir.shape import product
from sardonyx.ops.schema import place_of
from sardonyx.providers.cpu.claims import lowers
from sardonyx.providers.cpu.expressions import element_type
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.kernels.experts.weights import PER_ROW, Numbers, ordered, pack_numbers, pack_plain
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import given, shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer

_MICROSOFT = "com.microsoft"
_X, _ROUTER, _MIXING = 0, 1, 14
_PLAIN = ((2, None, 3, None), (4, None, 5, None), (6, None, 7, None))
_QUANTIZED = ((2, 3, 4, 11), (5, 6, 7, 12), (8, 9, 10, 13))
"""Of fc1, fc2 and fc3: the inputs of weights, scales, bias and zero points."""
_LAYERS = ("fc1", "fc2", "fc3")
_ONE_BEHIND_ANOTHER, _ALTERNATING = 2, 1
"""How `swiglu_fusion` says that fc1 holds both halves."""
_WIDTHS = (2, 4, 8)
_LEAST_BLOCK = 16


@dataclasses.dataclass(frozen=True, slots=True)
class LayerSpec:
    """One product of all experts."""

    inputs: tuple[int, int | None, int, int | None]
    """The inputs of weights, scales, bias and zero points."""
    rows: int
    """Elements that it makes."""
    K: int
    """Elements that it reads."""
    panels: BlockPanels | None
    """How weights of few bits are stored; None for floats."""
    blocks: int
    """Scales of a row of weights."""


@dataclasses.dataclass(frozen=True, slots=True)
class MoESpec:
    """A mixture of experts."""

    E: int
    """Experts."""
    k: int
    """How many of them a token goes through."""
    is_normalized: bool
    """Whether the shares of a token are divided by their sum."""
    is_mixed: bool
    """Whether the shares are an input."""
    activation: str
    """What stands between the products."""
    numbers: tuple[float, float, float]
    """Alpha, beta and limit of SwiGLU."""
    alternates: bool
    """Whether rows of fc1 are of the gate and of the linear half in turn."""
    first: LayerSpec
    """Fc1."""
    second: LayerSpec
    """Fc2."""
    linear: LayerSpec | None
    """Fc3."""
    is_gated: bool
    """Whether what fc1 and fc3 make has two halves."""


def claim(node: Node) -> MoESpec | str:
    """Return what a MoE or QMoE computes, or why it cannot be compiled."""
    is_quantized = node.op_type == "QMoE"
    inputs = _QUANTIZED if is_quantized else _PLAIN
    mixing = node.input(_MIXING) if is_quantized else None
    for value in (node.inputs[_X], node.inputs[_ROUTER], mixing, *node.outputs):
        if value is not None and value.dtype is not DataType.FLOAT:
            return f"elements of type {value.dtype}"
    if is_quantized and (node.text("quant_type", "int") != "int" or node.integer("weights_prepacked", -1) == 1):
        return f"weights of type {node.text('quant_type', 'int')}, or packed before"
    layers: list[LayerSpec | None] = []
    for name, places in zip(_LAYERS, inputs, strict=True):
        layer = _layer(node, name, places, is_quantized) if node.input(places[0]) is not None else None
        if isinstance(layer, str):
            return layer
        layers.append(layer)
    first, second, linear = layers
    if first is None or second is None:
        return "fc1 or fc2 is left out"
    experts = {shape_of(node.inputs[places[0]])[0] for places, layer in zip(inputs, layers, strict=True) if layer is not None}
    router, k = shape_of(node.inputs[_ROUTER]), node.integer("k", 1)
    E = router[-1] if len(router) == 2 else None
    if not isinstance(E, int) or experts != {E} or not 1 <= k <= E:
        return f"{k} of the experts of a router of shape {router}"
    activation, fusion = node.text("activation_type", "relu"), node.integer("swiglu_fusion", 0)
    if activation != SWIGLU and activation not in ACTIVATIONS:
        return f"activation_type {activation!r}"
    is_fused = activation == SWIGLU and fusion in (_ALTERNATING, _ONE_BEHIND_ANOTHER)
    if activation == SWIGLU and (linear is None) != is_fused:
        return f"swiglu_fusion {fusion} with {'no ' if linear is None else ''}fc3"
    problem = _problem_of(node, first, second, linear, is_fused=is_fused)
    if problem is not None:
        return problem
    limit = node.number("swiglu_limit")
    numbers = (node.number("activation_alpha", 1.0), node.number("activation_beta", 0.0), float("inf") if limit is None else limit)
    return MoESpec(
        E,
        k,
        node.flag("normalize_routing_weights"),
        mixing is not None,
        activation,
        numbers,
        is_fused and fusion == _ALTERNATING,
        first,
        second,
        linear,
        is_fused or linear is not None,
    )


def _layer(node: Node, name: str, places: tuple[int, int | None, int, int | None], is_quantized: bool) -> LayerSpec | str:
    """Return one product of all experts, or why it cannot be compiled."""
    weights, bias = given(node.inputs[places[0]]), node.input(places[2])
    shape = _constant_shape(weights)
    if shape is None or len(shape) != 3:
        return f"the weights of {name} are no constant of three dimensions"
    E, rows, columns = shape
    if bias is not None and (_constant_shape(bias) != (E, rows) or bias.dtype is not DataType.FLOAT):
        return f"the bias of {name} is no constant of {E} x {rows} elements of float32"
    if not is_quantized:
        return (
            f"weights of type {weights.dtype}" if weights.dtype is not DataType.FLOAT else LayerSpec(places, rows, columns, None, 1)
        )
    return _few_bits(node, name, places, shape)


def _few_bits(node: Node, name: str, places: tuple[int, int | None, int, int | None], shape: tuple[int, ...]) -> LayerSpec | str:
    """Return a product with weights of few bits, or why it cannot be compiled."""
    bits, size = (
        node.integer(f"{name}_expert_weight_bits", 0) or node.integer("expert_weight_bits", 4),
        node.integer("block_size", 0),
    )
    E, rows, row_bytes = shape
    if bits not in _WIDTHS or given(node.inputs[places[0]]).dtype is not DataType.UINT8:
        return f"weights of {bits} bits in {given(node.inputs[places[0]]).dtype}"
    K = row_bytes * 8 // bits
    if size > 0 and (size < _LEAST_BLOCK or size & (size - 1) or K % size):
        return f"rows of {K} weights in blocks of {size}"
    blocks = K // size if size > 0 else 1
    scales, zeros = (None if place is None else node.input(place) for place in (places[1], places[3]))
    if scales is None or scales.dtype not in (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16):
        return f"the scales of {name} are no floats"
    if _constant_shape(scales) not in ({(E, rows, blocks)} | ({(E, rows)} if blocks == 1 else set())):
        return f"the scales of {name} are no constant of {E} x {rows} x {blocks} elements"
    packed = {(E, rows, -(-blocks * bits // 8))} | ({(E, -(-rows * bits // 8))} if blocks == 1 else set())
    if zeros is not None and (zeros.dtype is not DataType.UINT8 or _constant_shape(zeros) not in packed):
        return f"the zero points of {name} are no constant that {bits} bits for {E} x {rows} x {blocks} numbers make"
    return LayerSpec(places, rows, K, BlockPanels(bits, size if size > 0 else PER_ROW, None if zeros is None else U8), blocks)


def _constant_shape(value: Value) -> tuple[int, ...] | None:
    return None if value.constant is None else value.constant.shape


def _problem_of(node: Node, first: LayerSpec, second: LayerSpec, linear: LayerSpec | None, *, is_fused: bool) -> str | None:
    """Return why the layers do not fit one another or the input."""
    x, router = shape_of(node.inputs[_X]), shape_of(node.inputs[_ROUTER])
    inner = first.rows // 2 if is_fused else first.rows
    if len(x) not in (2, 3) or x[-1] != first.K or second.rows != first.K:
        return f"an input of shape {x} for experts that read {first.K} and make {second.rows} elements"
    if inner != second.K or first.rows != inner * (2 if is_fused else 1):
        return f"fc2 reads {second.K} elements, and fc1 makes {first.rows}"
    if linear is not None and (linear.rows, linear.K, linear.panels, linear.blocks) != (
        first.rows,
        first.K,
        first.panels,
        first.blocks,
    ):
        return "fc1 and fc3 differ in shape or bits"
    if linear is not None and (node.input(linear.inputs[2]) is None) != (node.input(first.inputs[2]) is None):
        return "one of fc1 and fc3 has a bias"
    mixing = node.input(_MIXING) if node.op_type == "QMoE" else None
    if mixing is not None and shape_of(mixing) != router:
        return f"router_weights of shape {mixing.shape} for a router of shape {router}"
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class ChooseExpertsKernel:
    """Which experts are chosen."""

    is_normalized: bool
    """Whether shares are divided by their sum."""
    is_mixed: bool
    """Whether shares are an input."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"choose_experts{'_normalized' * self.is_normalized}{'_mixed' * self.is_mixed}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_choose(module, symbol, is_normalized=self.is_normalized, is_mixed=self.is_mixed)


@dataclasses.dataclass(frozen=True, slots=True)
class GroupRowsKernel:
    """Where the rows of each expert lie."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"group_rows_of_experts_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_group(module, symbol)


@dataclasses.dataclass(frozen=True, slots=True)
class SpreadTokensKernel:
    """Copies of tokens for their experts."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"spread_tokens_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_spread(module, symbol)


@dataclasses.dataclass(frozen=True, slots=True)
class ExpertProductKernel:
    """Products of the rows of each expert with its weights."""

    panels: Panels
    """How the weights are stored."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        name = "_".join(part for part in ("gemm_of_experts_f32", self.panels.name, tiling(target).name) if part)
        return f"{name}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_gemm(module, symbol, None, self.panels, is_grouped=True)


@dataclasses.dataclass(frozen=True, slots=True)
class ExpertGatesKernel:
    """What stands between the products."""

    activation: str
    """Which."""
    is_gated: bool
    """Whether there is a factor beside."""
    has_bias: bool
    """Whether a bias is added first."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"expert_{self.activation}{'_gated' * self.is_gated}{'_bias' * self.has_bias}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_gates(module, symbol, self.activation, is_gated=self.is_gated, has_bias=self.has_bias)


@dataclasses.dataclass(frozen=True, slots=True)
class CollectExpertsKernel:
    """The sum of what the experts of a token made."""

    has_bias: bool
    """Whether a bias is added to it."""

    def symbol(self, target: Target) -> str:
        """Return its name."""
        return f"collect_experts{'_bias' * self.has_bias}_{target.isa}"

    def write(self, module: Module, symbol: str) -> None:
        """Write it."""
        write_collect(module, symbol, has_bias=self.has_bias)


@lowers("MoE", claim=claim, domain=_MICROSOFT, inputs=3)
@lowers("QMoE", claim=claim, domain=_MICROSOFT, inputs=3)
def mixture_of_experts(low: Lowering, group: Group, spec: MoESpec) -> None:
    """Choose, group, multiply, and collect."""
    node, x = group.node, low.of(group.node.inputs[_X])
    tokens, k, C, inner = product(x.shape[:-1]), spec.k, spec.first.K, spec.second.K
    rows = product((*x.shape[:-1], k))
    chosen, shares = _choose(low, group, spec, tokens)
    offsets, places = low.temporary(DataType.INT64, (spec.E + 1,)), low.temporary(DataType.INT64, (rows,))
    owners = low.temporary(DataType.INT32, (rows,))

    def plan_tokens(sizes: Sizes) -> tuple[list[int], int]:
        return [C, k], sizes(tokens)

    grouped = [chosen, offsets, places, owners]
    low.step(group, low.kernel(GroupRowsKernel()), grouped, writes=[1, 2, 3], plan=lambda sizes: ([sizes(rows), spec.E], 1))
    spread = low.temporary(DataType.FLOAT, (rows, C))
    low.step(group, low.kernel(SpreadTokensKernel()), [x, places, spread], writes=[2], plan=plan_tokens)
    hidden = _multiply(low, group, spread, offsets, spec.first, spec.linear, spec, tokens)
    bias = _bias(low, node, spec.first, spec.linear, spec.alternates)
    gated = low.temporary(DataType.FLOAT, (rows, inner))
    gates = ExpertGatesKernel(spec.activation, spec.is_gated, bool(bias))
    words = [inner, *map(float_word, spec.numbers)]
    low.step(group, low.kernel(gates), [hidden, owners, gated, *bias], writes=[2], plan=lambda sizes: (words, sizes(rows)))
    found = _multiply(low, group, gated, offsets, spec.second, None, spec, tokens)
    bias = _bias(low, node, spec.second, None, False)
    collected = [found, places, chosen, shares, low.result(node.output), *bias]
    low.step(group, low.kernel(CollectExpertsKernel(bool(bias))), collected, writes=[4], plan=plan_tokens)


def _choose(low: Lowering, group: Group, spec: MoESpec, tokens: Dim) -> tuple[Buffer, Buffer]:
    """Return the chosen experts of each token, and their shares."""
    node, E, k = group.node, spec.E, spec.k
    router = low.of(node.inputs[_ROUTER])
    chosen, shares = low.temporary(DataType.INT32, (tokens, k)), low.temporary(DataType.FLOAT, (tokens, k))
    keys = low.temporary(DataType.INT32, (tokens, E))
    mixing = [low.of(node.inputs[_MIXING])] if spec.is_mixed else []

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        count = sizes(tokens)
        if sizes(router.shape[0]) != count:
            found = sizes.shape(router.shape)
            raise InvalidArgument(f"{place_of(node)}: router_probs has shape {found}; expected a row for each of {count} tokens")
        return [E, k], count

    symbol = low.kernel(ChooseExpertsKernel(spec.is_normalized, spec.is_mixed))
    low.step(group, symbol, [router, chosen, shares, keys, *mixing], writes=[1, 2, 3], plan=plan)
    return chosen, shares


def _multiply(
    low: Lowering,
    group: Group,
    left: Buffer,
    offsets: Buffer,
    layer: LayerSpec,
    linear: LayerSpec | None,
    spec: MoESpec,
    tokens: Dim,
) -> Buffer:
    """Return the products of rows with the weights of their experts."""
    node, target, width = group.node, low.target, tiling(low.target).panel
    source, other = node.inputs[layer.inputs[0]], None if linear is None else node.input(linear.inputs[0])
    alternates = spec.alternates and layer is spec.first
    weights = given(source).constant
    if layer.panels is None:
        packed = low.packed(pack_plain, weights, other, alternates, width, of=source)
        kind = element_type(packed.dtype)
        panels: Panels = WIDE if kind is None or not kind.is_narrow else NarrowPanels(kind)
    else:
        panels, parts = layer.panels, [None if part is None else _numbers(node, part) for part in (layer, linear)]
        packed = low.packed(pack_numbers, weights, panels, *parts, alternates, layer.blocks, width, of=source)
    across = layer.rows + (0 if linear is None else linear.rows)
    result = low.temporary(DataType.FLOAT, (left.shape[0], across))
    matrix = product(packed.shape[1:])

    def plan(sizes: Sizes) -> tuple[list[int], int]:
        most = sizes(tokens)
        params = GemmParams.blocked(
            target, most, across, layer.K, threads=low.threads, is_decoded=panels.is_decoded, stride_b=sizes(matrix)
        )
        return params.words(), params.tasks(spec.E) if most else 0

    low.step(group, low.kernel(ExpertProductKernel(panels)), [left, packed, result, offsets], writes=[2], plan=plan)
    return result


def _numbers(node: Node, layer: LayerSpec) -> Numbers:
    weights, scales, _, zeros = layer.inputs
    return Numbers(*(None if place is None else node.input(place) for place in (weights, scales, zeros)))


def _bias(low: Lowering, node: Node, layer: LayerSpec, linear: LayerSpec | None, alternates: bool) -> list[Buffer]:
    """Return the biases of a product, with those of fc3 behind; nothing where there are none."""
    bias, other = node.input(layer.inputs[2]), None if linear is None else node.input(linear.inputs[2])
    if bias is None:
        return []
    if other is None and not alternates:
        return [low.of(bias)]
    return [low.packed(_ordered_bias, bias, other, alternates, of=bias)]


def _ordered_bias(bias: Value, linear: Value | None, alternates: bool) -> Array:
    return ordered(_elements(bias), None if linear is None else _elements(linear), alternates=alternates)


def _elements(value: Value) -> Array:
    if value.constant is None:
        raise ValueError(f"{value!r} is no constant")
    return value.constant.numpy()
