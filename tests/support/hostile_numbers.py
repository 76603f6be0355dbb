"""Small models with hostile numbers: shapes, counts, sizes and steps for which no machine has the memory or the time.

Each case is the inputs and nodes of a graph in the text form, and what is fed. Some are valid all the same, and run at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from sardonyx.formats.onnx import to_bytes
from sardonyx.ir.text import parse_model

__all__ = ["CASES", "HostileCase"]

HUGE, MANY, LAST = 1 << 40, 1 << 20, (1 << 63) - 1
"""More than there is; what is too much twice; the last int64."""
_TYPES: dict[str, Any] = {"int64": np.int64, "float": np.float32, "string": object, "uint8": np.uint8}
_HEADER = "ir_version 10 opset 25, com.microsoft 1, ai.onnx.ml 3"


@dataclasses.dataclass(frozen=True)
class HostileCase:
    """Nodes, with what they get."""

    inputs: str
    """The graph's inputs in the text form."""
    nodes: str
    """The nodes, which make y."""
    feed: dict[str, Any]
    """Numbers and lists of them by input name."""

    def __str__(self) -> str:
        return f"{self.nodes} of {self.feed}"

    def arrays(self) -> dict[str, Any]:
        """What is fed, of the types that the inputs declare."""
        kinds = dict(part.split(": ") for part in self.inputs.split(", ") if ": " in part)
        return {name: np.array(value, _TYPES[kinds[name].partition("[")[0]]) for name, value in self.feed.items()}

    def model(self, *, constant: bool) -> Any:
        """The ModelProto, whose nodes have names; with `constant` what would be fed is in the file, strings aside."""
        text = f"{_HEADER} graph main({self.inputs}) -> (y) {{ {self.nodes} }}"
        model = onnx.ModelProto.FromString(to_bytes(parse_model(text)))
        for index, node in enumerate(model.graph.node):
            node.name = f"the node {index}"
        if constant:
            arrays = {name: array for name, array in self.arrays().items() if array.dtype != object}
            model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
            kept = [item for item in model.graph.input if item.name not in arrays]
            del model.graph.input[:]
            model.graph.input.extend(kept)
        return model


_X1, _X4, _IMAGE = [1.0], [1.0] * 4, [[[[1.0] * 4] * 4]]
_SQUARE = [[1.0, 1.0], [1.0, 1.0]]
_FOUR, _OF_IMAGE = "x: float[4]", "x: float[1, 1, 4, 4]".replace(", ", ",")
_VECTOR = "z: int64[] = [0] o: int64[] = [1] a: int64[1] = [1] b: int64[1] = [0] r = Range(z, n, o)"
_OUTER = f"{_VECTOR} u = Unsqueeze(r, a) v = Unsqueeze(r, b)"
_FLOAT_OUTER = f"{_VECTOR} f = Cast(r) {{to = 1}} u = Unsqueeze(f, a) v = Unsqueeze(f, b)"


def _shapes() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for shape in ([HUGE], [MANY, MANY], [1 << 62, 8], [-1]):
        rank = len(shape)
        yield f"x: int64[{rank}]", "y = ConstantOfShape(x)", {"x": shape}
        yield f"x: float[1], s: int64[{rank}]", "y = Expand(x, s)", {"x": _X1, "s": shape}
        yield f"x: float[4], s: int64[{rank}]", "y = Reshape(x, s)", {"x": _X4, "s": shape}
        for name in ("RandomNormal", "RandomUniform"):
            yield "", f"y = {name}() {{shape = [{', '.join(map(str, shape))}]}}", {}
    yield "x: float[4], s: int64[1]", "y = Tile(x, s)", {"x": _X4, "s": [HUGE]}
    yield "x: float[2,2], s: int64[2]", "y = Tile(x, s)", {"x": _SQUARE, "s": [MANY, MANY]}
    yield "x: float[2,2], s: int64[2]", "y = CenterCropPad(x, s)", {"x": _SQUARE, "s": [MANY, MANY]}
    yield "x: float[1,2,3], s: int64[4]", "y = AffineGrid(x, s)", {"x": [[[1] * 3] * 2], "s": [1, 1, MANY, MANY]}
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield "x: float[4], s: int64[2]", f'y = Pad(x, s) {{mode = "{mode}"}}', {"x": _X4, "s": [0, HUGE]}
    yield "x: float[4], s: int64[2]", "y = com.microsoft.Pad(x, s)", {"x": _X4, "s": [0, HUGE]}
    for mode in ("nearest", "linear", "cubic"):
        for sizes in ([1, 1, MANY, MANY], [1, 1, 4, HUGE], [1, 1, -1, 4]):
            feed = {"x": _IMAGE, "s": sizes}
            yield f"{_OF_IMAGE}, s: int64[4]", f'y = Resize(x, _, _, s) {{mode = "{mode}"}}', feed
        for scale in (1e12, 1e30, float("inf"), float("nan"), -1.0, 0.0):
            feed = {"x": _IMAGE, "s": [1, 1, 1, scale]}
            yield f"{_OF_IMAGE}, s: float[4]", f'y = Resize(x, _, s) {{mode = "{mode}"}}', feed
    feed = {"x": _IMAGE, "s": [1, 1, 1, 1e-20]}
    yield f"{_OF_IMAGE}, s: float[4]", 'y = Resize(x, _, s) {mode = "cubic", antialias = 1}', feed
    for image, block in ([MANY, MANY], [2, 2]), ([3, 3], [MANY, MANY]):
        feed = {"x": [[[1] * 4] * 4], "i": image, "b": block}
        yield "x: float[1,4,4], i: int64[2], b: int64[2]", "y = Col2Im(x, i, b)", feed


