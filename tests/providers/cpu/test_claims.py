"""Claims: what they are asked about, and the reasons that they give."""

import ast
import dataclasses
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from support.cpu_run import declined
from support.models import graph, model

import sardonyx.providers.cpu.kernels
from sardonyx import InferenceSession
from sardonyx.codegen.target import host_target
from sardonyx.errors import EPFail, InvalidArgument, InvalidGraph, ModelLoadCanceled, SardonyxError
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Node
from sardonyx.ops.schema import NHWC_DOMAIN
from sardonyx.provider import GraphView
from sardonyx.providers.cpu import claims
from sardonyx.providers.cpu import kernels as families
from sardonyx.providers.cpu.claims import Claimed, NodeClaim, claim_node, find_claim, lowers
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.provider import NAME, CpuProvider


@dataclasses.dataclass(frozen=True)
class _Spec:
    axis: int


def _claim(node: Node) -> _Spec | str:
    return _Spec(node.get("axis")) if "axis" in node.attributes else "it has no axis"


@pytest.fixture(scope="module")
def seen() -> list[_Spec]:
    """An operator `test.Sum2` is registered; the specifications that it has lowered."""
    specs: list[_Spec] = []

    @lowers("Sum2", claim=_claim, domain="test", inputs=2)
    def lower(low: Lowering, group: Group, spec: _Spec) -> None:
        specs.append(spec)

    return specs


def _sum2(inputs: str, attributes: str = "{axis = 3}") -> Claimed | str:
    return claim_node(next(iter(graph(f"graph({inputs}) -> (y: float[2]) {{ y: float[2] = test.Sum2(x, z) {attributes} }}"))))


def test_what_a_claim_finds_out_is_handed_on(seen: list[_Spec]) -> None:
    """The lowering gets the specification that the claim has made."""
    claimed = _sum2("x: float[2], z: float[2]")
    assert isinstance(claimed, Claimed)
    claimed.lower(Lowering(host_target(), 1), Group(claimed, []))
    assert seen == [claimed.spec] == [_Spec(3)]


def test_a_refusal_is_the_reason_of_the_family(seen: list[_Spec]) -> None:
    """In its own words."""
    assert _sum2("x: float[2], z: float[2]", "") == "it has no axis"


def test_claims_are_asked_about_tensors_of_known_type_and_rank(seen: list[_Spec]) -> None:
    """All else is refused before, with the input's number and name."""
    assert _sum2("x: float[2], z: float") == "input 1 (z) is a tensor whose rank is not known"
    assert _sum2("x, z: float[2]") == "input 0 (x) is of a type that is not known"
    assert _sum2("x: float[2], z: seq(float[2])") == "input 1 (z) is no tensor, but seq(tensor(float))"


def test_inputs_that_an_operator_needs_are_there(seen: list[_Spec]) -> None:
    """A node that leaves one out is refused by its number."""
    (node,) = graph("graph(x: float[2]) -> (y: float[2]) { y: float[2] = test.Sum2(x) {axis = 0} }")
    assert claim_node(node) == "input 1 is left out"


def _reads_attributes(function: ast.FunctionDef) -> bool:
    """Whether it asks a node for an attribute by name."""
    calls = (part for part in ast.walk(function) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute))
    return any(call.func.attr in _READS and call.args and isinstance(call.args[0], ast.Constant) for call in calls)


_READS = ("flag", "get", "integer", "integers", "number", "numbers", "tensor", "text", "texts")
"""The methods of a node that read an attribute."""


def _refuses(error: SardonyxError) -> None:
    """Lower a node of a lowering that raises `error`."""

    def lower(low: Lowering, group: Group) -> None:
        raise error

    (node,) = graph("graph(x: float[2]) -> (y: float[2]) { y: float[2] = Neg(x) }")
    claims.lower_nodes(Lowering(host_target(), 1), {node: Claimed(node, None, lower, lambda *_: False)}, {}, [node.output])


@pytest.mark.parametrize("error", [InvalidArgument("size = -1"), EPFail("size = -1"), InvalidGraph("size = -1")])
def test_what_a_lowering_refuses_is_said_of_its_node(error: SardonyxError) -> None:
    """Whatever its class, which stays."""
    with pytest.raises(type(error), match=r'^node that makes "y" \(Neg, opset 21\): size = -1$'):
        _refuses(error)


def test_a_load_that_ends_while_a_node_is_lowered_is_no_fault_of_the_node() -> None:
    """The message stays as it is."""
    with pytest.raises(ModelLoadCanceled, match=r"^cancelled$"):
        _refuses(ModelLoadCanceled("cancelled"))


