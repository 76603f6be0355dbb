"""Which rules and passes take part for which target."""

import pytest
from support.evaluate import evaluate_node
from support.optimizing import model_of, operators

from sardonyx.optimize.helpers.quantized import INTEGER_OPERATORS
from sardonyx.optimize.pipeline import DECOMPOSITIONS, known_items, optimize
from sardonyx.optimize.rules.quantize.expand_quantized import EXPAND_QUANTIZED
from sardonyx.optimize.target import OpKey, OptIn, Target, exclusion_reason, microsoft, standard

CONV = """graph(x: uint8[1,3,6,6]) -> (y: uint8[1,2,6,6]) {
    xs: float[] = 0.1 xz: uint8[] = 3 w: int8[2,3,3,3] = ... 7 ws: float[] = 0.05 wz: int8[] = 0 ys: float[] = 0.2 yz: uint8[] = 100
    xd = DequantizeLinear(x, xs, xz) wd = DequantizeLinear(w, ws, wz)
    c = Conv(xd, wd) {pads = [1, 1, 1, 1]} y = QuantizeLinear(c, ys, yz) }"""
INTEGER = CONV[: CONV.index("xd =")] + "y = QLinearConv(x, xs, xz, w, ws, wz, ys, yz) {pads = [1, 1, 1, 1]} }"


FILE = Target.file(keeps_opset=False)


def target_of(preferred):
    return FILE if preferred is None else Target(preferred)


def optimized(text, preferred, entries=None):
    model = model_of(text)
    optimize(model, 99, evaluate=evaluate_node, target=target_of(preferred), entries=entries or {}, check=True)
    return operators(model)


def taking_part(target, entries=None):
    return {item.name for item in known_items() if exclusion_reason(item, target, entries or {}) is None}


def test_an_operator_may_be_named_with_its_domain():
    """Without one it is preferred whatever its domain."""
    (attention,) = microsoft("Attention")
    assert str(attention) == "com.microsoft.Attention"
    assert attention == OpKey("com.microsoft", "Attention")
    assert Target(frozenset(["Attention"])).allows(attention)
    assert Target(frozenset(["com.microsoft.Attention"])).allows(attention)
    assert not Target(frozenset(["com.microsoft.Attention"])).allows(*standard("Attention"))


def test_reasons_name_operators_and_entries():
    """Each way to be left out has its reason."""
    items = {item.name: item for item in known_items()}
    reason = exclusion_reason(items["fuse_conv_activation"], Target(), {})
    assert reason == "no provider prefers FusedConv, which it makes"
    assert exclusion_reason(items["quantize_bias"], Target(), {}) == ("no provider prefers QGemm, QLinearConv, which it prepares")
    assert exclusion_reason(items["decompose_stft"], FILE, {}) == "models that are saved keep STFT, which it decomposes"
    assert (
        exclusion_reason(items["decompose_stft"], Target(frozenset(["STFT"])), {}) == "a provider prefers STFT, which it decomposes"
    )
    assert exclusion_reason(items["fuse_bias_softmax"], FILE, {}) == "models that are saved lack BiasSoftmax, which it makes"
    reason = exclusion_reason(items["copy_dequantization"], FILE, {})
    assert reason == "the model is saved, and one DequantizeLinear for all readers is smaller"
    entry = "optimization.enable_gelu_approximation"
    reason = exclusion_reason(items["approximate_gelu"], Target(), {})
    assert reason == f'{entry} is not "1", which asks for it, as results differ by up to 5e-4'
    reason = exclusion_reason(items["merge_quantizations"], Target(), {"session.disable_double_qdq_remover": "1"})
    assert reason == 'session.disable_double_qdq_remover is "1"'


def test_what_has_no_attributes_takes_part():
    """So it is with passes that know no targets."""
    assert exclusion_reason(object(), FILE, {}) is None


def test_what_is_asked_for_takes_part_when_asked():
    """Whatever the rule is about."""

    class Item:
        opt_in = OptIn("key", "0", "of a reason")

    assert exclusion_reason(Item(), Target(), {"key": "0"}) is None
    assert exclusion_reason(Item(), Target(), {"key": "1"}) is not None


