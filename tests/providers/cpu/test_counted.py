"""Outputs that are cut to the size that a run has shown."""

import numpy as np
import pytest
from support.cpu_run import cpu_session, reference

from sardonyx.dtypes import DataType
from sardonyx.providers.cpu.counted import CountedOutput, with_counted


def test_elements_are_copied_in_their_true_size() -> None:
    """The arena may be used again; what was given stays."""
    arena = np.zeros(64, np.uint8)
    arena[8:32] = np.arange(6, dtype=np.float32).view(np.uint8)
    arena[40:48] = np.array([2], np.int64).view(np.uint8)
    given = np.ones(3)
    place = CountedOutput(1, DataType.FLOAT, (3, 4), 1, 8, 40)
    found = with_counted([place], [given, None], arena)
    arena[:] = 0
    assert found[0] is given
    np.testing.assert_array_equal(found[1], np.arange(6, dtype=np.float32).reshape(3, 2))


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
