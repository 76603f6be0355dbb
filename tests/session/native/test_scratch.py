"""Which runs are native by the memory that they work in."""

from typing import Any

import numpy as np
import pytest
from support.native_runs import learned, only_native
from support.session_models import session

from sardonyx.providers.cpu.program import CpuProgram

WIDE = """graph(x: float[n, 16], t: float[2, n]) -> (y: float[2, 16]) {
    s = Softmax(x)
    y = MatMul(t, s)
}"""


def _wide(rows: int) -> dict[str, Any]:
    return {"x": np.ones((rows, 16), np.float32), "t": np.ones((2, rows), np.float32)}


def test_shapes_that_need_much_scratch_memory_are_native_while_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 16 MiB for all that are not alike: the fourth that needs 4.25 MiB stays in Python, one that needs little does not."""
    monkeypatch.setattr(CpuProgram, "native_growth", lambda *_: None)
    feeds = [_wide((17 << 11) + 16 * number) for number in range(3)]
    held = learned(session(WIDE), *feeds)
    with only_native(held):
        assert all(held.run(None, feed)[0].shape == (2, 16) for feed in feeds)
    learned(held, _wide((17 << 11) + 512), _wide(64))
    with only_native(held):
        held.run(None, _wide(64))
        with pytest.raises(AssertionError):
            held.run(None, _wide((17 << 11) + 512))


def test_scratch_memory_is_that_of_the_runs_before() -> None:
    """So that the peak is what it was."""
    held = session(WIDE)
    held.run(None, _wide(1 << 15))
    before = held.memory_report().arena_bytes
    learned(held, _wide(1 << 15))
    assert held.memory_report().arena_bytes == before > 0
