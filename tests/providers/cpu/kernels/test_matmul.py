"""MatMul and Gemm of models: sizes around tiles, batches, tails, constant and computed right sides."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close, assert_same_bits, cpu_session, declined, reference, run_cpu, steps_of

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.providers.cpu.kernels import matmul


def _x(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("columns", [1, 15, 16, 17, 64, 65, 131])
@pytest.mark.parametrize("isa", LEVELS)
def test_constant_matrices(isa: str, columns: int) -> None:
    """Of any width, times any number of rows, in one session."""
    body = f"graph(x: float[m, 37]) -> (y: float[m, {columns}]) {{ w: float[37, {columns}] = ... 1 y = MatMul(x, w) }}"
    session = cpu_session(body, isa=isa)
    for rows in (0, 1, 5, 6, 7, 13):
        x = _x(rows, 37)
        assert_close(session.run(None, {"x": x})[0], reference(body, {"x": x}, double=True)[0], 2e-6)


@pytest.mark.parametrize("depth", [0, 1, 3, 4, 768, 769, 1600])
def test_depths_around_blocks(depth: int) -> None:
    """A tail is applied once, when the sums are whole."""
    body = f"""graph(x: float[3, {depth}], w: float[{depth}, 5], b: float[5]) -> (y: float[3, 5]) {{
        p = MatMul(x, w) s = Add(p, b) y = Relu(s) }}"""
    feeds = {"x": _x(3, depth), "w": _x(depth, 5, seed=1), "b": _x(5, seed=2)}
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


def test_leading_dimensions_are_rows() -> None:
    """Of the left side, where the right side is one matrix."""
    body = "graph(x: float[a, b, 3, 8]) -> (y: float[a, b, 3, 5]) { w: float[8, 5] = ... 1 y = MatMul(x, w) }"
    session = cpu_session(body)
    for shape in ((1, 1, 3, 8), (2, 5, 3, 8), (0, 2, 3, 8)):
        x = _x(*shape)
        assert_close(session.run(None, {"x": x})[0], reference(body, {"x": x}, double=True)[0], 2e-6)


@pytest.mark.parametrize("columns", [3, 64, 70])
def test_batches_of_computed_matrices(columns: int) -> None:
    """As attention multiplies them; sizes that only the run knows."""
    body = f"graph(x: float[n, h, s, 16], w: float[n, h, 16, {columns}]) -> (y: float[n, h, s, {columns}]) {{ y = MatMul(x, w) }}"
    session = cpu_session(body)
    for n, h, s in ((1, 1, 1), (2, 3, 7), (1, 2, 33)):
        feeds = {"x": _x(n, h, s, 16), "w": _x(n, h, 16, columns, seed=1)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


@pytest.mark.parametrize("columns", [1, 9, 16, 70])
@pytest.mark.parametrize("isa", LEVELS)
def test_matrices_that_were_transposed_are_packed_from_where_they_were(isa: str, columns: int) -> None:
    """No transposed copy is made, unless something else reads it."""
    body = f"""graph(x: float[b, m, 33], z: float[b, {columns}, 33]) -> (y: float[b, m, {columns}]) {{
        t = Transpose(z) {{perm = [0, 2, 1]}} r = Relu(x) y = MatMul(r, t) }}"""
    assert not [step for step in steps_of(body) if "Transpose" in step]
    session = cpu_session(body, isa=isa)
    for batch, rows in ((1, 1), (3, 7), (0, 4)):
        feeds = {"x": _x(batch, rows, 33), "z": _x(batch, columns, 33, seed=1)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


def test_a_transposed_matrix_that_others_read_is_made() -> None:
    """The product may read what it was made of all the same."""
    body = """graph(x: float[2, 5, 8], z: float[2, 9, 8]) -> (y: float[2, 5, 9], e: float[2, 8, 9]) {
        t = Transpose(z) {perm = [0, 2, 1]} y = MatMul(x, t) e = Exp(t) }"""
    feeds = {"x": _x(2, 5, 8), "z": _x(2, 9, 8, seed=1)}
    for found, expected in zip(run_cpu(body, feeds), reference(body, feeds, double=True), strict=True):
        assert_close(found, expected, 2e-6)


def test_constant_batches() -> None:
    """A right side of three dimensions; what is added to each element is added to each matrix."""
    body = """graph(x: float[2, 3, 4], r: float[2, 3, 5]) -> (y: float[2, 3, 5]) {
        w: float[2, 4, 5] = ... 1
        p = MatMul(x, w) y = Add(p, r) }"""
    feeds = {"x": _x(2, 3, 4), "r": _x(2, 3, 5, seed=1)}
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("bias", ["", ", c"])
def test_gemm(bias: str, transposed: int) -> None:
    """With a row or nothing added, the right side as it is or transposed."""
    shape = "7, 9" if transposed else "9, 7"
    body = f"""graph(x: float[m, 9]) -> (y: float[m, 7]) {{
        w: float[{shape}] = ... 1 c: float[7] = ... 2
        y = Gemm(x, w{bias}) {{transB = {transposed}}} }}"""
    session = cpu_session(body)
    for rows in (1, 6, 20):
        x = _x(rows, 9)
        assert_close(session.run(None, {"x": x})[0], reference(body, {"x": x}, double=True)[0], 2e-6)


@pytest.mark.parametrize(
    "attributes", ["alpha = 2.5", "beta = 2.5", "beta = 0.0", "transA = 1", "transA = 1, transB = 1, alpha = -0.5, beta = 3.0"]
)
@pytest.mark.parametrize("c", ["5", "1, 5", "7, 1", "7, 5"])
@pytest.mark.parametrize("is_constant", [False, True])
def test_a_gemm_that_scales_or_transposes_its_left_side(attributes: str, c: str, is_constant: bool) -> None:
    """In the store, and in a copy; with an activation behind."""
    left, right = "9, 7" if "transA" in attributes else "7, 9", "5, 9" if "transB" in attributes else "9, 5"
    weights = f"w: float[{right}] = ... 1" if is_constant else ""
    given = "" if is_constant else f", w: float[{right}]"
    body = f"graph(x: float[{left}], c: float[{c}]{given}) -> (y) {{ {weights} z = Gemm(x, w, c) {{{attributes}}} y = Relu(z) }}"
    feeds = {"x": _x(*map(int, left.split(", "))), "c": _x(*map(int, c.split(", ")), seed=1)}
    if not is_constant:
        feeds["w"] = _x(*map(int, right.split(", ")), seed=2)
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("B, 7, 9", "1, 9, 5"),
        ("1, B, 7, 9", "3, 1, 9, 5"),
        ("B, 3, 7, 9", "3, 9, 5"),
        ("3, 7, 9", "B, 3, 9, 5"),
        ("3, 1, 7, 9", "1, B, 9, 5"),
    ],
)
def test_batches_are_broadcast(left: str, right: str) -> None:
    """Either side, or both, and sides of fewer dimensions; the sizes are symbols."""
    body = f"graph(x: float[{left}], w: float[{right}]) -> (y) {{ z = MatMul(x, w) y = Neg(z) }}"
    session = cpu_session(body)
    for size in (2, 1, 4):
        shapes = [tuple(size if dim == "B" else int(dim) for dim in side.split(", ")) for side in (left, right)]
        feeds = {"x": _x(*shapes[0]), "w": _x(*shapes[1], seed=1)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


def test_a_constant_batch_of_one_is_packed_once() -> None:
    """As a matrix is."""
    body = "graph(x: float[B, 7, 9]) -> (y) { w: float[1, 9, 5] = ... 1 y = MatMul(x, w) }"
    assert steps_of(body) == ["MatMul"]
    assert_close(run_cpu(body, {"x": _x(3, 7, 9)})[0], reference(body, {"x": _x(3, 7, 9)}, double=True)[0], 2e-6)


@pytest.mark.parametrize("transposed", [0, 1])
def test_rows_of_another_length_than_columns_are_an_error(transposed: int) -> None:
    """Where they are known only when the model runs."""
    shape = "7, 9" if transposed else "9, 7"
    body = f"graph(x: float[m, k]) -> (y) {{ w: float[{shape}] = ... 1 y = Gemm(x, w) {{transB = {transposed}}} }}"
    session = cpu_session(body)
    assert_close(session.run(None, {"x": _x(3, 9)})[0], reference(body, {"x": _x(3, 9)}, double=True)[0], 2e-6)
    with pytest.raises(InvalidArgument, match="A has rows of 2 elements, B columns of 9"):
        session.run(None, {"x": _x(3, 2)})


def test_tails_join() -> None:
    """A bias, a residual of every element, and an activation; the same weights may be read by two nodes."""
    body = """graph(x: float[n, s, 24]) -> (y: float[n, s, 24], z: float[n, s, 24]) {
        w: float[24, 24] = ... 1 b: float[24] = ... 2
        p = MatMul(x, w) q = Add(p, b) r = Add(x, q) y = Gelu(r) z = MatMul(y, w) }"""
    assert steps_of(body) == ["MatMul+Add+Add+Gelu", "MatMul"]
    session = cpu_session(body)
    for n, s in ((1, 1), (2, 17)):
        feeds = {"x": _x(n, s, 24)}
        for found, exact in zip(session.run(None, feeds), reference(body, feeds, double=True), strict=True):
            assert_close(found, exact, 3e-6)


@pytest.mark.parametrize("kind", ["Gemm", "MatMul"])
def test_a_column_is_added_in_the_store(kind: str) -> None:
    """One element for each row, as distances from centers have it."""
    product = "y = Gemm(x, w, c)" if kind == "Gemm" else "p = MatMul(x, w) y = Add(c, p)"
    body = f"""graph(x: float[m, 9], c: float[m, 1]) -> (y: float[m, 37]) {{ w: float[9, 37] = ... 1 {product} }}"""
    assert len(steps_of(body)) == 1
    session = cpu_session(body)
    for rows in (1, 6, 20):
        feeds = {"x": _x(rows, 9), "c": _x(rows, 1, seed=1)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


def test_special_values() -> None:
    """NaN and infinities go where they belong, also beside the columns that fill up the last panel."""
    body = "graph(x: float[3, 2]) -> (y: float[3, 5]) { w: float[2, 5] = ... 1 y = MatMul(x, w) }"
    x = np.array([[np.nan, 1], [np.inf, 1], [0, 1]], np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(run_cpu(body, {"x": x})[0], reference(body, {"x": x})[0], rtol=1e-6)


def test_threads_and_batches_do_not_change_bits() -> None:
    """Two threads, or some of the rows alone, give the same."""
    body = "graph(x: float[m, 300]) -> (y: float[m, 200]) { w: float[300, 200] = ... 1 y = MatMul(x, w) }"
    x = _x(150, 300)
    (whole,) = run_cpu(body, {"x": x})
    assert_same_bits(run_cpu(body, {"x": x}, threads=2)[0], whole)
    assert_same_bits(run_cpu(body, {"x": x[70:73]})[0], whole[70:73])


@pytest.mark.parametrize(
    "body",
    [
        "graph(x: bfloat16[2, 3]) -> (y: bfloat16[2, 4]) { w: bfloat16[3, 4] = ... 1 y = MatMul(x, w) }",
        "graph(x: float[2, n], w: float[m, 4]) -> (y: float[2, 4]) { y = MatMul(x, w) }",
    ],
)
def test_what_is_declined(body: str) -> None:
    """Other types, and inner dimensions that are not known to agree."""
    assert declined(body)


@pytest.mark.parametrize("isa", LEVELS)
def test_a_constant_vector_is_a_matrix_of_one_column(isa: str) -> None:
    """The result has no dimension for it; what follows is computed for each element."""
    body = """graph(x: float[n, 3, m, 37], r: float[n, 3, m], q: float[m]) -> (y: float[n, 3, m], z: float[n, 3, m]) {
        w: float[37] = ... 1 k: float[] = 2.0
        p = MatMul(x, w) a = Add(p, r) b = Mul(a, k) y = Relu(b) z = Add(p, q) }"""
    session = cpu_session(body, isa=isa)
    for n, m in ((1, 1), (2, 5), (0, 3), (1, 17)):
        feeds = {"x": _x(n, 3, m, 37), "r": _x(n, 3, m, seed=1), "q": _x(m, seed=2)}
        for ours, theirs in zip(session.run(None, feeds), reference(body, feeds, double=True), strict=True):
            assert_close(ours, theirs, 3e-6)


def test_a_vector_of_no_elements_makes_zeros() -> None:
    """Sums of nothing."""
    body = "graph(x: float[2, 3, 0]) -> (y: float[2, 3]) { w: float[0] = [] y = MatMul(x, w) }"
    assert run_cpu(body, {"x": _x(2, 3, 0)})[0].tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("left", ["k", "m, k", "1, m, k", "1, 1, m, k"])
@pytest.mark.parametrize("right", ["k, 5", "b, k, 5", "a, b, k, 70"])
@pytest.mark.parametrize("isa", LEVELS)
def test_one_left_side_for_all_matrices(isa: str, left: str, right: str) -> None:
    """A vector, or a matrix, times each matrix of a batch; what follows is computed in the store."""
    columns = right.split(", ")[-1]
    body = f"""graph(x: float[{left}], w: float[{right}]) -> (y) {{ c: float[{columns}] = ... 3 p = MatMul(x, w) s = Add(p, c)
        y = Relu(s) }}"""
    session = cpu_session(body, isa=isa)
    for sizes in ({"a": 2, "b": 3, "m": 7, "k": 16, "1": 1}, {"a": 1, "b": 1, "m": 1, "k": 9, "1": 1}):
        shapes = [[sizes.get(dim) or int(dim) for dim in text.split(", ")] for text in (left, right)]
        feeds = {"x": _x(*shapes[0]), "w": _x(*shapes[1], seed=1)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


@pytest.mark.parametrize("left", ["k", "m, k", "2, m, k"])
def test_computed_vectors_on_the_right(left: str) -> None:
    """They are matrices of one column; what is added goes along the rows."""
    body = f"graph(x: float[{left}], v: float[k]) -> (y) {{ p = MatMul(x, v) y = Relu(p) }}"
    session = cpu_session(body)
    for m, k in ((7, 16), (1, 5), (0, 3)):
        shape = [{"m": m, "k": k}.get(dim) or int(dim if dim.isdigit() else 0) for dim in left.split(", ")]
        feeds = {"x": _x(*shape), "v": _x(k, seed=1)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 3e-6)


@pytest.mark.parametrize("columns", [3, 64, 70])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("isa", LEVELS)
def test_gemm_of_computed_matrices(isa: str, is_transposed: bool, columns: int) -> None:
    """As they are, and transposed; beta scales nothing where there is no C."""
    shape, attributes = (f"{columns}, k", "transB = 1, beta = 0.0") if is_transposed else (f"k, {columns}", "beta = 0.0")
    body = f"""graph(x: float[m, k], w: float[{shape}], c: float[{columns}]) -> (y, z) {{
        p = Gemm(x, w) {{{attributes}}} y = Relu(p) z = Gemm(x, w, c) {{transB = {int(is_transposed)}}} }}"""
    session = cpu_session(body, isa=isa)
    for m, k in ((7, 16), (1, 1), (0, 3)):
        feeds = {"x": _x(m, k), "w": _x(*((columns, k) if is_transposed else (k, columns)), seed=1), "c": _x(columns, seed=2)}
        for found, exact in zip(session.run(None, feeds), reference(body, feeds, double=True), strict=True):
            assert_close(found, exact, 3e-6)


def test_panels_that_are_packed_in_the_run_hold_zeros_behind_the_last_column() -> None:
    """They are multiplied like the others: numbers that happen to lie there may be denormal, which takes many times as long."""
    held = cpu_session("graph(x: float[5, 7], w: float[7, 9]) -> (y: float[5, 9]) {\ny = MatMul(x, w)\n}")
    assert steps_of("graph(x: float[5, 7], w: float[7, 9]) -> (y: float[5, 9]) {\ny = MatMul(x, w)\n}") == ["Pack", "MatMul"]
    program = held._runner.built.executor.only.step.program
    shapes = ((5, 7), (7, 9))
    bound = program.bind(shapes)
    scratch = np.full(bound.scratch_bytes // 4, np.float32(1e-40))
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    program.run(bound, arrays, [np.empty((5, 9), np.float32)], scratch)
    assert not ((scratch != 0) & (np.abs(scratch) < 1e-37)).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("cached", [0, 1 << 18])
def test_narrow_weights_stay_narrow(isa: str, dtype: str, cached: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are packed in their own type, but for few, and multiplied in float32."""
    monkeypatch.setattr(matmul, "_CACHED_ELEMENTS", cached)
    body = f"graph(x: {dtype}[m, 70]) -> (y: {dtype}[m, 67]) {{ w: {dtype}[70, 67] = ... 1 y = MatMul(x, w) }}"
    session = cpu_session(body, isa=isa)
    for rows in (1, 6, 13):
        x = _x(rows, 70).astype(DataType.parse(dtype).numpy)
        wanted = reference(body, {"x": x}, double=True)[0].astype(np.float64)
        np.testing.assert_allclose(session.run(None, {"x": x})[0].astype(np.float64), wanted, rtol=1e-2, atol=1e-2)


