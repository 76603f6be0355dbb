"""Element-wise operators and chains of models: every operator, broadcasting, types, sizes."""

import itertools

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close, assert_same_bits, cpu_session, declined, reference, run_cpu, steps_of

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.providers.cpu.expressions import ELEMENTWISE
from sardonyx.providers.cpu.quantization import QUANTIZATION

_UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log "
    "Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh "
    "ThresholdedRelu"
).split()
_BINARY = ["Add", "Div", "Max", "Mean", "Min", "Mul", "PRelu", "Pow", "Sub", "Sum"]
_COMPARISONS = ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]
_BITS = ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]
_OTHERS = {"And", "BitwiseNot", "Cast", "Clip", "IsInf", "IsNaN", "Mod", "Not", "Or", "SwiGLU", "Swish", "Where", "Xor"}


def _x(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _all(operators: list[str], inputs: str, kind: str = "float") -> str:
    """A model that applies each operator to the same inputs."""
    names = inputs.split(", ")
    given = ", ".join(f"{name}: float[n]" for name in names)
    outputs = ", ".join(f"y{op}: {kind}[n]" for op in operators)
    return f"graph({given}) -> ({outputs}) {{ {' '.join(f'y{op} = {op}({inputs})' for op in operators)} }}"


def test_every_operator_is_tested() -> None:
    """The lists of this file name them all; quantization has a test file of its own, shifts are tested by types."""
    assert {*_UNARY, *_BINARY, *_BITS, *_COMPARISONS, *_OTHERS, *QUANTIZATION, "BitShift"} == set(ELEMENTWISE)


@pytest.mark.parametrize("isa", LEVELS)
def test_unary_operators(isa: str) -> None:
    """Of one session, on sizes around a vector; within the domain of each and outside."""
    body = _all(_UNARY, "x")
    session = cpu_session(body, isa=isa, opset=22)
    for size in (0, 1, 7, 16, 33):
        for x in (_x(size), _x(size) * 20, np.abs(_x(size)) % 1):
            exact = reference(body, {"x": x}, opset=22, double=True)
            for name, found, wide in zip(_UNARY, session.run(None, {"x": x}), exact, strict=True):
                with np.errstate(over="ignore"):
                    assert_close(found, np.asarray(wide, np.float64), 2e-6 if name not in ("Tan", "Cosh", "Sinh") else 2e-5)


def test_special_values() -> None:
    """NaN, infinities, zeros and denormals go through as in float64."""
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 1.0, -1.0, 0.5, -0.5, 2.5], np.float32)
    body = _all(_UNARY, "x")
    with np.errstate(all="ignore"):
        expected = [wide.astype(np.float32) for wide in reference(body, {"x": x}, opset=22, double=True)]
    for name, found, wanted in zip(_UNARY, run_cpu(body, {"x": x}, opset=22), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-37, err_msg=name)


@pytest.mark.parametrize("isa", LEVELS)
def test_binary_operators(isa: str) -> None:
    """Of numbers, NaN and infinities among them."""
    numbers = [1.5, -2.0, 0.0, np.inf, -np.inf, np.nan, 3.0]
    x, z = np.array(list(itertools.product(numbers, repeat=2)), np.float32).T
    body = _all(_BINARY, "x, z")
    with np.errstate(all="ignore"):
        expected = reference(body, {"x": x, "z": z})
    for name, found, wanted in zip(_BINARY, run_cpu(body, {"x": x, "z": z}, isa=isa), expected, strict=True):
        wanted = np.where(x >= 0, x, wanted) if name == "PRelu" else wanted
        np.testing.assert_allclose(found, wanted, rtol=2e-6, err_msg=name)
    compared = _all(_COMPARISONS, "x, z", "bool")
    for found, wanted in zip(run_cpu(compared, {"x": x, "z": z}, isa=isa), reference(compared, {"x": x, "z": z}), strict=True):
        assert_same_bits(found, wanted)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8", "int8", "double"])