def test_what_is_taken_apart_though_legal_is_made_again():
    """By a rule or pass at the end.

    But for Einsum and BatchNormalization in training, whose parts every provider runs better, and for a Gemm with a number and a OneHot
    of odd indices, which stay such in another form.
    """
    made = {key for item in known_items() for key in getattr(item, "makes", ())} | microsoft("Gelu", "QuickGelu")
    for rule in DECOMPOSITIONS:
        if rule.takes_legal_apart:
            assert rule.takes_apart <= made | standard("Einsum", "BatchNormalization", "Gemm", "OneHot"), rule.name


def test_every_decomposition_says_what_it_takes_apart():
    """Each operator at the root of its pattern."""
    assert [rule.name for rule in DECOMPOSITIONS if not rule.takes_apart] == []


def test_the_quantized_operators_are_those_that_are_taken_apart():
    """What one rule makes floats of, other rules make; but for the QLinearConv of com.microsoft."""
    made = {key for item in known_items() for key in getattr(item, "makes", ())}
    assert INTEGER_OPERATORS - made == microsoft("QLinearConv")
    assert EXPAND_QUANTIZED.about is not None


@pytest.mark.parametrize("text", [CONV, INTEGER])
def test_floats_where_no_provider_prefers_integers(text):
    """Both ways to write a quantized convolution become one of floats, with float weights."""
    assert optimized(text, frozenset()) == ["DequantizeLinear", "Conv", "Mul", "QuantizeLinear"]


@pytest.mark.parametrize("text", [CONV, INTEGER])
@pytest.mark.parametrize("preferred", [None, frozenset(["QLinearConv"])])
def test_integers_where_a_provider_prefers_them(text, preferred):
    """Both become the quantized operator; so they do in a file."""
    assert optimized(text, preferred) == ["QLinearConv"]


def test_weights_stay_integers_whatever_else_folds_into_convolutions():
    """With scales by output channel, by which the sums are multiplied."""
    by_channel = CONV.replace("ws: float[] = 0.05 wz: int8[] = 0", "ws: float[2] = [0.05, 0.025] wz: int8[2] = [0, 0]")
    model = model_of(by_channel.replace("(w, ws, wz)", "(w, ws, wz) {axis = 0}"))
    optimize(model, 99, evaluate=evaluate_node)
    assert operators(model) == ["DequantizeLinear", "Conv", "Mul", "QuantizeLinear"]
    (weights,) = [value.constant.numpy() for value in model.graph.initializers.values() if len(value.constant.shape) == 4]
    assert (weights == weights.round()).all()


def test_quantization_may_be_preferred_as_it_is():
    """A provider that compiles Q and DQ itself gets them untouched."""
    assert optimized(CONV, frozenset(["DequantizeLinear"])) == ["DequantizeLinear", "DequantizeLinear", "Conv", "QuantizeLinear"]
    assert optimized(INTEGER, frozenset(["DequantizeLinear"])) == ["QLinearConv"]


def test_only_what_is_preferred_is_made():
    """A provider for products of matrices gets convolutions of floats, with float weights, whichever way they are written."""
    for text in (CONV, INTEGER):
        assert optimized(text, frozenset(["QLinearMatMul"])) == ["DequantizeLinear", "Conv", "Mul", "QuantizeLinear"]


def test_weights_of_floats_are_floats_beside_products_of_integers():
    """A product whose result is not quantized has float weights, once the others are made."""
    text = CONV.replace("-> (y: uint8[1,2,6,6])", "-> (y: uint8[1,2,6,6], n: float[1,2,6,6])").replace(
        "y = Quant", "n = Neg(c) y = Quant"
    )
    assert optimized(text, frozenset(["QLinearConv"])).count("DequantizeLinear") == 1


def test_a_quantized_operator_stays_beside_one_that_is_taken_apart():
    """Whole, where a provider prefers that one."""
    both = """graph(a: uint8[4], b: uint8[4]) -> (y: uint8[4]) { s: float[] = 0.05 z: uint8[] = 3 t: float[] = 0.07
        c = com.microsoft.QLinearAdd(a, s, z, b, t, z, s, z) y = com.microsoft.QLinearMul(c, s, z, b, t, z, t, z) }"""
    assert "QLinearAdd" in optimized(both, frozenset(["QLinearAdd"]))
    assert "QLinearMul" not in optimized(both, frozenset(["QLinearAdd"]))
    assert optimized(both, frozenset(["QLinearAdd", "QLinearMul"])) == ["QLinearAdd", "QLinearMul"]


