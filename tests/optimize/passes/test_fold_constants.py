"""What is the same in every run is computed once."""

import numpy as np
import pytest
from support.evaluate import evaluate_node
from support.optimizing import apply_pass, body, model_of, operators

from sardonyx.cancellation import check_cancelled
from sardonyx.config import LIMITS
from sardonyx.errors import InvalidArgument
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.fold_constants import FOLD_CONSTANTS


def fold(text, **options):
    return apply_pass(FOLD_CONSTANTS, text, **options)


def graph(lines, inputs="x: float[2, 3]"):
    return f"graph({inputs}) -> (y) {{ {lines} }}"


def test_nodes_on_constants_are_evaluated():
    """A chain of nodes on constants becomes an initializer of its last value."""
    model, changed = fold(graph("a: float[3] = [1, 2, 3] b = Neg(a) c = Exp(b) y = Add(x, c)"), rtol=1e-6)
    assert changed
    assert operators(model) == ["Add"]


def test_constant_nodes_become_initializers():
    """Constant nodes of every form become initializers, under the name of their output."""
    text = graph("""a = Constant() {value_float = 2.0} b = Constant() {value_ints = [2, 3]} c = Constant() {value: float[1] = [3]}
                    d = Mul(x, a) e = Mul(d, c) y = Reshape(e, b)""")
    model, _ = fold(text)
    assert operators(model) == ["Mul", "Mul", "Reshape"]
    assert set(model.graph.initializers) == {"a", "b", "c"}


def test_shapes_that_are_known_are_folded_without_evaluation():
    """Shape, Gather and Concat on known dimensions fold, though nothing evaluates."""
    lines = """s = Shape(x) i: int64[1] = [1] g = Gather(s, i) m: int64[1] = [-1] t = Concat(g, m) {axis = 0} y = Reshape(x, t)"""
    model, changed = fold(graph(lines), context=Context())
    assert changed
    assert operators(model) == ["Reshape"]


def test_symbolic_shapes_stay():
    """The shape of a value with a symbolic dimension is computed in each run; the part that is known is not."""
    lines = "s = Shape(x) i: int64[] = 1 g = Gather(s, i) h = Gather(s, j) f = Add(g, h) y = Cast(f) {to = 1}"
    model, _ = fold(graph("j: int64[] = 0 " + lines, "x: float[batch, 3]"))
    assert operators(model) == ["Shape", "Gather", "Add", "Cast"]


@pytest.mark.parametrize(
    "lines",
    [
        "s: int64[1] = [1000000] e = ConstantOfShape(s) y = Add(x, e)",
        "s: int64[2] = [100000, 3] a: float[3] = [1, 2, 3] e = Expand(a, s) y = Add(x, e)",
        "r: int64[1] = [100000] a: float[3] = [1, 2, 3] y = Tile(a, r)",
        "a: int64[] = 0 b: int64[] = 100000000 c: int64[] = 1 y = Range(a, b, c)",
        "a: float[20000, 1] = ... b: float[1, 20000] = ... y = MatMul(a, b)",
        "a: float[200, 1] = ... b: float[1, 200] = ... y = MatMul(a, b)",
    ],
)
def test_blow_ups_stay(lines):
    """What would make a large constant from small ones is left to each run."""
    inputs = "x: float[1]" if "Add" in lines else "x: float[2, 3]"
    _, changed = fold(graph(lines, inputs), compare=False)
    assert not changed


@pytest.mark.parametrize(
    "lines",
    [
        "s: int64[1] = [2] r = RandomUniform() {shape = [3]} y = Add(x, r)",
        "a: int8[3] = [1, 2, 3] s: float[] = 0.5 d = DequantizeLinear(a, s) y = Add(x, d)",
        "a: float[3] = [1, 2, 3] d = custom.Op(a) y = Add(x, d)",
    ],
)
def test_kept_operators_stay(lines):
    """Random, quantizing and unknown operators are not folded."""
    _, changed = fold(graph(lines), compare=False)
    assert not changed