def test_arithmetic_of_other_types(kind: str) -> None:
    """Wrapping around; quotients and remainders as in C and Python."""
    outputs = ", ".join(f"{name}: {kind}[n]" for name in "abcdf")
    body = f"""graph(x: {kind}[n], z: {kind}[n]) -> ({outputs}, e: bool[n]) {{
        a = Add(x, z) b = Mul(x, z) c = Sub(x, z) d = Div(x, z) e = Less(x, z) f = Max(x, z) }}"""
    generator = np.random.default_rng(0)
    x, z = generator.integers(0, 100, 37).astype(kind), generator.integers(1, 50, 37).astype(kind)
    with np.errstate(over="ignore"):
        expected = reference(body, {"x": x, "z": z})
    for found, wanted in zip(run_cpu(body, {"x": x, "z": z}), expected, strict=True):
        assert_same_bits(found, wanted)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_bits_of_integers(kind: str) -> None:
    """Of every size, signed or not."""
    lines = " ".join(f"y{op} = {op}(x, z)" for op in _BITS)
    body = f"graph(x: {kind}[n], z: {kind}[n]) -> ({', '.join(f'y{op}' for op in _BITS)}, n) {{ {lines} n = BitwiseNot(x) }}"
    feeds = {name: np.frombuffer(np.random.default_rng(seed).bytes(37 * 8), kind) for seed, name in enumerate("xz")}
    for found, wanted in zip(run_cpu(body, feeds), reference(body, feeds), strict=True):
        assert_same_bits(found, wanted)


def test_masks() -> None:
    """Bools, any byte but 0 of which is True, and what chooses by them."""
    body = """graph(p: bool[n], q: bool[n], x: float[n], z: float[n]) -> (
        a: bool[n], b: bool[n], c: bool[n], d: bool[n], w: float[n], i: int64[n], e: bool[n]) {
        a = And(p, q) b = Or(p, q) c = Xor(p, q) d = Not(p) w = Where(p, x, z) i = Cast(p) {to = 7} e = Equal(p, q) }"""
    p, q = (np.array(column) for column in ([True, True, False, False] * 9, [True, False] * 18))
    feeds = {"p": p, "q": q, "x": _x(36), "z": _x(36, seed=1)}
    for found, wanted in zip(run_cpu(body, feeds), reference(body, feeds), strict=True):
        assert_same_bits(found, wanted)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float", "int64"),
        ("float", "int32"),
        ("int64", "float"),
        ("float", "bool"),
        ("bool", "float"),
        ("int64", "int32"),
        ("float", "double"),
        ("double", "float"),
        ("float", "float16"),
        ("float16", "float"),
        ("int32", "bool"),
        ("float", "uint8"),
    ],
)
def test_conversions(source: str, target: str) -> None:
    """Between all types that masks and indices take."""
    body = f"graph(x: {source}[n]) -> (y: {target}[n]) {{ y = Cast(x) {{to = {int(DataType[target.upper()])}}} }}"
    scale = 1.25 if source in ("float", "double") else 1
    x = (np.random.default_rng(0).integers(0, 5, 37) * scale).astype(DataType[source.upper()].numpy)
    assert_same_bits(run_cpu(body, {"x": x})[0], reference(body, {"x": x})[0])


_SHAPES = [
    ((2, 3, 4), (2, 3, 4)),
    ((2, 3, 4), (4,)),
    ((2, 3, 4), (3, 1)),
    ((2, 3, 4), ()),
    ((2, 1, 4), (3, 1)),
    ((1, 3, 1), (2, 1, 17)),
    ((5,), (2, 1, 1)),
    ((0, 3), (3,)),
    ((1,), (1, 1)),
]


@pytest.mark.parametrize(("left", "right"), _SHAPES)
def test_broadcasting(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """In both directions, of dimensions that are numbers."""
    out = np.broadcast_shapes(left, right)
    texts = [", ".join(map(str, shape)) for shape in (left, right, out)]
    body = f"graph(x: float[{texts[0]}], z: float[{texts[1]}]) -> (y: float[{texts[2]}]) {{ y = Sub(x, z) }}"
    feeds = {"x": _x(*left), "z": _x(*right, seed=1)}
    assert_same_bits(run_cpu(body, feeds)[0], feeds["x"] - feeds["z"])


def test_sizes_that_may_be_one() -> None:
    """A dimension that is another symbol than the output's may be 1, or equal, but nothing else."""
    body = "graph(x: float[n, s, 4], m: float[k, 1, 4]) -> (y: float[n, s, 4]) { a = Relu(x) b = Mul(a, a) y = PRelu(b, m) }"
    session = cpu_session(body)
    for n, k in ((3, 3), (3, 1), (1, 1)):
        feeds = {"x": _x(n, 5, 4), "m": _x(k, 1, 4, seed=1)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds)[0], 1e-6)
    with pytest.raises(InvalidArgument, match="cannot be broadcast"):
        session.run(None, {"x": _x(3, 5, 4), "m": _x(2, 1, 4)})