def test_what_is_preferred_as_it_is_shares_nothing():
    """Each reader of a DequantizeLinear gets its own, which nothing merges again."""
    shared = CONV.replace("c = Conv", "n = Neg(xd) v = QuantizeLinear(n, ys, yz) c = Conv")
    shared = shared.replace("-> (", "-> (v: uint8[1,3,6,6], ")
    assert optimized(shared, frozenset(["DequantizeLinear"])).count("DequantizeLinear") == 3
    assert optimized(shared, None).count("DequantizeLinear") == 1


@pytest.mark.parametrize(
    ("key", "name", "is_on"),
    [
        ("session.enable_quant_qdq_cleanup", "drop_quantization_pairs", True),
        ("session.enable_dq_matmulnbits_fusion", "fuse_nbits_matmul", True),
        ("optimization.enable_cast_chain_elimination", "shorten_cast_chains", True),
        ("optimization.enable_gelu_approximation", "approximate_gelu", True),
        ("session.x64quantprecision", "store_weights_as_uint8", True),
        ("session.disable_double_qdq_remover", "merge_quantizations", False),
        ("session.disable_qdq_constant_folding", "fold_dequantization", False),
        ("session.disable_quant_qdq", "fuse_quantized_conv", False),
    ],
)
def test_config_entries(key, name, is_on):
    """Entries by the names of onnxruntime ask for rules, or leave them out, with "1"."""
    target = Target() if name == "fold_dequantization" else FILE
    assert (name in taking_part(target, {key: "1"})) is is_on
    assert (name in taking_part(target, {key: "0"})) is not is_on


def test_int8_that_is_not_allowed():
    """Activations are uint8 where the entry says "0", weights where another says "1"."""
    assert "quantize_as_uint8" in taking_part(FILE, {"session.qdqisint8allowed": "0"})
    for entries in ({}, {"session.qdqisint8allowed": "1"}):
        assert "quantize_as_uint8" not in taking_part(FILE, entries)
    given = """graph(x: float[1,3,6,6]) -> (y) { s: float[] = 0.1 z: int8[] = 3 w: int8[2,3,3,3] = ... 7 ws: float[] = 0.05
        wz: int8[] = 0 q = QuantizeLinear(x, s, z) xd = DequantizeLinear(q, s, z) wd = DequantizeLinear(w, ws, wz)
        c = Conv(xd, wd) r = QuantizeLinear(c, s, z) y = DequantizeLinear(r, s, z) }"""
    entries = {"session.qdqisint8allowed": "0", "session.x64quantprecision": "1"}
    model = model_of(given)
    optimize(model, 99, evaluate=evaluate_node, target=FILE, entries=entries, check=True)
    conv = next(node for node in model.graph if node.op_type == "QLinearConv")
    assert {str(conv.inputs[index].dtype) for index in (0, 2, 3, 5, 7)} == {"uint8"}


def test_weights_of_few_bits_stay_packed_where_that_is_asked_for():
    """Else they become floats once."""
    rows = ", ".join(f"[{row % 7 - 3}, {row % 5 - 2}]" for row in range(32))
    text = f"""graph(a: float[2, 32]) -> (y) {{ w: int4[32, 2] = [{rows}] s: float[2, 2] = [[0.1, 0.2], [0.3, 0.4]]
        d = DequantizeLinear(w, s) {{axis = 0, block_size = 16}} y = MatMul(a, d) }}"""
    assert optimized(text, frozenset()) == ["MatMul"]
    assert optimized(text, frozenset(), {"session.enable_dq_matmulnbits_fusion": "1"}) == ["MatMulNBits"]


CHAIN = """graph(x: float[1,3,6,6], z: float[1,2,6,6]) -> (y) { w: float[2,3,3,3] = ... 7 c = Conv(x, w) {pads = [1, 1, 1, 1]}
    a = Add(c, z) y = Relu(a) }"""


@pytest.mark.parametrize(
    ("preferred", "left"),
    [
        (frozenset(), ["Conv", "Add", "Relu"]),
        (frozenset(["FusedGemm"]), ["Conv", "Add", "Relu"]),
        (frozenset(["FusedConv"]), ["FusedConv"]),
        (None, ["FusedConv"]),
    ],
)
def test_fused_operators_where_a_provider_prefers_them(preferred, left):
    """So they do in a file; whatever a model has, others get its parts."""
    assert optimized(CHAIN, preferred) == left
    fused = CHAIN[: CHAIN.index("c =")] + 'y = com.microsoft.FusedConv(x, w, _, z) {activation = "Relu", pads = [1, 1, 1, 1]} }'
    assert optimized(fused, preferred) == left


