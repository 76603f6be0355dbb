"""Outputs that are cut to the size that a run has shown."""

import numpy as np
import pytest
from support.cpu_run import cpu_session, reference

from sardonyx.dtypes import DataType
from sardonyx.provider import CountedOutput, TensorSpec
from sardonyx.providers.cpu.counted import cut_to_size, with_room


def test_outputs_are_cut_to_their_true_size() -> None:
    """What is known stays; elements lie densely, in memory of their size."""
    arena, given = np.zeros(64, np.uint8), np.ones(3)
    output = CountedOutput(1, TensorSpec(DataType.FLOAT, (3, 4)), 1, 40)
    for length in (1, 2, 4, 0):
        filled = with_room([output], [given, None])
        filled[1][:] = np.arange(12, dtype=np.float32).reshape(3, 4)
        arena[40:48] = np.array([length], np.int64).view(np.uint8)
        found = cut_to_size([output], filled, arena)
        assert found[0] is given
        np.testing.assert_array_equal(found[1], np.arange(3 * length, dtype=np.float32).reshape(3, length))
        assert found[1].flags.owndata


@pytest.mark.parametrize("guard", [False, True])
def test_known_and_counted_outputs_of_one_part(guard: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own memory, also where unmapped pages are around all."""
    if guard:
        monkeypatch.setenv("SARDONYX_GUARD", "1")
    body = "graph(x: float[N, 5], k: int64[1]) -> (r, v, i) { r = Relu(x) v, i = TopK(r, k) }"
    session = cpu_session(body)
    for rows, k in ((3, 2), (1, 5), (2, 0)):
        feeds = {"x": np.random.default_rng(rows).standard_normal((rows, 5)).astype(np.float32), "k": np.array([k])}
        for found, wanted in zip(session.run(None, feeds), reference(body, feeds), strict=True):
            np.testing.assert_array_equal(found, wanted)