def test_a_chain_is_one_step() -> None:
    """With everything that it reads, and numbers as part of the code."""
    body = """graph(x: float[n, 40], g: float[40], r: float[n, 1]) -> (y: float[n, 40]) {
        e: float[] = 1e-5 two: float[1] = [2.0]
        a = Add(x, e) b = Sqrt(a) c = Div(x, b) d = Mul(c, g) f = Pow(d, two) h = Sub(f, r) y = Sigmoid(h) }"""
    assert len(steps_of(body)) == 1
    session = cpu_session(body)
    for n in (1, 3, 600):
        feeds = {"x": np.abs(_x(n, 40)), "g": _x(40, seed=1), "r": _x(n, 1, seed=2)}
        assert_close(session.run(None, feeds)[0], reference(body, feeds, double=True)[0], 2e-6)


def test_limits_of_clip() -> None:
    """As attributes and as inputs; the upper one wins where they cross."""
    x = _x(37)
    calls = [("Clip(x) {min = -0.5, max = 0.5}", 6), ("Clip(x, l, h)", 13), ("Clip(x, _, h)", 13), ("Clip(x, h, l)", 13)]
    for call, opset in calls:
        body = f"graph(x: float[37]) -> (y: float[37]) {{ l: float[] = -0.5 h: float[] = 0.5 y = {call} }}"
        assert_same_bits(run_cpu(body, {"x": x}, opset=opset)[0], reference(body, {"x": x}, opset=opset)[0])


def test_whole_powers_and_remainders() -> None:
    """Of both signs."""
    body = """graph(x: float[n], i: int64[n], j: int64[n]) -> (a: float[n], b: int64[n], c: int64[n]) {
        k: float[] = -1.0
        a = Pow(x, k) b = Mod(i, j) c = Mod(i, j) {fmod = 1} }"""
    i, j = (np.array(column) for column in zip(*itertools.product([-7, -1, 0, 1, 7], [-3, -1, 1, 3]), strict=True))
    feeds = {"x": _x(20), "i": i, "j": j}
    for found, wanted in zip(run_cpu(body, feeds), reference(body, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_threads_do_not_change_bits() -> None:
    """Of a map of many tasks."""
    body = "graph(x: float[n, 300], g: float[300]) -> (y: float[n, 300]) { a = Exp(x) y = Mul(a, g) }"
    feeds = {"x": _x(200, 300), "g": _x(300)}
    assert_same_bits(run_cpu(body, feeds, threads=2)[0], run_cpu(body, feeds)[0])


def test_inputs_that_are_not_dense() -> None:
    """Views of every second element, backwards or transposed, are read right."""
    body = "graph(x: float[4, 6]) -> (y: float[4, 6]) { y = Neg(x) }"
    session = cpu_session(body)
    big = _x(12, 12)
    for x in (big[::3, ::2], big[:4, 5::-1], big[:6, :4].T):
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], -x)


@pytest.mark.parametrize(
    ("body", "opset"),
    [
        ("graph(x: float[2, 3, 3], b: float[3]) -> (y: float[2, 3, 3]) { y = Add(x, b) {axis = 1, broadcast = 1} }", 6),
        ("graph(x: float[2, 3, 3], b: float[3]) -> (y: float[2, 3, 3]) { y = PRelu(x, b) }", 6),
        ("graph(x: string[2]) -> (y: bool[2]) { y = Equal(x, x) }", 21),
    ],
)
def test_what_is_declined(body: str, opset: int) -> None:
    """Old ways to broadcast, types without arithmetic."""
    assert declined(body, opset=opset)


@pytest.mark.parametrize(
    "body",
    [
        "graph(x: float[2, n], z: float[2, m]) -> (y) { y = Add(x, z) }",
        "graph(x: float[n, 4], z: float[m, 4]) -> (y) { y = Add(x, z) }",
        "graph(x: float[n], z: float[2, m]) -> (y) { a = Neg(x) y = Mul(a, z) }",
        "graph(x: float[n, 2, n], z: float[m, 1, m]) -> (y) { a = Sub(x, z) y = Exp(a) }",
        "graph(x: float[3, n], w: float[3, 5], z: float[3, m]) -> (y) { p = Mul(x, x) y = Add(p, z) }",
    ],
)
def test_sizes_show_what_is_repeated(body: str) -> None:
    """Along the last dimension too: either is 1, or both are equal, from run to run in one session."""
    session, rng = cpu_session(body), np.random.default_rng(0)
    for n, m in ((1, 5), (5, 1), (5, 5), (1, 1), (33, 33), (1, 40), (40, 1)):
        shapes = {
            item.name: [{"n": n, "m": m}.get(dim, dim) if isinstance(dim, str) else dim for dim in item.shape]
            for item in session.get_inputs()
        }
        feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        np.testing.assert_allclose(session.run(None, feeds)[0], reference(body, feeds)[0], rtol=1e-6)