def test_a_fused_operator_does_not_stand_for_integers():
    """Who prefers one still gets quantized models in floats."""
    assert optimized(CONV, frozenset(["FusedConv"])) == ["DequantizeLinear", "Conv", "Mul", "QuantizeLinear"]


def test_operators_that_onnxruntime_lacks():
    """Who prefers them gets them, files do not; others get their parts."""
    text = "graph(a: float[n, 4], b: float[n, 4]) -> (y) { m = Neg(a) s = Add(b, m) y = Softmax(s) }"
    fused = text[: text.index("s =")] + "y = com.microsoft.BiasSoftmax(m, b) {axis = 1, is_inner_broadcast = 0} }"
    for given in (text, fused):
        assert optimized(given, frozenset(["BiasSoftmax"])) == ["Neg", "BiasSoftmax"]
        assert "BiasSoftmax" not in optimized(given, None) + optimized(given, frozenset())


def test_layers_with_packed_weights():
    """So it is with gated layers, however they are written."""
    sizes = "{K = 32, N = 4, bits = 4, block_size = 32}"
    text = f"""graph(h: float[n, 32], r: float[n, 32]) -> (y, t) {{ w: float[32] = ... 1 a: uint8[4, 1, 16] = ... 2 two: float[] = 2
        b: uint8[4, 1, 16] = ... 3 s: float[4] = [0.1, 0.2, 0.3, 0.4] ax: int64[1] = [1] e: float[] = 0.01 t = Add(h, r)
        p = Pow(t, two) m = ReduceMean(p, ax) v = Add(m, e) k = Sqrt(v) d = Div(t, k) x = Mul(d, w)
        g = com.microsoft.MatMulNBits(x, a, s) {sizes} u = com.microsoft.MatMulNBits(x, b, s) {sizes} o = Sigmoid(g)
        q = Mul(g, o) y = Mul(q, u) }}"""
    fused = (
        text[: text.index("t = Add")]
        + 'y, t = com.microsoft.MatMulNBitsMlp(h, r, w, a, s, _, b, s) {activation = "silu", '
        + (sizes[1:] + "}")
    )
    for given in (text, fused):
        assert optimized(given, frozenset(["MatMulNBitsMlp"])) == ["MatMulNBitsMlp"]
        assert "MatMulNBitsMlp" not in optimized(given, None) + optimized(given, frozenset())


def test_queries_of_attention_with_groups():
    """Who prefers it gets projections and rotations in as few nodes as it takes."""
    text = """graph(x: float[2, 3, 32], p: int64[2, 3], l: int32[2], t: int32[]) -> (y) { c: float[9, 4] = ... 1
        s: float[9, 4] = ... 2 a: float[32, 32] = ... 3 b: float[32, 16] = ... 4 d: float[32, 16] = ... 5
        q = MatMul(x, a) k = MatMul(x, b) v = MatMul(x, d)
        m = com.microsoft.RotaryEmbedding(q, p, c, s) n = com.microsoft.RotaryEmbedding(k, p, c, s)
        y = com.microsoft.GroupQueryAttention(m, n, v, _, _, l, t) {num_heads = 4, kv_num_heads = 2} }"""
    assert optimized(text, frozenset(["GroupQueryAttention"])) == ["MatMul", "GroupQueryAttention"]
    assert optimized(text, None) == ["MatMul"] * 3 + ["RotaryEmbedding"] * 2 + ["GroupQueryAttention"]


def test_operators_that_are_taken_apart():
    """Unless a provider prefers them, and never in files."""
    text = "graph(x: float[n, 64, 1]) -> (y) { s: int64[] = 4 l: int64[] = 16 w: float[16] = ... 1 y = STFT(x, s, w, l) }"
    assert optimized(text, frozenset(["STFT"])) == optimized(text, None) == ["STFT"]
    assert "Conv" in optimized(text, frozenset())


def test_other_preferred_operators_do_not_stand_for_integers():
    """Who prefers STFT or MultiHeadAttention still gets quantized models in floats."""
    for name in ("STFT", "MultiHeadAttention"):
        assert optimized(CONV, frozenset([name])) == ["DequantizeLinear", "Conv", "Mul", "QuantizeLinear"]