@pytest.mark.parametrize("node", ["Tile(a, r)", "Expand(a, r)", "ConstantOfShape(r)"])
def test_what_makes_larger_stays_while_the_size_is_unknown(node):
    """A size that only evaluation finds is not known to the same run of the pass; what it makes larger might be of any size."""
    lines = f"d: int64[2] = [3, 4] b: bool[2] = [true, false] r = Compress(d, b) a: float[1] = [2] t = {node} s = ReduceSum(t) y = Add(x, s)"
    model = model_of(graph(lines))
    FOLD_CONSTANTS.run(model, Context(evaluate_node))
    assert operators(model) == [node.partition("(")[0], "ReduceSum", "Add"]


@pytest.mark.parametrize(("fold_bytes", "expected"), [(16, ["Add"]), (15, ["Unique", "Add"])])
def test_a_result_of_unknown_size_that_is_too_large_is_not_used(fold_bytes, expected):
    """Four floats take 16 bytes."""
    lines = "a: float[4] = [4, 3, 2, 1] u = Unique(a) y = Add(x, u)"
    model, _ = fold(
        graph(lines, "x: float[4]"), context=Context(evaluate_node, fold_bytes=fold_bytes, fold_in_place_bytes=fold_bytes)
    )
    assert operators(model) == expected


def test_arithmetic_on_large_weights_is_folded():
    """Weights that are standardized take no more than they did; each run would compute them anew."""
    lines = "w: float[4000, 3] = ... 1 m = ReduceMean(w) c = Sub(w, m) s: int64[2] = [3, 4000] r = Reshape(c, s) y = MatMul(x, r)"
    model, _ = fold(graph(lines), context=Context(evaluate_node, fold_bytes=1000), rtol=1e-4)
    assert operators(model) == ["MatMul"]


@pytest.mark.parametrize("node", ["Transpose(w)", "Concat(w) {axis = 0}"])
def test_copies_of_large_constants_stay(node):
    """The constant itself may have other uses."""
    lines = f"w: float[4000, 3] = ... 1 t = {node} m = ReduceSum(t) y = Add(x, m) z = Gather(w, i)"
    model = model_of(f"graph(x: float[3], i: int64[1]) -> (y, z) {{ {lines} }}")
    FOLD_CONSTANTS.run(model, Context(evaluate_node, fold_bytes=1000))
    assert node.partition("(")[0] in operators(model)


def test_casts_of_weights_may_double():
    """A large cast from float16 to float is folded, as it only doubles."""
    model, _ = fold(graph("w: float16[40000, 3] = ... 1 f = Cast(w) {to = 1} y = Gemm(x, f) {transB = 1}"), rtol=1e-3)
    assert operators(model) == ["Gemm"]


def test_overridable_initializers_are_no_constants():
    """An initializer that a feed may override is not folded."""
    _, changed = fold("graph(d: float[1]) -> (y) { d: float[1] = [1] y = Neg(d) }")
    assert not changed


def test_output_that_is_constant_keeps_its_name():
    """A constant graph output becomes an Identity of an initializer, once."""
    model, changed = fold("graph() -> (y: float[2]) { a: float[2] = [1, 2] y = Neg(a) }")
    assert changed
    assert operators(model) == ["Identity"]
    assert list(model.graph.initializers) == ["y/folded"]


@pytest.mark.parametrize(("condition", "expected"), [("true", ["Neg", "Exp"]), ("false", ["Exp"])])
def test_if_with_a_constant_condition_is_inlined(condition, expected):
    """The branch that is taken replaces the If; its initializers move out, under names that nothing has."""
    text = f"""graph(x: float[2]) -> (y) {{
        k: float[] = 7.0
        c: bool[] = {condition}
        r = If(c) {{then_branch = graph() -> (a) {{ a = Neg(x) }}, else_branch = graph() -> (x) {{}}}}
        y = Exp(r)
    }}"""
    model, changed = fold(text)
    assert changed
    assert operators(model) == expected