def test_attributes_are_read_by_claims_only() -> None:
    """No function that has a Lowering reads one: a specification says all that a lowering needs."""
    lowering = []
    for tree in _trees():
        functions = [part for part in ast.walk(tree) if isinstance(part, ast.FunctionDef)]
        lowering += [part for part in functions if any(ast.unparse(arg.annotation or arg) == "Lowering" for arg in part.args.args)]
    assert len(lowering) > 40
    assert not [function.name for function in lowering if _reads_attributes(function)]


def _trees() -> list[ast.Module]:
    paths = sorted(Path(sardonyx.providers.cpu.kernels.__file__).parent.parent.rglob("*.py"))
    return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


def test_attributes_are_read_by_kind() -> None:
    """`node.get`, which returns an attribute of any kind, occurs nowhere: an attribute of another kind is refused."""
    named = (part for tree in _trees() for part in ast.walk(tree) if isinstance(part, ast.Attribute))
    assert "node.get" not in {ast.unparse(part) for part in named}


WRONG_KIND = [
    ("AveragePool", "(x: float[1, 3, 8, 8]) -> (y: float[1, 3, 7, 7])", 'kernel_shape = "two"', "INTS"),
    ("ArgMax", "(x: float[2]) -> (y: int64[1])", "axis = 0.5", "INT"),
    ("Clip", "(x: float[2]) -> (y: float[2])", 'min = "zero"', "FLOAT"),
    ("Concat", "(x: float[2], z: float[2]) -> (y: float[4])", "axis = [0]", "INT"),
    ("CumSum", "(x: float[2], a: int64[]) -> (y: float[2])", "reverse = 1.0", "INT"),
    ("DepthToSpace", "(x: float[1, 4, 2, 2]) -> (y: float[1, 1, 4, 4])", 'blocksize = "2"', "INT"),
    ("Gather", "(x: float[2], i: int64[1]) -> (y: float[1])", "axis = [0]", "INT"),
    ("GatherND", "(x: float[2], i: int64[1]) -> (y: float[])", "batch_dims = 0.0", "INT"),
    ("Gelu", "(x: float[2]) -> (y: float[2])", "approximate = 1", "STRING"),
    ("Gemm", "(x: float[2, 2], z: float[2, 2]) -> (y: float[2, 2])", "transB = 1.0", "INT"),
    ("LayerNormalization", "(x: float[2], s: float[2]) -> (y: float[2])", 'epsilon = "small"', "FLOAT"),
    ("LeakyRelu", "(x: float[2]) -> (y: float[2])", "alpha = 1", "FLOAT"),
    ("LpNormalization", "(x: float[2]) -> (y: float[2])", "p = 1.0", "INT"),
    ("Pad", "(x: float[2], p: int64[2]) -> (y: float[4])", "mode = 1", "STRING"),
    ("ReduceSum", "(x: float[2], a: int64[1]) -> (y: float[1])", "keepdims = 1.0", "INT"),
    ("Resize", "(x: float[2], r: float[0], s: float[1]) -> (y: float[4])", "mode = 2", "STRING"),
    ("ScatterND", "(x: float[2], i: int64[1, 1], u: float[1]) -> (y: float[2])", "reduction = 0", "STRING"),
    ("Softmax", "(x: float[2]) -> (y: float[2])", 'axis = "last"', "INT"),
    ("Split", "(x: float[2]) -> (y: float[2])", "axis = 0.0", "INT"),
    ("Transpose", "(x: float[2, 2]) -> (y: float[2, 2])", "perm = 1", "INTS"),
    ("Trilu", "(x: float[2, 2]) -> (y: float[2, 2])", "upper = 1.0", "INT"),
]


