"""Models under a newer operator set."""

import numpy as np
import pytest
from support.evaluate import evaluate_model, random_feeds
from support.optimizing import model_of

from sardonyx.errors import InvalidArgument
from sardonyx.ir.verify import verify
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.raise_opset import RaiseOpset
from sardonyx.optimize.soundness import check_sound
from sardonyx.providers.reference.registry import find_kernel


def _same(node, version):
    return find_kernel(node.domain, node.op_type, node.version) is find_kernel(node.domain, node.op_type, version)


def raised(text, opset, target=21):
    before, after = model_of(text, str(opset)), model_of(text, str(opset))
    changed = RaiseOpset(target, _same).run(after, Context())
    verify(after)
    check_sound(after)
    feeds = random_feeds(before)
    for old, new in zip(evaluate_model(before, feeds), evaluate_model(after, feeds), strict=True):
        np.testing.assert_array_equal(old, new)
    return after, changed


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("graph(x: float[2, 3]) -> (y) { a = Relu(x) y = Softmax(a) {axis = -1} }", 13),
        ("graph(x: float[2, 3]) -> (y) { y = ReduceMean(x) {axes = [1], keepdims = 0} }", 13),
        ("graph(x: float[2, 3]) -> (y) { y = ReduceSum(x) {axes = [-1]} }", 11),
        ("graph(x: float[2, 3]) -> (y) { y = ReduceMax(x) }", 12),
        ("graph(x: float[2, 1, 3]) -> (y) { a = Squeeze(x) {axes = [1]} y = Unsqueeze(a) {axes = [0, 3]} }", 11),
        ("graph(x: float[2, 6]) -> (y, z) { y, z = Split(x) {axis = 1} }", 13),
        ("graph(x: float[2, 6]) -> (y, z) { y, z = Split(x) {axis = 1, split = [2, 4]} }", 11),
        ("graph(x: float[2, 2, 3]) -> (y) { s: float[2] = [1, 2] y = BatchNormalization(x, s, s, s, s) }", 13),
        (
            """graph(x: float[2], c: bool[]) -> (y) { y = If(c) {
        then_branch = graph() -> (t) { t = ReduceMean(x) {axes = [0]} }, else_branch = graph() -> (x) {}} }""",
            13,
        ),
    ],
)
def test_results_stay_the_same(text, opset):
    """Nodes that mean the same, and those that newer versions write in another way; in subgraphs too."""
    model, changed = raised(text, opset)
    assert changed
    assert model.opset_imports[""] == 21
    assert {node.version for node in model.graph} == {21}


def test_axes_become_an_input():
    """As newer reductions have them."""
    model, _ = raised("graph(x: float[2, 3]) -> (y) { y = ReduceMean(x) {axes = [1]} }", 13)
    node = next(iter(model.graph))
    assert "axes" not in node.attributes
    assert node.inputs[1].constant.numpy().tolist() == [1]


@pytest.mark.parametrize(
    ("text", "opset", "message"),
    [
        ("graph(x: float[2, 3]) -> (y) { y = Softmax(x) }", 11, r"\(Softmax, opset 11\) means something else in opset 21"),
        ("graph(x: float[1, 1, 2, 2]) -> (y) { s: float[4] = [1, 1, 2, 2] y = Upsample(x, s) }", 9, "opset 21"),
    ],
)
def test_what_means_something_else_is_named(text, opset, message):
    """A node whose meaning changed is an error, and nothing is changed."""
    model = model_of(text, str(opset))
    with pytest.raises(InvalidArgument, match=message):
        RaiseOpset(21, _same).run(model, Context())
    assert model.opset_imports[""] == opset


def test_a_newer_model_stays():
    """A model is never lowered; an unknown version is refused."""
    model = model_of("graph(x: float[2]) -> (y) { y = Relu(x) }", "21")
    assert not RaiseOpset(17, _same).run(model, Context())
    assert model.opset_imports[""] == 21