def test_inlined_branch_may_name_what_the_graph_has():
    """Initializers and values of a branch do not clash with those outside, and an output keeps its name."""
    text = """graph(x: float[2], d: bool[]) -> (y, z) {
        c: bool[] = true
        y = If(c) {then_branch = graph() -> (a) { k: float[] = 2.0 a = Mul(x, k) }, else_branch = graph() -> (x) {}}
        z = If(c) {then_branch = graph() -> (a) { k: float[] = 3.0 b = Mul(x, k) a = Neg(b) }, else_branch = graph() -> (x) {}}
    }"""
    model, _ = fold(text)
    assert operators(model) == ["Mul", "Mul", "Neg"]
    assert len(model.graph.initializers) == 3


def test_folds_inside_branches():
    """Constants inside subgraphs fold there."""
    text = """graph(x: float[2], c: bool[]) -> (y) {
        y = If(c) {then_branch = graph() -> (a) { k: float[] = 2.0 n = Neg(k) a = Mul(x, n) }, else_branch = graph() -> (x) {}}
    }"""
    model, _ = fold(text)
    assert [node.op_type for node in next(iter(model.graph)).subgraphs[0]] == ["Mul"]


def test_state_of_a_loop_is_no_constant():
    """The state of a Loop that begins as a constant is not one inside the body."""
    text = """graph(n: int64[]) -> (y) {
        c: bool[] = true s: int64[1] = [1]
        y = Loop(n, c, s) {body = graph(i: int64[], k: bool[], a: int64[1]) -> (k, b) { b = Add(a, a) }}
    }"""
    model, _ = fold(text)
    assert [node.op_type for node in next(iter(model.graph)).subgraphs[0]] == ["Add"]


SINE = "a: float[3] = [1, 2, 3] n = Sin(a) y = Add(x, n)"


def test_refusal_of_the_evaluator_leaves_the_node():
    """A node that the evaluator cannot compute stays."""

    def refuse(node, inputs):
        raise InvalidArgument("no")

    _, changed = fold(graph(SINE), context=Context(refuse))
    assert not changed


def test_wrong_type_of_the_evaluator_leaves_the_node():
    """A result of another type than expected is not used."""
    _, changed = fold(graph(SINE), context=Context(lambda node, inputs: [np.zeros(3)]))
    assert not changed


def test_time_budget_ends_evaluation():
    """With the time used up nothing more is evaluated."""
    context = Context(evaluate_node, fold_seconds=0.0)
    _, changed = fold(graph("a: float[2000] = ... 1 n = Neg(a) m = ReduceSum(n) y = Add(x, m)"), context=context)
    assert not changed


def test_evaluation_uses_up_the_time_budget():
    """Each evaluation is counted."""
    context = Context(evaluate_node)
    fold(graph("a: float[2000] = ... 1 n = Neg(a) m = ReduceSum(n) y = Add(x, m)"), context=context, rtol=1e-5)
    assert context.fold_seconds < LIMITS.fold_seconds


def test_unused_outputs_need_no_constant():
    """Only the outputs in use become initializers."""
    model, _ = fold(graph("a: float[4] = [4, 1, 3, 2] k: int64[1] = [2] v, i = TopK(a, k) s = ReduceSum(v) y = Add(x, s)"))
    assert "y = Add(x, s)" in body(model)
    assert list(model.graph.initializers)[-1] == "s"


def test_a_model_never_grows_beyond_the_budget():
    """Many small constants that could be made from less are folded until they take what one model may grow by, then kept."""
    lines = " ".join(f"e{i} = Expand(a, s) x{i + 1} = Add(x{i}, e{i})" for i in range(20))
    text = f"graph(x0: float[128, 64]) -> (x20) {{ a: float[64] = ... 1 s: int64[2] = [128, 64] {lines} }}"
    model, _ = apply_pass(FOLD_CONSTANTS, text, context=Context(evaluate_node, fold_growth_bytes=100_000))
    sizes = [value.constant.size_bytes for value in model.graph.initializers.values()]
    assert sum(sizes) <= 100_000 + 64 * 4 + 16
    assert operators(model).count("Expand") == 17