@pytest.mark.parametrize(("op_type", "signature", "attribute", "kind"), WRONG_KIND, ids=[case[0] for case in WRONG_KIND])
def test_an_attribute_of_another_kind_is_a_reason(op_type: str, signature: str, attribute: str, kind: str) -> None:
    """A claim refuses it in the words of the view, and with no error of Python's."""
    made = graph(f"graph{signature} {{ y = {op_type}() {{{attribute}}} }}")
    (node,) = made
    node.set_inputs(made.inputs)
    node.output.type = made.outputs[0].type
    find = find_claim("", op_type) or find_claim(NHWC_DOMAIN, op_type)
    assert find is not None
    reason = find(node)
    assert isinstance(reason, str)
    assert re.fullmatch(rf"attribute '{attribute.split()[0]}' has type \w+ \(.*\), expected {kind}", reason)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "(x: float[2]) -> (y) { a: float[] = 0.5 y: float[2] = CumSum(x, a) }",
            "an axis that is no integer: indices of type float",
        ),
        (
            "(x: float[2]) -> (y) { a: float[1] = [nan] y: float[1] = ReduceSum(x, a) }",
            "axes has elements of type float32, expected integers",
        ),
        (
            "(x: float[2]) -> (y) { a: float[1] = [nan] y: float[1] = Slice(x, a, a) }",
            "starts has elements of type float32, expected integers",
        ),
        (
            "(x: float[2, 2]) -> (y) { y: float[2, 2] = Softmax(x) {axis = 2} }",
            "axis=2 is outside [-2, 1] for a tensor of rank 2; name an axis that it has",
        ),
    ],
)
def test_what_a_view_refuses_is_a_reason(body: str, reason: str) -> None:
    """Numbers of another type than integers, and axes that are not there."""
    assert claim_node(next(iter(graph(f"graph{body}")))) == reason


def test_operators_are_registered_once() -> None:
    """Twice is a mistake; what nobody registered is not found."""
    assert find_claim("", "Softmax") is not None
    assert find_claim("", "NoSuchOperator") is None
    assert find_claim("no.such.domain", "Softmax") is None
    with pytest.raises(ValueError, match="two lowerings of ai.onnx.Softmax"):
        lowers("Softmax", claim=_claim)(lambda low, group, spec: None)


def test_specifications_keep_no_weights() -> None:
    """A claim outlives the weights that are let go of after compiling."""
    made = graph("""graph(x: float[1, 16, 6, 6]) -> (y: float[1, 6, 6, 4]) { w: float[4, 16, 1, 1] = ... 1
        a: float[1, 4, 6, 6] = Conv(x, w) y = Transpose(a) {perm = [0, 2, 3, 1]} }""")
    claims = CpuProvider(host_target(), 1).capabilities(GraphView(made, tuple(made))).capabilities
    assert all(isinstance(claim, NodeClaim) for claim in claims)
    conv, transpose = (claim for claim in claims if isinstance(claim, NodeClaim))
    assert conv.claimed is None
    assert transpose.claimed is not None


CONV = "a: float[1, 4, 4, 4] = Conv(x, k)"


@pytest.mark.parametrize(
    "rest",
    ["y = Relu(a)", "v: float[2, 4, 1, 1] = ... 1 b: float[1, 2, 1, 1] = Conv(a, v) {strides = [5, 5]} y = Relu(b)"],
)
def test_a_convolution_with_filters_of_any_size_says_so(rest: str) -> None:
    """Whether or not another node of the model is converted to NHWC."""
    body = f"graph(x: float[1, 3, 6, 6], k: float[4, 3, K, 3]) -> (y) {{ {CONV} {rest} }}"
    session = InferenceSession(to_bytes(model(body)), providers=[NAME])
    reasons = [place.declined[NAME] for place in session.explain() if place.provider != NAME]
    assert ["which is not known before the model runs" in reason for reason in reasons] == [True]
    converted = [place.op_type for place in session.explain() if place.op_type.startswith(NHWC_DOMAIN)]
    assert len(converted) == rest.count("Conv")


def test_a_pool_whose_indices_are_read_is_not_converted() -> None:
    """Indices count in NCHW; a type that its kernel does not take is named."""
    body = "graph(x: %s[1, 3, 8, 8]) -> (y, z) { y, z = MaxPool(x) {kernel_shape = [2, 2]} }"
    assert declined(body % "float") == []
    assert declined(body % "int8") == ["places of elements of type int8"]


