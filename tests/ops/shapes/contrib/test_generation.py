"""Facts about generation loops of com.microsoft."""

from __future__ import annotations

import numpy as np
from support.infer_op import A, infer_op, plain

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, symbol
from sardonyx.ops.fact import Fact, known, tensor

MICROSOFT = "com.microsoft"
IDS = tensor(DataType.INT32, (A, 7))
BODY = Graph("decoder", [], [])


def one(value: int) -> Fact:
    return known(DataType.INT32, np.array([value], np.int32))


def test_beam_search_gives_so_many_sequences_of_the_longest_length() -> None:
    """Sizes are elements of inputs."""
    facts = infer_op("BeamSearch", IDS, one(20), None, one(4), one(2), domain=MICROSOFT, outputs=3, decoder=BODY, vocab_size=99)
    assert facts[0].shape == (A, 2, 20)
    assert facts[0].dtype is DataType.INT32
    assert facts[1].shape == (A, 2)
    assert plain(facts[2]) == (symbol("?"), A, 4, 99)


def test_greedy_search_gives_one_sequence_each() -> None:
    """The batch is that of the prompt; an unknown length stays unknown."""
    assert infer_op("GreedySearch", IDS, one(20), domain=MICROSOFT, decoder=BODY)[0].shape == (A, 20)
    facts = infer_op("Sampling", IDS, tensor(DataType.INT32, (1,)), domain=MICROSOFT, outputs=2, decoder=BODY)
    assert plain(facts[0]) == (A, symbol("?"))