def test_conversions_of_weights_do_not_count_as_growth():
    """Half weights become float once, not in every run."""
    text = "graph(x: float[64]) -> (y) { w: float16[64] = ... 1 c = Cast(w) {to = 1} y = Add(x, c) }"
    model, _ = apply_pass(FOLD_CONSTANTS, text, context=Context(evaluate_node, fold_growth_bytes=0))
    assert operators(model) == ["Add"]


def test_what_is_made_of_one_weight_stays_within_a_multiple_of_it():
    """Each product is no larger than the weight; but the weight stays, as others read it."""
    lines = " ".join(f"c{i}: float[1] = [{i + 2}] p{i} = Mul(w, c{i}) x{i + 1} = Max(x{i}, p{i})" for i in range(30))
    text = f"graph(x0: float[1]) -> (x30) {{ w: float[1000] = ... 1 {lines} }}"
    model, _ = fold(text, context=Context(evaluate_node, fold_bytes=4000))
    assert 1 < operators(model).count("Mul") < 30
    assert sum(value.constant.size_bytes for value in model.graph.initializers.values()) <= 4000 + 3 * (4000 + 30 * 4)


def test_results_of_unknown_size_stay_within_the_same_multiple():
    """What inference does not know is measured once it is there."""
    lines = " ".join(f"c{i}: float[1] = [{i + 2}] p{i} = Mul(w, c{i}) x{i + 1} = Max(x{i}, p{i})" for i in range(30))
    model = model_of(f"graph(x0: float[1]) -> (x30) {{ w: float[1000] = ... 1 {lines} }}")
    FOLD_CONSTANTS.run(model, Context(evaluate_node, fold_bytes=4000))
    assert operators(model).count("Mul") == 27


def test_a_constant_that_only_a_folded_node_read_goes_with_it():
    """A long chain takes no more than two of its constants at a time."""
    lines = " ".join(f"w{i + 1} = Neg(w{i})" for i in range(30))
    model = model_of(f"graph(x: float[1]) -> (y) {{ w0: float[1000] = ... 1 {lines} y = Add(x, w30) }}")
    kept = []

    def evaluate(node, inputs):
        kept.append(sum(value.constant.size_bytes for value in model.graph.initializers.values()))
        return evaluate_node(node, inputs)

    FOLD_CONSTANTS.run(model, Context(evaluate, fold_bytes=4000))
    assert operators(model) == ["Add"]
    assert max(kept) == 4000


def test_an_input_stays_that_only_a_folded_node_reads():
    """The shape of an initializer that a run may replace is known; the initializer is part of what the model takes."""
    model = model_of(
        "graph(x: float[1], w: float[4]) -> (y) { w: float[4] = [1, 2, 3, 4] s = Shape(w) f = Cast(s) {to = 1} y = Add(x, f) }"
    )
    FOLD_CONSTANTS.run(model, Context(evaluate_node))
    assert next(iter(model.graph.initializers)) == "w"


def test_texts_that_double_stay():
    """Forty nodes join a text with itself; the last would have a million million letters."""
    lines = " ".join(f"s{i + 1} = StringConcat(s{i}, s{i})" for i in range(40))
    model = model_of(f'graph(x: string[1]) -> (y) {{ s0: string[1] = ["ab"] {lines} y = StringConcat(x, s40) }}')
    FOLD_CONSTANTS.run(model, Context(evaluate_node))
    assert operators(model).count("StringConcat") == 41 - 15


def test_an_evaluation_that_takes_too_long_ends():
    """What evaluates asks now and then whether it is to go on; the node stays."""

    def evaluate(node, inputs):
        while True:
            check_cancelled()

    model = model_of("graph(x: float[1]) -> (y) { a: float[1] = [2] n = Neg(a) y = Add(x, n) }")
    FOLD_CONSTANTS.run(model, Context(evaluate, fold_seconds=0.01))
    assert operators(model) == ["Neg", "Add"]
