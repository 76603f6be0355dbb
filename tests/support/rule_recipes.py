"""Models on which rules fire whose patterns tell too little to draw one: rule -> texts."""

from __future__ import annotations

__all__ = ["RECIPES"]

_ATTENTION = """graph(q: float[b, 3, s, 8], k: float[b, 3, t, 8], v: float[b, 3, t, 4], m: bool[b, 1, s, t]) -> (y) {
    c: float[] = 0.3535 zero: float[] = 0 low: float[] = -1e38 kt = Transpose(k) {perm = [0, 1, 3, 2]} p = MatMul(q, kt) """
_QUANTIZED_GEMM = """graph(x: uint8[2, 5]) -> (y) { xs: float[] = 0.1 xz: uint8[] = 3 w: int8[5, 3] = ... 7
    ws: float[3] = [0.1, 0.2, 0.3] wz: int8[3] = [0, 0, 0] c: int32[3] = [10, -20, 30] cs: float[3] = [0.01, 0.02, 0.03]
    cz: int32[3] = [0, 0, 0] ys: float[] = 0.1 yz: uint8[] = 128 xd = DequantizeLinear(x, xs, xz)
    wd = DequantizeLinear(w, ws, wz) {axis = 1} cd = DequantizeLinear(c, cs, cz) {axis = 0} g = Gemm(xd, wd, cd) """
_GROUPS = """graph(x: float[batch, 6, 3, 5]) -> (y) { w: float[6] = ... 1 b: float[6] = ... 2 c: float[6, 1, 1] = ... 3
    n = GroupNormalization(x, w, b) {num_groups = 2, epsilon = 0.01} """
_INTEGER_MATMUL = "graph(a: uint8[2, 5], r: float[]) -> (y) { b: int8[5, 3] = ... 7 s: float[] = 0.5 az: uint8[] = 3 "
_PACKED_HEADS = """opset 23
graph(q: float[b, s, 24], k: float[b, t, 24], p: float[b, 3, u, 8]) -> (YS) { h: int64[4] = [0, 0, 3, 8] j: int64[3] = [0, 0, 24]
    qr = Reshape(q, h) kr = Reshape(k, h) vr = Reshape(k, h) qt = Transpose(qr) {perm = [0, 2, 1, 3]}
    kt = Transpose(kr) {perm = [0, 2, 1, 3]} vt = Transpose(vr) {perm = [0, 2, 1, 3]} y, yk, yv = Attention(qt, kt, vt, _, p, p)
    yt = Transpose(y) {perm = [0, 2, 1, 3]} z = Reshape(yt, j) }"""
_BLOCKS = ", ".join(f"[{row % 7 - 3}, {row % 5 - 2}, {row % 3}]" for row in range(32))
_ROTARY = """graph(x: float[b, 5, s, 8], p: float[b, s, 1]) -> (y) { one: int64[1] = [1] f: float[4] = [1.0, 0.5, 0.25, 0.125]
    g = Mul(p, f) e = Concat(g, g) {axis = -1} co = Cos(e) si = Sin(e) c = Unsqueeze(co, one) n = Unsqueeze(si, one)
    h, l = Split(x) {axis = 3, num_outputs = 2} m = Neg(l) t = Concat(m, h) {axis = -1} u = Mul(x, c) v = Mul(t, n)
    y = Add(u, v) }"""
_ROTARY_PAIRS = """graph(x: float[b, s, 5, 8], a: float[b, s, 4]) -> (y) { ax: int64[1] = [2] last: int64[1] = [-1]
    zero: int64[1] = [0] far: int64[1] = [9223372036854775807] ax3: int64[1] = [3] two: int64[1] = [2] one: int64[1] = [1]
    co = Cos(a) si = Sin(a) c = Unsqueeze(co, ax) n = Unsqueeze(si, ax) h = Slice(x, zero, far, ax3, two)
    l = Slice(x, one, far, ax3, two) hc = Mul(h, c) ln = Mul(l, n) p = Sub(hc, ln) lc = Mul(l, c) hn = Mul(h, n)
    q = Add(lc, hn) pu = Unsqueeze(p, last) qu = Unsqueeze(q, last) s = Concat(pu, qu) {axis = -1} y = Neg(s) }"""