def _ranges() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for start, limit, delta in (0, HUGE, 1), (-LAST - 1, LAST, 1), (0, 5, 0):
        feed = {"a": start, "b": limit, "c": delta}
        yield "a: int64[], b: int64[], c: int64[]", "y = Range(a, b, c)", feed
        yield "a: int64[], b: int64[], c: int64[]", "y = com.microsoft.Range(a, b, c)", feed
    for limit, step in (1, 1e-20), (float("inf"), 1), (5, float("nan")), (float("nan"), 1):
        yield "a: float[], b: float[], c: float[]", "y = Range(a, b, c)", {"a": 0, "b": limit, "c": step}
    for name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for size in (HUGE, -1, LAST):
            yield "n: int64[]", f"y = {name}(n)", {"n": size}
    for bins, length, rate, high in (
        (HUGE, 16, 8000, 4000),
        (8, HUGE, 8000, 4000),
        (MANY, MANY, 8000, 4000),
        (8, 16, 0, 4000),
        (8, 16, 8000, 1e30),
        (8, 16, 1, -1e30),
    ):
        feed = {"a": bins, "b": length, "c": rate, "d": 0, "e": high}
        yield "a: int64[], b: int64[], c: int64[], d: float[], e: float[]", "y = MelWeightMatrix(a, b, c, d, e)", feed
    for step, length in (1, HUGE), (0, 2), (-1, 2):
        yield "x: float[1,8,1], s: int64[], f: int64[]", "y = STFT(x, s, _, f)", {"x": [[[1]] * 8], "s": step, "f": length}
    for length, axis in (HUGE, 1), (-1, 1), (8, HUGE):
        yield "x: float[1,8,1], n: int64[], a: int64[]", "y = DFT(x, n, a)", {"x": [[[1]] * 8], "n": length, "a": axis}


def _counts() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for depth in (HUGE, -5):
        feed = {"x": [1], "d": depth, "v": [0, 1]}
        yield "x: int64[1], d: int64[], v: float[2]", "y = OneHot(x, d, v)", feed
    for count in (HUGE, -1, LAST):
        yield f"{_FOUR}, k: int64[1]", "y, z = TopK(x, k)", {"x": _X4, "k": [count]}
    for split in (HUGE, 0, -1):
        yield f"{_FOUR}, s: int64[]", "y = SplitToSequence(x, s)", {"x": _X4, "s": split}
    yield f"{_FOUR}, s: int64[2]", "y, z = Split(x, s)", {"x": _X4, "s": [HUGE, 4 - HUGE]}
    yield _FOUR, f"y, z = Split(x) {{num_outputs = {HUGE}}}", {"x": _X4}
    for count in (HUGE, -1):
        yield "x: float[1,4]", f"y = Multinomial(x) {{sample_size = {count}}}", {"x": [_X4]}
    boxes = {"b": [[[0, 0, 1, 1]] * 2], "s": [[[1, 1]]], "m": [HUGE]}
    yield "b: float[1,2,4], s: float[1,1,2], m: int64[1]", "y = NonMaxSuppression(b, s, m)", boxes
    yield "x: string[1]", f"y, z = StringSplit(x) {{maxsplit = {HUGE}}}", {"x": ["a b"]}
    for size, step in (HUGE, 1), (2, 0), (2, HUGE):
        yield "x: float[1,1,4]", f"y = com.microsoft.UnfoldTensor(x) {{size = {size}, step = {step}}}", {"x": [[_X4]]}