def test_an_operator_that_is_compiled_in_nhwc_only_says_so() -> None:
    """Where the provider keeps NCHW, or others have not converted the node."""
    body = "graph(x: float[1, 3, 8, 8], w: float[2, 3, 1, 1]) -> (y) { y = Conv(x, w) }"
    assert declined(body) == ["Conv is compiled in NHWC only, and this node stays in NCHW"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("(x: float[], z: float[3, 2]) -> (y) { y: float[2] = MatMul(x, z) }", "the left side is a scalar"),
        ("(x: float[2, 3], z: float[]) -> (y) { y: float[2] = MatMul(x, z) }", "the right side is a scalar"),
        ("(x: float[2, 3], z: float[4, 2]) -> (y) { y: float[2, 2] = MatMul(x, z) }", "the inner dimensions 3 and 4 differ"),
        (
            "(x: float[2, 3], z: float[m, 2]) -> (y) { y: float[2, 2] = MatMul(x, z) }",
            "that the inner dimensions 3 and m are equal depends on sizes",
        ),
        ("(x: float[2, 3], z: double[3, 2]) -> (y) { y: float[2, 2] = MatMul(x, z) }", "products of float and double"),
        (
            "(x: float[2, 3], z: float[3, 2], c: float[n, 2]) -> (y) { y: float[2, 2] = Gemm(x, z, c) }",
            "C of shape (n, 2) is neither a row, a column nor a whole matrix of (2, 2)",
        ),
        ("(x: float[]) -> (y) { y: float[] = Softmax(x) }", "Softmax of a scalar"),
        ("(x: bfloat16[2]) -> (y) { y: bfloat16[2] = Softmax(x) }", "Softmax of elements of type bfloat16"),
        ("(x: float[]) -> (y) { y: int64[] = ArgMax(x) }", "ArgMax of a scalar"),
        ("(x: bfloat16[2]) -> (y) { y: int64[1] = ArgMax(x) }", "ArgMax of elements of type bfloat16"),
        ("(x: float[]) -> (y) { y: float[] = LpNormalization(x) }", "LpNormalization of a scalar"),
        ("(x: float[2], a: int64[]) -> (y) { y: float[2] = CumSum(x, a) }", "its axis is computed"),
        ("(x: float[], i: int64[1]) -> (y) { y: float[1] = Gather(x, i) }", "the data is a scalar"),
        ("(x: float[4], i: float[1]) -> (y) { y: float[1] = Gather(x, i) }", "indices of type float"),
        ("(x: float[4], i: int64[]) -> (y) { y: float[1] = GatherND(x, i) }", "its indices are a scalar"),
        ("(x: string[4]) -> (y) { y: string[4] = Transpose(x) }", "elements of type string"),
        ("(x: float[2, 3], a: int64[1]) -> (y) { y: float[1, 3] = ReduceSum(x, a) }", "its axes are computed"),
        ("(x: float[2, 3], p: int64[4]) -> (y) { y: float[4, 4] = Pad(x, p) }", "its pads are computed"),
        ("(x: float[4, 4], s: int64[2]) -> (y) { y: float[2, 2] = Slice(x, s, s) }", "its starts are computed"),
        ("(x: float[4, 4], s: float[2]) -> (y) { y: float[2, 2] = Resize(x, _, s) }", "its scales are computed"),
        (
            "(x: float[3, 4], z: float[5]) -> (y) { y: float[3, 4] = Add(x, z) }",
            "that input 1 of shape (5,) is broadcast to (3, 4) is not so",
        ),
        (
            "(x: float[3, 4]) -> (y, z) { y: float[1, 4], z: float[1, 4] = Split(x) }",
            "that parts of [1, 1] make up an axis of 3 is not so",
        ),
        ("(x: string[4], z: string[4]) -> (y) { y: bool[4] = Equal(x, z) }", "input 0 has elements of type string"),
        ("(x: float) -> (y) { y: float = Relu(x) }", "input 0 (x) is a tensor whose rank is not known"),
        ("(x: float[2, 2]) -> (y) { y: float[2, 2] = Bernoulli(x) }", "no compiled kernel for ai.onnx.Bernoulli"),
    ],
)
def test_reasons_are_true(body: str, reason: str) -> None:
    """A scalar is called a scalar, a type is named, and what is computed is said to be."""
    assert claim_node(next(iter(graph(f"graph{body}")))) == reason


def test_the_table_of_families_names_what_each_registers() -> None:
    """An operator that it lacked would be left to others until something else imported its family."""
    families.load_all()
    found: dict[str, set[str]] = {
        name: set()
        for name in sorted(
            module.name.removeprefix(f"{families.__name__}.")
            for module in pkgutil.walk_packages(families.__path__, f"{families.__name__}.")
        )
    }
    for (domain, op_type), claim in claims._CLAIMS.items():
        lower = inspect.getclosurevars(claim).nonlocals["lower"]
        if lower.__module__.startswith(f"{families.__name__}."):
            family = lower.__module__.removeprefix(f"{families.__name__}.")
            found[family].add(f"{domain}.{op_type}" if domain else op_type)
    assert {name: set(operators) for name, operators in families.FAMILIES.items()} == {k: v for k, v in found.items() if v}