_NBITS = """g: float[32] = ... 1 a: uint8[4, 1, 16] = ... 2 s: float[4] = [0.1, 0.2, 0.3, 0.4]
    %s = com.microsoft.%s(x, %s, g, a, s, _, a, s%s) {K = 32, bits = 4, block_size = 32, %s} }"""

_EMBEDDED = """graph(i: int32[n, 3], k: int32[n, 3], o: int32[n, 3], m: int32[n, 3]) -> (%s) { w: float[5, 4] = ... 1
    p: float[4, 4] = ... 2 t: float[4, 4] = ... 3 g: float[4] = ... 4 b: float[4] = ... 5
    %s = com.microsoft.EmbedLayerNormalization"""


def _packed(operator: str, outputs: str, skip: str) -> str:
    """A node of projections with packed weights: MatMulNBitsMlp or MatMulNBitsQkv."""
    is_layer = operator == "MatMulNBitsMlp"
    sizes = 'N = 4, activation = "silu"' if is_layer else "Nq = 4, Nkv = 4"
    body = _NBITS % (outputs, operator, skip, "" if is_layer else ", _, a, s", sizes)
    return f"graph(x: float[n, 32], r: float[n, 32]) -> ({outputs}) {{ {body}"


RECIPES: dict[str, tuple[str, ...]] = {
    "decompose_stft": (
        """graph(x: float[n, 64, 1]) -> (y) { s: int64[] = 4 l: int64[] = 16 w: float[16] = ... 1 y = STFT(x, s, w, l) }""",
    ),
    "dequantize_scaled_weights": (
        """graph(x: float[3, 6]) -> (y) { w: int8[6, 4] = ... 1 s: float[4] = ... 2 c = Cast(w) {to = 1} m = Mul(c, s)
        y = MatMul(x, m) }""",
    ),
    "fuse_narrow_weights": (
        """graph(a: float[5, 300]) -> (y) { w: int8[300, 240] = ... 1 s: float[] = 0.02 z: int8[] = 3
        d = DequantizeLinear(w, s, z) y = MatMul(a, d) }""",
    ),
    "dequantize_before_pool": (
        """graph(x: uint8[1, 2, 8, 8]) -> (y) { s: float[] = 0.05 z: uint8[] = 100
        a = MaxPool(x) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]} y = DequantizeLinear(a, s, z) }""",
    ),
    "drop_expand": ("graph(x: float[n, 3, 4, 5], s: float[n, 3, 1, 1]) -> (y) { t = Shape(x) e = Expand(s, t) y = Mul(x, e) }",),
    "split_einsum": ('graph(x: float[s, b], y: float[s, b]) -> (z) { z = Einsum(x, y) {equation = "ij,ij->i"} }',),
    "expand_einsum": ('graph(x: float[s, b, 6], w: float[6, 2, 4]) -> (y) { y = Einsum(x, w) {equation = "ibh,hnd->ibnd"} }',),
    "drop_ones_after_reshape": (
        """graph(x: float[b, s, 24]) -> (y) { i: int64[2] = [0, 1] one: int64[1] = [1] last: int64[1] = [-1] s = Shape(x)
        g = Gather(s, i) k = Concat(g, last, one) {axis = 0} r = Reshape(x, k) y = Squeeze(r, last) }""",
    ),
    "drop_ones_before_reshape": (
        """graph(x: float[2, 5, 3, 8]) -> (y) { a: int64[1] = [1] k: int64[3] = [-1, 5, 8] u = Unsqueeze(x, a)
        t = Transpose(u) {perm = [0, 3, 1, 2, 4]} y = Reshape(t, k) }""",
    ),
    "drop_slice_of_concat": (
        """graph(a: float[n, 2], b: float[n, 3]) -> (y) { two: int64[1] = [2] five: int64[1] = [5] one: int64[1] = [1]
        d = Neg(b) j = Concat(a, d) {axis = 1} y = Slice(j, two, five, one) }""",
    ),
    "expand_attention": (
        """graph(x: float[n, s, 6]) -> (y) { w: float[6, 24] = ... 1 b: float[24] = ... 2
        y = com.microsoft.Attention(x, w) {num_heads = 2} }""",
    ),
    "expand_dynamic_quantization": (
        "graph(x: float[n, 5]) -> (y: uint8[n, 5], s: float[], z: uint8[]) { y, s, z = DynamicQuantizeLinear(x) }",
    ),
    "expand_multi_head_attention": (
        """graph(q: float[n, s, 6], k: float[n, t, 6], v: float[n, t, 8], a: float[1, 2, s, t]) -> (y) {
        y = com.microsoft.MultiHeadAttention(q, k, v, _, _, a) {num_heads = 2} }""",
    ),
    "expand_multi_head_attention_cache": (
        """graph(q: float[n, s, 6], k: float[n, s, 6], pk: float[n, 2, p, 3], pv: float[n, 2, p, 3]) -> (y, yk, yv) {
        y, yk, yv = com.microsoft.MultiHeadAttention(q, k, k, _, _, _, pk, pv) {num_heads = 2} }""",
    ),
    "expand_quantized": (
        """graph(a: uint8[1, 3], b: uint8[1, 3]) -> (y) { as: float[] = 0.05 az: uint8[] = 3 bs: float[] = 0.02 bz: uint8[] = 128
        ys: float[] = 0.04 yz: uint8[] = 100 q = com.microsoft.QLinearAdd(a, as, az, b, bs, bz, ys, yz)
        y = DequantizeLinear(q, ys, yz) }""",
    ),
    **{
        name: (
            f"""graph(x: float[t, n, 6]) -> ({outputs}) {{ w: int8[1, 6, 20] = ... 1 r: int8[1, 5, 20] = ... 2 b: float[1, 40] = ... 5
            s: float[1] = [0.01] z: int8[1] = [3]
            {outputs} = com.microsoft.DynamicQuantizeLSTM(x, w, r, b, _, _, _, _, s, z, s, z) {{hidden_size = 5}} }}""",
        )
        for name, outputs in (
            ("expand_quantized_lstm", "y, h, c"),
            ("expand_quantized_lstm_output", "y"),
            ("expand_quantized_lstm_state", "y, h"),
        )
    },
    "expand_quantized_attention": (
        """graph(x: uint8[b, s, 16], m: int32[b, s]) -> (y) { w: int8[16, 48] = ... 1 c: float[48] = ... 2 xs: float[] = 0.02
        ws: float[] = 0.01 xz: uint8[] = 120 wz: int8[] = 3
        y = com.microsoft.QAttention(x, w, c, xs, ws, m, xz, wz) {num_heads = 4} }""",
    ),
    "expand_quantized_embedding": (
        """graph(j: float[b, 7]) -> (y) { w: uint8[9, 8] = ... 1 p: uint8[12, 8] = ... 2 a: uint8[8] = ... 4 e: uint8[8] = ... 5
        s: float[] = 0.02 z: uint8[] = 120 f: float[] = 2.0 k = IsNaN(j) i = Cast(k) {to = 6}
        y = com.microsoft.QEmbedLayerNormalization(i, _, w, p, _, a, e, _, s, s, _, s, s, z, z, _, z, z) }""",
    ),
    "expand_quantized_embedding_mask": (
        """graph(j: float[b, 7]) -> (y, n) { w: uint8[9, 8] = ... 1 p: uint8[12, 8] = ... 2 a: uint8[8] = ... 4 e: uint8[8] = ... 5
        s: float[] = 0.02 z: uint8[] = 120 f: float[] = 2.0 k = IsNaN(j) i = Cast(k) {to = 6}
        y, n = com.microsoft.QEmbedLayerNormalization(i, _, w, p, _, a, e, i, s, s, _, s, s, z, z, _, z, z) }""",
    ),
    "expand_rotary_embedding": (
        """graph(x: float[b, 3, s, 8], i: int64[1]) -> (y) { c: float[90, 4] = ... 1 n: float[90, 4] = ... 2 o: int64[1] = [0]
        p = Mul(i, o) y = com.microsoft.RotaryEmbedding(x, p, c, n) }""",
    ),
    "fold_gemm_scales": (
        "graph(x: float[m, 3]) -> (y) { w: float[3, 4] = ... 1 b: float[4] = ... 2 y = Gemm(x, w, b) {alpha = 3.0, beta = 2.0} }",
    ),
    "fuse_attention": (
        _ATTENTION + "x = Mul(p, c) w = Softmax(x) {axis = -1} y = MatMul(w, v) }",
        _ATTENTION + "e = Mul(p, c) f = Where(m, zero, low) x = Add(e, f) w = Softmax(x) {axis = -1} y = MatMul(w, v) }",
    ),
    "fuse_attention_groups": (
        """opset 23
        graph(q: float[b, 6, s, 8], k: float[b, 3, 7, 8], v: float[b, 3, 7, 8]) -> (y) { ax: int64[1] = [2]
        g: int64[5] = [1, 1, 2, 1, 1] n: int64[4] = [0, 6, 7, 8] ku = Unsqueeze(k, ax) ke = Expand(ku, g) kr = Reshape(ke, n)
        vu = Unsqueeze(v, ax) ve = Expand(vu, g) vr = Reshape(ve, n) y = Attention(q, kr, vr) }""",
    ),
    "fuse_attention_projections": (
        """graph(x: float[n, s, 5], d: float[1, 2, s, s]) -> (y) { w: float[5, 18] = ... 1 b: float[18] = ... 2
        z: int64[3] = [6, 6, 6] m = MatMul(x, w) a = Add(m, b) q, k, v = Split(a, z) {axis = 2}
        y = com.microsoft.MultiHeadAttention(q, k, v, _, _, d) {num_heads = 2} }""",
    ),
    "fuse_attention_scale": (
        """opset 23
        graph(q: float[b, 3, s, 8], k: float[b, 3, t, 8]) -> (y) { c: float[] = 0.3 m = Mul(q, c) y = Attention(m, k, k) }""",
    ),
    "fuse_attention_scale_cache": (
        """opset 23
        graph(q: float[b, 3, s, 8], k: float[b, 3, t, 8], p: float[b, 3, u, 8]) -> (y, yk, yv) { c: float[] = 0.3 m = Mul(q, c)
        y, yk, yv = Attention(m, k, k, _, p, p) }""",
    ),
    "fuse_conv_gather": (
        """graph(x: float[n, 4, 5, 5]) -> (y) { i: int64[4] = [2, 0, 3, 1] w: float[6, 4, 3, 3] = ... 1 g = Gather(x, i) {axis = 1}
        y = Conv(g, w) }""",
    ),
    "fuse_dynamic_quantize_matmul": (
        """graph(a: float[2, 5]) -> (y) { b: int8[5, 3] = ... 7 s: float[] = 0.5 z: int8[] = 1 c: float[3] = [1, 2, 3]
        q, t, v = DynamicQuantizeLinear(a) y = com.microsoft.MatMulIntegerToFloat(q, b, t, s, v, z, c) }""",
    ),
    "fuse_gather_range": (
        """graph(x: float[n, 5]) -> (y) { zero: int64[] = 0 one: int64[] = 1 s = Shape(x) k = Gather(s, zero)
        r = Range(zero, k, one) y = Gather(x, r) }""",
    ),
    "fuse_group_norm": (
        """graph(x: float[batch, 6, 3, 5]) -> (y) { s: int64[3] = [0, 2, -1] back: int64[4] = [0, 6, 3, 5] one: float[2] = [1, 1]
        zero: float[2] = [0, 0] w: float[6, 1, 1] = ... 1 b: float[1, 6, 1, 1] = ... 2 g = Reshape(x, s)
        n = InstanceNormalization(g, one, zero) {epsilon = 0.01} r = Reshape(n, back) m = Mul(r, w) y = Add(m, b) }""",
    ),
    "fuse_group_norm_bias": (_GROUPS + "y = Add(n, c) }",),
    "fuse_group_norm_scale": (_GROUPS + "y = Mul(n, c) }",),
    "fuse_label_encoders": (
        """graph(x: int64[4, 9]) -> (y) {
        a = ai.onnx.ml.LabelEncoder(x) {keys_int64s = [1, 2, 3], values_strings = ["a", "b", "c"], default_string = "z"}
        y = ai.onnx.ml.LabelEncoder(a) {keys_strings = ["a", "c", "z"], values_floats = [1.5, 2.5, 9.5], default_float = -3.0} }""",
    ),
    "fuse_bias_gelu": ("graph(x: float[n, 4]) -> (y) { b: float[4] = ... 1 a = Add(x, b) y = Gelu(a) }",),
    "fuse_bias_softmax": ("graph(x: float[2, 3, n, 4], b: float[2, 1, 1, 4]) -> (y) { a = Add(x, b) y = Softmax(a) {axis = 3} }",),
    "expand_bias_softmax": (
        """graph(x: float[2, n, 4], b: float[n, 4]) -> (y)
        { y = com.microsoft.BiasSoftmax(x, b) {axis = 2, is_inner_broadcast = 0} }""",
    ),
    "expand_embedding": (_EMBEDDED % ("y", "y") + "(i, k, w, p, t, g, b, _, o) }",),
    "expand_embedding_mask": (_EMBEDDED % ("y, c", "y, c") + "(i, _, w, p, _, g, b, m) }",),
    "fuse_embedding": (
        """graph(i: int32[n, 3], k: int64[n, 3]) -> (y) { w: float[5, 4] = ... 1 p: float[3, 4] = ... 2 t: float[4, 4] = ... 3
        g: float[4] = ... 4 b: float[4] = ... 5 o: int64[1, 3] = [[2, 0, 1]] h = Gather(w, i) j = Gather(t, k) c = Gather(p, o)
        e = Add(h, j) s = Add(e, c) y = LayerNormalization(s, g, b) }""",
    ),
    "expand_nbits_mlp": (_packed("MatMulNBitsMlp", "y", "_"),),
    "expand_nbits_mlp_sum": (_packed("MatMulNBitsMlp", "y, t", "r"),),
    "expand_nbits_qkv": (_packed("MatMulNBitsQkv", "q, k, v", "_"),),
    "expand_nbits_qkv_sum": (_packed("MatMulNBitsQkv", "q, k, v, t", "r"),),
    "fuse_conv_sum": (
        """graph(x: float[n, 3, 6, 6], z: float[n, 4, 4, 4]) -> (y) { w: float[4, 3, 3, 3] = ... 1
        c = Conv(x, w) y = Add(c, z) }""",
    ),
    "fuse_layer_norm_affine": (
        """graph(x: float[batch, 3, 5]) -> (y) { g: float[5] = ... 1 b: float[5] = ... 2 e: float[] = 1e-3 a: int64[1] = [-1]
        m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) p = Add(v, e) s = Sqrt(p) i = Reciprocal(s)
        w = Mul(i, g) t = Mul(m, w) k = Sub(b, t) u = Mul(x, w) y = Add(u, k) }""",
    ),
    "fuse_layer_norm_scale": (
        """graph(x: float[2, 5]) -> (y) { g: float[5] = ... 1 f: float[5] = ... 2 n = LayerNormalization(x, g) y = Mul(n, f) }""",
    ),
    "fuse_layer_norm_statistics": (
        """graph(x: float[2, 3, 5]) -> (y) { t: int64[4] = [1, 6, 5, 1] back: int64[3] = [2, 3, 5] size: float[] = 5.0
        o: float[6] = [1, 1, 1, 1, 1, 1] z: float[6] = [0, 0, 0, 0, 0, 0] axes: int64[3] = [0, 2, 3] g = Reshape(x, t)
        m = ReduceMean(g, axes) {keepdims = 1} d = Sub(g, m) v = ReduceSumSquare(d, axes) {keepdims = 0} s = Div(v, size)
        c = Squeeze(m, axes) n = BatchNormalization(g, o, z, c, s) {epsilon = 0.01} y = Reshape(n, back) }""",
    ),
    "fuse_matmul_integer": (_INTEGER_MATMUL + "t = MatMulInteger(a, b, az) m = Cast(t) {to = 1} k = Mul(r, s) y = Mul(m, k) }",),
    "fuse_matmul_integer_bias": (
        _INTEGER_MATMUL + "c: float[3] = [1, 2, 3] t = com.microsoft.MatMulIntegerToFloat(a, b, r, s) y = Add(t, c) }",
    ),
    "fuse_nbits_bias": (
        """graph(a: float[2, 32]) -> (y) { b: uint8[4, 1, 16] = ... 7 s: float[4] = [0.1, 0.2, 0.3, 0.4] c: float[4] = [1, 2, 3, 4]
        p = com.microsoft.MatMulNBits(a, b, s) {K = 32, N = 4, bits = 4, block_size = 32} y = Add(p, c) }""",
    ),
    "fuse_nbits_matmul": (
        f"""graph(a: float[2, 32]) -> (y) {{ w: int4[32, 3] = [{_BLOCKS}] s: float[2, 3] = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]
        d = DequantizeLinear(w, s) {{axis = 0, block_size = 16}} y = MatMul(a, d) }}""",
    ),
    "fuse_parallel_convs": (
        """graph(x: float[2, 4, 6, 5]) -> (y) { w: float[6, 2, 3, 3] = ... 1 v: float[6, 2, 1, 1] = ... 2 b: float[6] = ... 3
        p = Conv(x, w) {group = 2, pads = [1, 1, 1, 1], strides = [2, 1]} q = Conv(x, v, b) {group = 2, strides = [2, 1]}
        y = Add(p, q) }""",
    ),
    "fuse_parallel_normalization": (
        """graph(x: float[2, 4, 6, 5]) -> (y) { w: float[4, 2, 3, 1] = ... 1 s: float[4] = ... 2 h: float[4] = ... 3
        m: float[4] = ... 4 u: float[4] = [0.5, 1.0, 1.5, 2.0] p = Conv(x, w) {group = 2, pads = [1, 0, 1, 0]}
        q = BatchNormalization(x, s, h, m, u) y = Add(q, p) }""",
    ),
    "fuse_partial_rotary_embedding": (
        """opset 23
        graph(x: float[b, 5, s, 12], c: float[b, s, 4], n: float[b, s, 4]) -> (y) { z: int64[2] = [8, 4]
        h, l = Split(x, z) {axis = 3} r = RotaryEmbedding(h, c, n) y = Concat(r, l) {axis = -1} }""",
    ),
    "fuse_quantized_concat": (
        """graph(a: uint8[2, 3], b: uint8[2, 4]) -> (y) { s: float[] = 0.05 z: uint8[] = 3 t: float[] = 0.02 v: uint8[] = 12
        r: float[] = 0.03 o: uint8[] = 10 x = DequantizeLinear(a, s, z) w = DequantizeLinear(b, t, v) c = Concat(x, w) {axis = 1}
        y = QuantizeLinear(c, r, o) }""",
    ),
    "fuse_quantized_gemm": (_QUANTIZED_GEMM + "q = QuantizeLinear(g, ys, yz) y = DequantizeLinear(q, ys, yz) }",),
    "fuse_quantized_gemm_to_float": (_QUANTIZED_GEMM + "y = Neg(g) }",),
    "quantize_as_uint8": (
        """graph(x: float[n, 3]) -> (y) { s: float[] = 0.05 z: int8[] = -7 q = QuantizeLinear(x, s, z)
        y = DequantizeLinear(q, s, z) }""",
    ),
    "fuse_select": (
        """graph(c: bool[s, 4], x: float[2, s, 4]) -> (y) { f: float[] = -9.5 a = Cast(c) {to = 1} n = Not(c) d = Cast(n) {to = 1}
        u = Mul(a, x) v = Mul(f, d) y = Add(u, v) }""",
    ),
    "fuse_rotary_embedding": (_ROTARY,),
    "fuse_rotary_pairs": (_ROTARY_PAIRS,),
    "fuse_skip_normalization": (
        """opset 23
        graph(x: float[n, 3, 5], r: float[n, 3, 5]) -> (y) { g: float[5] = ... 1 b: float[5] = ... 2
        s = Add(x, r) y = LayerNormalization(s, g, b) }""",
    ),
    "fuse_skip_normalization_biased_sum": (
        """opset 23
        graph(x: float[n, 3, 5], r: float[n, 3, 5]) -> (y, s) { g: float[5] = ... 1 b: float[5] = ... 2
        t = Add(x, b) s = Add(t, r) y = RMSNormalization(s, g) }""",
    ),
    "fuse_skip_normalization_sum": (
        """opset 23
        graph(x: float[n, 3, 5], r: float[n, 3, 5]) -> (y, s) { g: float[5] = ... 1 b: float[5] = ... 2
        s = Add(x, r) y = LayerNormalization(s, g) }""",
    ),
    "fuse_space_to_depth": (
        """graph(x: float[n, 3, 4, 6]) -> (y) { s00: int64[2] = [0, 0] s01: int64[2] = [0, 1] s10: int64[2] = [1, 0]
        s11: int64[2] = [1, 1] far: int64[2] = [9223372036854775807, 9223372036854775807] ax: int64[2] = [2, 3]
        two: int64[2] = [2, 2] a = Slice(x, s00, far, ax, two) b = Slice(x, s01, far, ax, two) c = Slice(x, s10, far, ax, two)
        d = Slice(x, s11, far, ax, two) y = Concat(a, b, c, d) {axis = 1} }""",
    ),
    "gather_before_dequantization": (
        """graph(i: int64[3]) -> (y) { w: int8[4, 2] = [[1, 2], [3, 4], [5, 6], [7, 8]] s: float[] = 0.5 z: int8[] = 1
        k: int64[3] = [0, 1, 1] d = DequantizeLinear(w, s, z) y = Gather(d, k) {axis = 0} }""",
    ),
    "merge_slices": (
        """graph(x: float[n, 5, 6]) -> (y) { zero: int64[1] = [0] one: int64[1] = [1] two: int64[1] = [2] far: int64[1] = [100]
        a = Slice(x, one, far, one) y = Slice(a, zero, two, two) }""",
    ),
    "move_unsqueeze": (
        """graph(x: float[b, s, 4]) -> (y) { a: int64[1] = [1] u = Unsqueeze(x, a) y = Transpose(u) {perm = [0, 2, 1, 3]} }""",
    ),
    "pack_attention_heads": (
        """opset 23
        graph(x: float[n, 5, 24]) -> (y) { five: int64[5] = [-1, 5, 3, 2, 4] ones: int64[3] = [1, 1, 1] z: int64[1] = [0]
        three: int64[3] = [-1, 5, 8] r = Reshape(x, five) t = Transpose(r) {perm = [2, 0, 3, 1, 4]}
        a, b, c = Split(t, ones) {axis = 0} q = Squeeze(a, z) k = Squeeze(b, z) v = Squeeze(c, z) s = Attention(q, k, v)
        o = Transpose(s) {perm = [0, 2, 1, 3]} y = Reshape(o, three) }""",
    ),
    "pack_transposed_heads": (_PACKED_HEADS.replace("YS", "z"),),
    "pack_transposed_heads_cache": (_PACKED_HEADS.replace("YS", "z, yk, yv"),),
    "pool_before_quantization": (
        """graph(x: float[1, 2, 8, 8]) -> (y) { s: float[] = 0.05 z: uint8[] = 100 a = QuantizeLinear(x, s, z)
        y = MaxPool(a) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]} }""",
    ),
    "quantize_where_scalar": (
        """graph(k: bool[2, 3], a: uint8[2, 3]) -> (y) { s: float[] = 0.05 z: uint8[] = 3 r: float[] = 0.03 o: uint8[] = 100
        n: float[] = -2.5 x = DequantizeLinear(a, s, z) c = Where(k, x, n) y = QuantizeLinear(c, r, o) }""",
    ),
    "skip_transpose_before_shape": (
        """graph(x: float[2, 3, 4]) -> (y) { i: int64[2] = [0, -1] t = Transpose(x) {perm = [2, 0, 1]} s = Shape(t)
        y = Gather(s, i) }""",
    ),
    "skip_reshapes_around_transpose": (
        """graph(x: float[b, 3, 5, 4]) -> (y) { m: int64[3] = [-1, 5, 4] p: int64[4] = [-1, 3, 4, 5]
        a = Reshape(x, m) t = Transpose(a) {perm = [0, 2, 1]} y = Reshape(t, p) }""",
    ),
    "skip_reshapes_around_matmul": (
        """graph(x: float[b, 5, 6]) -> (y) { r: int64[2] = [-1, 6] t: int64[3] = [-1, 5, 4] w: float[6, 4] = ... 1
        a = Reshape(x, r) p = Gemm(a, w) y = Reshape(p, t) }""",
    ),
}