def _windows() -> Iterator[tuple[str, str, dict[str, Any]]]:
    kernel = {"x": _IMAGE, "w": [[[[1] * 2] * 2]]}
    frame, far = f"pads = [{MANY}, {MANY}, {MANY}, {MANY}]", f"pads = [{HUGE}, 0, 0, 0]"
    common = (frame, far, f"strides = [{HUGE}, 1]", f"dilations = [{HUGE}, 1]")
    for attribute in (*common, f"group = {HUGE}", f"kernel_shape = [{HUGE}, 2]"):
        yield f"{_OF_IMAGE}, w: float[1,1,2,2]", f"y = Conv(x, w) {{{attribute}}}", kernel
    for attribute in (
        *common,
        f"pads = [-{HUGE}, 0, 0, 0]",
        f"output_shape = [{MANY}, {MANY}]",
        f"strides = [{MANY}, {MANY}]",
        f"output_padding = [{HUGE}, 0]",
        f"group = {HUGE}",
    ):
        yield f"{_OF_IMAGE}, w: float[1,1,2,2]", f"y = ConvTranspose(x, w) {{{attribute}}}", kernel
    for name in ("MaxPool", "AveragePool", "LpPool"):
        for attribute in common:
            yield _OF_IMAGE, f"y = {name}(x) {{kernel_shape = [2, 2], {attribute}}}", {"x": _IMAGE}
        for size, pad in (MANY, MANY // 2), (HUGE, HUGE // 2), (MANY, 0):
            attributes = f"kernel_shape = [{size}, {size}], pads = [{pad}, {pad}, {pad}, {pad}]"
            yield _OF_IMAGE, f"y = {name}(x) {{{attributes}}}", {"x": _IMAGE}
    maxima = "x: float[1,1,2,2], i: int64[1,1,2,2]"
    ones = [[[[1] * 2] * 2]]
    unpool = {"x": ones, "i": ones, "s": [1, 1, MANY, MANY]}
    yield f"{maxima}, s: int64[4]", "y = MaxUnpool(x, i, s) {kernel_shape = [2, 2], strides = [2, 2]}", unpool
    for size, place in (MANY, 1), (2, HUGE):
        feed = {"x": ones, "i": [[[[place] * 2] * 2]]}
        yield maxima, f"y = MaxUnpool(x, i) {{kernel_shape = [{size}, {size}], strides = [{size}, {size}]}}", feed
    yield "x: float[1,4,4,4]", f"y = LRN(x) {{size = {HUGE}}}", {"x": [[[[1] * 4] * 4] * 4]}
    for name, size in ("DepthToSpace", HUGE), ("SpaceToDepth", 0):
        yield "x: float[1,4,4,4]", f"y = {name}(x) {{blocksize = {size}}}", {"x": [[[[1] * 4] * 4] * 4]}


def _regions() -> Iterator[tuple[str, str, dict[str, Any]]]:
    align = f"{_OF_IMAGE}, r: float[1,4], b: int64[1]"
    for attribute in (
        f"output_height = {MANY}, output_width = {MANY}",
        f"sampling_ratio = {MANY}",
        f"sampling_ratio = {HUGE}",
        "output_height = -1",
        "spatial_scale = 1e20",
    ):
        yield align, f"y = RoiAlign(x, r, b) {{{attribute}}}", {"x": _IMAGE, "r": [[0, 0, 2, 2]], "b": [0]}
    for region, image in ([0, 0, 1e15, 1e15], 0), ([0, 0, float("nan"), float("inf")], 0), ([0, 0, 1, 1], HUGE):
        yield align, "y = RoiAlign(x, r, b)", {"x": _IMAGE, "r": [region], "b": [image]}
    pool = f"{_OF_IMAGE}, r: float[1,5]"
    for size, region in (MANY, [0, 0, 0, 2, 2]), (2, [1e30, 0, 0, 1e30, 1e30]), (2, [0, 0, 0, 1e30, float("nan")]):
        yield pool, f"y = MaxRoiPool(x, r) {{pooled_shape = [{size}, {size}]}}", {"x": _IMAGE, "r": [region]}
    far = {"x": _SQUARE, "g": [[[[1e30, float("nan")]]]]}
    yield "x: float[2,2], g: float[1,1,1,2]", "i: int64[2] = [0, 1] u = Unsqueeze(x, i) y = GridSample(u, g)", far


def _places() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for start, end, axis, step in (
        (-LAST - 1, LAST, 0, 1),
        (LAST, -LAST - 1, 0, -1),
        (0, 4, 0, LAST),
        (4, -5, 0, -LAST - 1),
        (0, 4, 0, 0),
        (0, 4, HUGE, 1),
    ):
        feed = {"x": _X4, "b": [start], "e": [end], "a": [axis], "t": [step]}
        yield f"{_FOUR}, b: int64[1], e: int64[1], a: int64[1], t: int64[1]", "y = Slice(x, b, e, a, t)", feed
    for axis in (HUGE, -HUGE):
        yield f"{_FOUR}, a: int64[1]", "y = Unsqueeze(x, a)", {"x": _X4, "a": [axis]}
        yield f"{_FOUR}, a: int64[1]", "y = Squeeze(x, a)", {"x": _X4, "a": [axis]}
        yield f"{_FOUR}, a: int64[1]", "y = ReduceSum(x, a)", {"x": _X4, "a": [axis]}
        yield f"{_FOUR}, a: int64[]", "y = CumSum(x, a)", {"x": _X4, "a": axis}
        yield _FOUR, f"y = Softmax(x) {{axis = {axis}}}", {"x": _X4}
        yield _FOUR, f"y = Concat(x, x) {{axis = {axis}}}", {"x": _X4}
        yield _FOUR, f"y = Transpose(x) {{perm = [{axis}]}}", {"x": _X4}
        yield _FOUR, f"y = Cast(x) {{to = {axis}}}", {"x": _X4}
        yield f"{_FOUR}, i: int64[1]", "y = Gather(x, i)", {"x": _X4, "i": [axis]}
        yield f"{_FOUR}, i: int64[1,1], u: float[1]", "y = ScatterND(x, i, u)", {"x": _X4, "i": [[axis]], "u": [1]}
        yield f"{_FOUR}, i: int64[1], u: float[1]", "y = ScatterElements(x, i, u)", {"x": _X4, "i": [axis], "u": [1]}
        yield "x: float[2,2], l: int64[2]", "y = ReverseSequence(x, l)", {"x": _SQUARE, "l": [axis, 1]}
    for diagonal in (LAST, -LAST - 1):
        yield "x: float[2,2], k: int64[]", "y = Trilu(x, k)", {"x": _SQUARE, "k": diagonal}
        yield "x: float[2,2]", f"y = EyeLike(x) {{k = {diagonal}}}", {"x": _SQUARE}


def _products() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A vector of 2^20 elements with itself."""
    for name in "Add And BitShift BitwiseAnd Div Equal Max MatMul Mean Mod Mul Pow Sum".split():
        attributes = ' {direction = "LEFT"}' if name == "BitShift" else ""
        yield "n: int64[]", f"{_OUTER} y = {name}(u, v){attributes}", {"n": MANY}
    for call in (
        "Add(u, v)",
        "Div(u, v)",
        "Gemm(u, v)",
        "Greater(u, v)",
        "MatMul(u, v)",
        "Mean(u, v)",
        "PRelu(u, v)",
        "Sum(u, v)",
        'Einsum(u, v) {equation = "ab,bc->ac"}',
        "com.microsoft.CDist(u, u)",
        "com.microsoft.FusedMatMul(u, v)",
    ):
        yield "n: int64[]", f"{_FLOAT_OUTER} y = {call}", {"n": MANY}
    yield "n: int64[]", f"{_OUTER} c = Less(u, z) y = Where(c, u, v)", {"n": MANY}
    yield "n: int64[]", f"{_VECTOR} u = Unsqueeze(r, b) i = Mul(r, z) y = Gather(u, i)", {"n": MANY}
    yield "n: int64[]", f"{_VECTOR} u = Unsqueeze(r, b) k = Mul(r, z) i = Unsqueeze(k, a) y = GatherND(u, i)", {"n": MANY}
    yield "n: int64[]", f"{_VECTOR} v: float[2] = [0, 1] y = OneHot(r, n, v)", {"n": MANY}


def _learned() -> Iterator[tuple[str, str, dict[str, Any]]]:
    row = {"x": [[1.0, 2.0]]}
    yield "x: float[1,2]", f"y = ai.onnx.ml.FeatureVectorizer(x) {{inputdimensions = [{HUGE}]}}", row
    yield "x: float[1,2]", f"y = ai.onnx.ml.LinearRegressor(x) {{coefficients = [1, 1], targets = {HUGE}}}", row
    machine = f"coefficients = [1], n_supports = {HUGE}, rho = [0], support_vectors = [1, 1]"
    yield "x: float[1,2]", f"y = ai.onnx.ml.SVMRegressor(x) {{{machine}}}", row
    for nodes in (
        {"n_targets": HUGE},
        {"modes": ["BRANCH_LEQ"]},
        {"nodeids": [HUGE], "featureids": [HUGE]},
        {"featureids": [HUGE], "modes": ["BRANCH_LEQ"]},
        {"nodeids": [0, 1], "modes": ["BRANCH_LEQ"] * 2, "truenodeids": [1, 0], "falsenodeids": [1, 0]},
    ):
        yield "x: float[1,2]", f"y = ai.onnx.ml.TreeEnsembleRegressor(x) {{{_tree(**nodes)}}}", row
    skips = {"max_gram_length": HUGE, "max_skip_count": HUGE}
    for changed in ({"ngram_indexes": HUGE}, {"ngram_indexes": -1}, skips, {"ngram_counts": HUGE}):
        yield "x: int64[2]", f"y = TfIdfVectorizer(x) {{{_ngrams(**changed)}}}", {"x": [1, 2]}
    weights = {"a": [[1] * 32], "b": [[[1] * 16]] * 4, "s": [1] * 4}
    for K, N, bits, block in (32, HUGE, 4, 32), (HUGE, 4, 4, 32), (32, 4, 4, HUGE), (32, 4, HUGE, 32), (32, 4, 4, 0):
        attributes = f"K = {K}, N = {N}, bits = {bits}, block_size = {block}"
        yield "a: float[1,32], b: uint8[4,1,16], s: float[4]", f"y = com.microsoft.MatMulNBits(a, b, s) {{{attributes}}}", weights
    cell = {"x": [[[1], [1]]], "w": [[[1]] * 4], "r": [[[1]] * 4]}
    yield "x: float[1,2,1], w: float[1,4,1], r: float[1,4,1]", f"y = LSTM(x, w, r) {{hidden_size = {HUGE}}}", cell
    quantized = {"x": [[1, 1], [1, 1]], "s": 1, "z": 0}
    attributes = f"axis = {HUGE}, block_size = {HUGE}"
    yield "x: uint8[2,2], s: float[], z: uint8[]", f"y = DequantizeLinear(x, s, z) {{{attributes}}}", quantized


def _tree(n_targets: int = 1, **changed: list[Any]) -> str:
    size = max([1, *map(len, changed.values())])
    names = "treeids nodeids featureids values truenodeids falsenodeids".split()
    lists = {**{name: [0] * size for name in names}, "modes": ["LEAF"] * size, **changed}
    nodes = ", ".join(f"nodes_{name} = [{', '.join(map(_quoted, items))}]" for name, items in lists.items())
    return f"n_targets = {n_targets}, {nodes}, target_treeids = [0], target_nodeids = [0], target_ids = [0], target_weights = [1]"


def _ngrams(ngram_indexes: int = 0, ngram_counts: int = 0, max_gram_length: int = 1, max_skip_count: int = 0) -> str:
    pool = f"ngram_counts = [{ngram_counts}], ngram_indexes = [{ngram_indexes}], pool_int64s = [1]"
    return f'mode = "TF", min_gram_length = 1, max_gram_length = {max_gram_length}, max_skip_count = {max_skip_count}, {pool}'


def _quoted(item: Any) -> str:
    return f'"{item}"' if isinstance(item, str) else str(item)


def _patterns() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Expressions that take exponential time where one backtracks, or are large when written out, or are none."""
    nested = "(" * 500 + "a" + ")" * 500
    slow, large = ("(a*)*b", "(a|aa)+", "(x+x+)+y"), ("a{1000}{1000}", "((a{100}){100}){100}", nested)
    for pattern in (*slow, *large, "(" * 500, "(?=a)", "[", "a{2,1}"):
        yield "x: string[1]", f'y = RegexFullMatch(x) {{pattern = "{pattern}"}}', {"x": ["a" * 5000 + "!"]}
        if len(pattern) < 100:
            tokens = 'mark = 0, mincharnum = 1, pad_value = "#"'
            yield "x: string[1]", f'y = com.microsoft.Tokenizer(x) {{{tokens}, tokenexp = "{pattern}"}}', {"x": ["a" * 50 + "!"]}


_GROUPS = (_shapes, _ranges, _counts, _windows, _regions, _places, _products, _learned, _patterns)
CASES = [HostileCase(*case) for group in _GROUPS for case in group()]
"""All of them."""
