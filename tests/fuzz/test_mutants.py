"""Mutants can be repeated, and cover every operator; a search survives what they do and says which one did it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fuzz.draw import Draw
from fuzz.feeds import mutate_feeds
from fuzz.harness import finding_of, kind_of, run_case
from fuzz.model import Case
from fuzz.mutants import Mutant, make_mutant
from fuzz.mutate import MUTATIONS, mutate_bytes
from fuzz.seeds import Seed, standard_seeds, windows
from fuzz.server import run_seeds
from support.models import model

from sardonyx.formats.onnx import save, to_bytes
from sardonyx.ops.schemas import all_schemas
from sardonyx.ops.schemas_tflite import DOMAIN

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in forks"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
_TEXT = (
    "graph(x: float[2, 3], i: int64[2]) -> (y: float[2, 3]) {\nw: float[3] = [1.0, 2.0, 3.0]\na = Gather(x, i)\ny = Add(a, w)\n}"
)
_SEED = Seed("small", to_bytes(model(_TEXT)), {"x": np.ones((2, 3), np.float32), "i": np.zeros(2, np.int64)})
_WITHOUT_SEEDS = {
    *(("ai.onnx.ml", name) for name in ("CastMap", "DictVectorizer")),
    *(
        ("com.microsoft", name)
        for name in (
            "BeamSearch GreedySearch Sampling WhisperBeamSearch DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention "
            "MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight MatMulFpQ4 PagedAttention QEmbedLayerNormalization "
            "SparseToDenseMatMul"
        ).split()
    ),
}
"""Operators that read maps or sparse tensors, hold whole models, or take weights of a layout of their own."""


def _relu(size: int) -> Case:
    return Case("graph(x: float[n]) -> (y) {\ny = Relu(x)\n}", 21, {"x": np.ones(size, np.float32)})


def test_a_mutant_can_be_repeated() -> None:
    """All that is drawn follows from the choices."""
    for seed in range(60):
        draw = Draw.seeded(seed)
        assert str(make_mutant(draw, [_SEED])) == str(make_mutant(Draw(draw.choices), [_SEED]))


def test_the_simplest_mutant_is_its_seed() -> None:
    """So that what is made small shows what matters."""
    assert make_mutant(Draw([]), [_SEED]) == Mutant("small", _SEED.content, dict(_SEED.feeds))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_each_mutation_changes_a_model(mutation: Any) -> None:
    """In some of its ways; in none does it fail."""
    changed = 0
    for number in range(40):
        proto, feeds = onnx.load_from_string(_SEED.content), dict(_SEED.feeds)
        mutation(Draw.seeded(number), proto, feeds)
        changed += proto.SerializeToString() != _SEED.content
    assert changed > 0 or mutation.__name__ in ("change_attribute",)


def test_bytes_and_feeds_are_changed() -> None:
    """And never end the search."""
    contents, feeds = set(), set()
    for number in range(100):
        contents.add(mutate_bytes(Draw.seeded(number), _SEED.content))
        fed = dict(_SEED.feeds)
        mutate_feeds(Draw.seeded(number), fed)
        feeds.add(repr(fed))
    assert len(contents) > 80
    assert len(feeds) > 20


def test_every_operator_of_the_standard_has_seeds() -> None:
    """All that the registry of schemas knows but deprecated ones, and those that only models of TensorFlow Lite have."""
    found = {(node.domain, node.op_type) for seed in standard_seeds() for node in onnx.load_from_string(seed.content).graph.node}
    missing = {(item.domain, item.name) for item in all_schemas() if not item.is_deprecated and item.domain != DOMAIN} - found
    assert missing <= _WITHOUT_SEEDS


def test_windows_of_networks_are_seeds(tmp_path: Path) -> None:
    """A model without its weights gives parts of itself, each of which runs."""
    nodes = "\n".join(f"v{index + 1} = Relu(v{index})" for index in range(30))
    save(model(f"graph(v0: float[n, 4]) -> (v30: float[n, 4]) {{\n{nodes}\n}}"), tmp_path / "chain.onnx")
    found = windows(tmp_path)
    assert len(found) > 5
    assert all(run_case(Mutant(seed.name, seed.content, dict(seed.feeds))) == "" for seed in found)


def test_a_search_says_which_case_ended_the_process() -> None:
    """And goes on behind it."""

    def make(draw: Draw) -> Case:
        if draw.below(1 << 30) == Draw.seeded(3).below(1 << 30):
            os.kill(os.getpid(), signal.SIGSEGV)
        return _relu(4)

    found = list(run_seeds(0, 6, make))
    assert [one.seed for one in found] == list(range(6))
    assert [kind_of(one.finding) for one in found] == ["", "", "", "crash", "", ""]


def test_a_case_that_takes_too_long_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, whether it computes or waits."""
    monkeypatch.setattr("fuzz.harness.SECONDS", 0.2)

    def compute() -> Case:
        while time.process_time() < 60:
            pass
        return _relu(4)

    def wait() -> Case:
        time.sleep(60)
        return _relu(4)

    assert finding_of(compute) == "hang: it took too long"
    assert finding_of(wait) == "hang: it took too long"


def test_an_exception_that_is_not_ours_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever provider raises it."""

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("no")

    monkeypatch.setattr("sardonyx.session.opened_session.check_feeds", fail)
    assert run_case(_relu(4)) == "untyped: CPU: ZeroDivisionError: no"


def test_a_damaged_compiled_model_is_refused_or_right() -> None:
    """For some damage."""
    content = to_bytes(model("graph(x: float[2, 3]) -> (y: float[2, 3]) {\ny = Relu(x)\n}"))
    for number in range(4):
        assert run_case(Mutant("small", content, {"x": np.ones((2, 3), np.float32)}, (number, 7 * number, 3, 5))) == ""