def _numbers(dtype: str, *shape: int, seed: int = 0) -> Array:
    drawn = _x(*shape, seed=seed).astype(np.float64)
    return drawn if dtype == "double" else (drawn * 1e6).astype(np.int64).astype(dtype)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("dtype", ["double", "int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("columns", [1, 7, 9, 33, 70])
def test_other_types(dtype: str, columns: int, isa: str) -> None:
    """With a constant right side or a computed one, alone and in batches, and what follows in the store."""
    w = _numbers(dtype, 20, columns, seed=1)
    body = f"""graph(x: {dtype}[n, 5, 20], w: {dtype}[20, {columns}], b: {dtype}[n, 20, {columns}]) -> (p, q, r) {{
        c: {dtype}[{columns}] = {[*range(columns)]} k: {dtype}[20, {columns}] = {w.ravel().tolist()}
        s = MatMul(x, w) p = Add(s, c) q = MatMul(x, b) r = MatMul(x, k) }}"""
    feeds = {"x": _numbers(dtype, 3, 5, 20), "w": w, "b": _numbers(dtype, 3, 20, columns, seed=2)}
    for found, exact in zip(run_cpu(body, feeds, isa=isa), reference(body, feeds), strict=True):
        if dtype == "double":
            assert_close(found, exact, 1e-14)
        else:
            assert_same_bits(found, exact)


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("attributes", ["", "alpha = 2.5, beta = 0.5,"])
def test_gemm_of_float64(attributes: str, transposed: int) -> None:
    """With factors, a bias and either side transposed."""
    right = "6, 9" if transposed else "9, 6"
    body = f"""graph(x: double[9, 4], w: double[{right}], c: double[6]) -> (y) {{
        y = Gemm(x, w, c) {{{attributes} transA = 1, transB = {transposed}}} }}"""
    feeds = {"x": _numbers("double", 9, 4), "w": _numbers("double", *map(int, right.split(", "))), "c": _numbers("double", 6)}
    assert_close(run_cpu(body, feeds)[0], reference(body, feeds)[0], 1e-14)


def test_gemm_of_integers() -> None:
    """Without factors: with them the result is rounded, which is the reference's."""
    body = "graph(x: int64[3, 4], w: int64[4, 5], c: int64[5]) -> (y) { y = Gemm(x, w, c) }"
    feeds = {"x": _numbers("int64", 3, 4), "w": _numbers("int64", 4, 5), "c": _numbers("int64", 5)}
    assert_same_bits(run_cpu(body, feeds)[0], reference(body, feeds)[0])
    assert "factors (2.0, 1.0) of integers" in declined(body.replace("(x, w, c)", "(x, w, c) {alpha = 2.0}"))[0]


@pytest.mark.parametrize("columns", [1, 8, 16, 17, 40])
def test_batches_of_small_matrices(columns: int) -> None:
    """The bits of a matrix are the same in a batch as alone, and as among more columns."""
    body = f"graph(x: float[n, 8, 9], w: float[n, 9, {columns}]) -> (y) {{ y = MatMul(x, w) }}"
    session, feeds = cpu_session(body), {"x": _x(50, 8, 9), "w": _x(50, 9, columns, seed=1)}
    found = session.run(None, feeds)[0]
    assert_close(found, reference(body, feeds, double=True)[0], 2e-6)
    alone = session.run(None, {name: array[7:8] for name, array in feeds.items()})[0]
    assert_same_bits(alone, found[7:8])
    assert_same_bits(run_cpu(body, feeds, threads=2)[0], found)


@pytest.mark.parametrize("tail", ["", "b = Add(p, bias) e = Gelu(b) y = Add(e, r)"])
@pytest.mark.parametrize("N", [64, 200, 257])
def test_few_rows_have_the_bits_that_they_have_among_more(N: int, tail: str) -> None:
    """From one row to more than a tile has; also behind several chains of sums, and with what follows the product in its store."""
    w, bias = (np.random.default_rng(N).standard_normal(shape).astype(np.float32) for shape in ((700, N), (N,)))
    product = "p = MatMul(x, w)" if tail else "y = MatMul(x, w)"
    body = f"graph(x: float[m, 700], w: float[700, {N}], bias: float[{N}], r: float[m, {N}]) -> (y) {{ {product} {tail} }}"
    session, random = cpu_session(body), np.random.default_rng(1)
    x, r = (random.standard_normal((13, width)).astype(np.float32) for width in (700, N))
    (whole,) = session.run(None, {"x": x, "w": w, "bias": bias, "r": r})
    for m in range(1, 9):
        (found,) = session.run(None, {"x": x[:m], "w": w, "bias": bias, "r": r[:m]})
        np.testing.assert_array_equal(found, whole[:m])


@pytest.mark.parametrize("K", [32, 64, 100, 128, 300])
def test_short_sums_over_a_computed_matrix_are_exact(K: int) -> None:
    """About as those of groups of four rows, which are added up one after another."""
    body = f"graph(x: float[1, {K}], w: float[{K}, 500]) -> (y: float[1, 500]) {{ y = MatMul(x, w) }}"
    x, w = _x(1, K), _x(K, 500, seed=1)
    exact = x.astype(np.float64) @ w
    by_fours = np.zeros((1, 500), np.float32)
    for k in range(0, K, 4):
        a, b, c, d = (x[0, k + i] * w[k + i] for i in range(4))
        by_fours += (a + b) + (c + d)
    ours, theirs = (np.square(found - exact).mean() for found in (run_cpu(body, {"x": x, "w": w})[0], by_fours))
    assert ours < 1.44 * theirs