def test_sizes_that_do_not_broadcast_are_an_error() -> None:
    """Which states both."""
    session = cpu_session("graph(x: float[2, n], z: float[2, m]) -> (y) { y = Add(x, z) }")
    with pytest.raises(InvalidArgument, match="cannot be broadcast"):
        session.run(None, {"x": np.ones((2, 3), np.float32), "z": np.ones((2, 4), np.float32)})


def test_a_node_that_may_repeat_joins_no_product() -> None:
    """A product's store walks what it reads in a way that is known."""
    body = "graph(x: float[3, 4], w: float[4, n], z: float[3, m]) -> (y) { p = MatMul(x, w) y = Add(p, z) }"
    session, rng = cpu_session(body), np.random.default_rng(0)
    for n, m in ((5, 5), (5, 1), (1, 5)):
        feeds = {
            name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("x", (3, 4)), ("w", (4, n)), ("z", (3, m)))
        }
        np.testing.assert_allclose(session.run(None, feeds)[0], reference(body, feeds)[0], atol=1e-5)


@pytest.mark.parametrize(
    "node", ["Celu(x) {alpha = 0.0}", "Celu(x) {alpha = inf}", "Celu(x) {alpha = nan}", 'Gelu(x) {approximate = "x"}']
)
def test_attributes_that_mean_no_function_are_declined(node: str) -> None:
    """What their formulas give, or why they give nothing, is the reference provider's matter."""
    name = node.split("{")[1].split()[0]
    assert f"{name}=" in declined(f"graph(x: float[2]) -> (y: float[2]) {{ y = {node} }}")[0]


def test_hundreds_of_inputs_are_declined() -> None:
    """A kernel has an argument for each: the reference provider takes what has more than 128."""
    inputs = ", ".join(f"x{i}: float[2]" for i in range(129))
    names = ", ".join(f"x{i}" for i in range(129))
    assert "129 inputs" in declined(f"graph({inputs}) -> (y: float[2]) {{ y = Max({names}) }}")[0]


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(
    "shapes", [("n,3", "3"), ("n,4", "n,1"), ("2,n,2", "n,2"), ("2,n,5", "2,1,5"), ("n,7", "1,1"), ("n,4", "1,4")]
)
@pytest.mark.parametrize("kind", ["float", "float16", "double", "int64", "int8"])
def test_short_rows_that_are_broadcast(kind: str, shapes: tuple[str, str], isa: str) -> None:
    """Several share a vector, whatever their number, as the reference provider has them; division by nothing does no harm."""
    first, second = shapes
    body = f"""graph(x: {kind}[{first}], w: {kind}[{second}]) -> (y: {kind}[{first}], z: bool[{first}]) {{
        p = Mul(x, w) y = Div(p, w) z = Equal(x, w) }}"""
    session = cpu_session(body, isa=isa)
    for n in (1, 2, 9, 70):
        rng = np.random.default_rng(n)
        feed = {
            name: rng.integers(1, 6, [n if dim == "n" else int(dim) for dim in text.split(",")]).astype(DataType.parse(kind).numpy)
            for name, text in (("x", first), ("w", second))
        }
        for found, expected in zip(session.run(None, feed), reference(body, feed), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["float", "double", "float16", "bfloat16"])
@pytest.mark.parametrize("alpha", ["", " {alpha = 1.7}"])
def test_swiglu(alpha: str, kind: str) -> None:
    """Swish(a) b, of two tensors of one shape; half types are rounded once."""
    body = f"graph(a: {kind}[n, 3], b: {kind}[n, 3]) -> (y) {{ y = SwiGLU(a, b){alpha} }}"
    dtype = DataType[{"double": "DOUBLE"}.get(kind, kind.upper())].numpy
    feeds = {"a": _x(7, 3).astype(dtype), "b": _x(7, 3, seed=1).astype(dtype)}
    exact = reference(body, feeds, opset=28)[0].astype(np.float64)
    step = {"float": 2e-6, "double": 1e-14, "float16": 2**-10, "bfloat16": 2**-7}[kind]
    found = run_cpu(body, feeds, opset=28)[0]
    assert found.dtype == dtype
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=step, atol=step)


def test_swiglu_broadcasts_nothing() -> None:
    """Shapes that are not known to be one are left to others."""
    body = "graph(a: float[n, 3], b: float[m, 3]) -> (y) { y = SwiGLU(a, b) }"
    assert "not known to be one" in declined(body, opset=28)[0]
