"""Transposes with reshapes between them."""

from __future__ import annotations

import numpy as np
import pytest
from support.evaluate import evaluate_model
from support.models import model
from support.transposing import operators, pushed

from sardonyx.ir.verify import verify
from sardonyx.ops.infer import infer_graph
from sardonyx.optimize.transposes.push import push_transposes


@pytest.mark.parametrize(
    ("shape", "first", "between", "second", "left"),
    [
        ("2, 7, 12", "[1, 0, 2]", "[7, 8, 3]", "[1, 0, 2]", ["Reshape", "Transpose", "Reshape"]),
        ("2, 12, 4, 6", "[0, 2, 3, 1]", "[48, 3, 4]", "[0, 2, 1]", ["Reshape", "Transpose", "Reshape"]),
        ("6, 4", "[1, 0]", "[2, 2, 2, 3]", "[2, 3, 0, 1]", ["Reshape"]),
        ("4, 1, 6", "[2, 1, 0]", "[2, 3, 4]", "[2, 0, 1]", ["Reshape"]),
        ("3, 1, 2, 4", "[0, 2, 1, 3]", "[6, 4]", "[1, 0]", ["Reshape", "Transpose"]),
        ("2, 3, 1, 5", "[1, 0, 2, 3]", "[3, 2, 5]", "[2, 1, 0]", ["Reshape", "Transpose"]),
        ("6, 10", "[1, 0]", "[4, 15]", "[1, 0]", ["Transpose", "Reshape", "Transpose"]),
    ],
)
def test_two_become_one(shape: str, first: str, between: str, second: str, left: list[str]) -> None:
    """Or none, or stay where the dimensions have no common factors; the bits are the same."""
    body = f"""a = Transpose(h) {{perm = {first}}}
        s: int64[{between.count(",") + 1}] = {between}
        b = Reshape(a, s)
        y = Transpose(b) {{perm = {second}}}"""
    assert operators(pushed(body, inputs=f"x: float[1, 2, 2, 2], h: float[{shape}]")) == left


def test_a_size_may_be_a_symbol() -> None:
    """Heads of a batch of tokens, as torch's MultiheadAttention makes them."""
    text = """graph(x: float[b, 5, 12]) -> (y: float[4*b, 5, 3]) {
        n: int64[3] = [5, -1, 3]
        t: float[5, b, 12] = Transpose(x) {perm = [1, 0, 2]}
        r: float[5, 4*b, 3] = Reshape(t, n)
        y: float[4*b, 5, 3] = Transpose(r) {perm = [1, 0, 2]}
    }"""
    after = model(text)
    infer_graph(after)
    push_transposes(after.graph, set(after.graph))
    verify(after)
    assert operators(after) == ["Reshape", "Transpose", "Reshape"]
    for size in (1, 2, 3):
        x = np.random.default_rng(0).standard_normal((size, 5, 12)).astype(np.float32)
        ours, theirs = evaluate_model(after, {"x": x})[0], evaluate_model(model(text), {"x": x})[0]
        assert (ours.shape, ours.tobytes()) == (theirs.shape, theirs.tobytes())


def test_two_sizes_that_change_their_places_stay() -> None:
    """A Reshape can find one of them at run time, not two."""
    held = model("""graph(x: float[b, s, 12]) -> (y: float[4*b, s, 3]) {
        n: int64[3] = [0, -1, 3]
        t: float[s, b, 12] = Transpose(x) {perm = [1, 0, 2]}
        r: float[s, 4*b, 3] = Reshape(t, n)
        y: float[4*b, s, 3] = Transpose(r) {perm = [1, 0, 2]}
    }""")
    push_transposes(held.graph, set(held.graph))
    assert operators(held) == ["Transpose", "Reshape", "Transpose"]


def test_what_another_reads_stays() -> None:
    """One transpose more would be needed for it."""
    body = """a = Transpose(h) {perm = [1, 0, 2]}
        s: int64[3] = [7, 8, 3]
        b = Reshape(a, s)
        c = Transpose(b) {perm = [1, 0, 2]}
        d = Mystery(b)
        y = Mystery(c)"""
    held = model(f"graph(h: float[2, 7, 12]) -> (y, d) {{ {body} }}")
    infer_graph(held)
    push_transposes(held.graph, set(held.graph))
    assert operators(held) == ["Transpose", "Reshape", "Transpose", "Mystery", "Mystery"]


@pytest.mark.parametrize("seed", range(200))
def test_random_factors(seed: int) -> None:
    """Whatever is split and joined: the same bits, and never more transposes."""
    generator = np.random.default_rng(seed)
    factors = generator.choice([1, 2, 2, 3, 4], 5)

    def joined(order: list[int]) -> list[int]:
        cuts = np.flatnonzero(generator.random(len(order) - 1) < 0.6) + 1
        return [int(np.prod(part)) for part in np.split(factors[order], cuts)]

    shape, between = joined([0, 1, 2, 3, 4]), joined([0, 1, 2, 3, 4])
    first, second = generator.permutation(len(shape)).tolist(), generator.permutation(len(between)).tolist()
    body = f"""a = Transpose(h) {{perm = {first}}}
        s: int64[{len(between)}] = {between}
        b = Reshape(a, s)
        y = Transpose(b) {{perm = {second}}}"""
    after = pushed(body, inputs=f"x: float[1, 2, 2, 2], h: float{shape}")
    assert operators(after).count("Transpose") <= 2
