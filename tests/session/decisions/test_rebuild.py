"""Sessions by what was decided before."""

from pathlib import Path

import numpy as np
import pytest
from support.kept_decisions import folder, made, results
from support.models import model

from sardonyx.errors import EPFail, ModelLoadCanceled
from sardonyx.formats.onnx import to_bytes
from sardonyx.provider import Partition
from sardonyx.providers.cpu.provider import CpuProvider
from sardonyx.session.options import SessionOptions

__all__ = ["folder"]

_MODEL = to_bytes(
    model(
        """graph(x: float[n, 6], ids: int64[m]) -> (y: float[n, 3, 2], z, s: int64[2]) {
        w: float[6, 6] = ... 1
        three: int64[2] = [3, 2]
        one: int64[1] = [0]
        p = MatMul(x, w)
        g = Gather(p, ids)
        shape = Shape(x)
        n = Gather(shape, one)
        to = Concat(n, three) {axis = 0}
        y = Reshape(p, to)
        z = Softmax(g)
        s = Identity(shape)
    }"""
    )
)
_FEED = {"x": np.arange(30, dtype=np.float32).reshape(5, 6), "ids": np.array([1, 0, -1])}


@pytest.mark.usefixtures("folder")
def test_sizes_and_indices_are_as_before() -> None:
    """Nodes that were claimed as the sizes that they make are claimed so again."""
    first, _ = made(_MODEL)
    second, by_kept = made(_MODEL)
    assert by_kept
    for expected, found in zip(results(first, **_FEED), results(second, **_FEED), strict=True):
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


@pytest.mark.usefixtures("folder")
def test_a_part_that_cannot_be_compiled_again_is_decided_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session that is made so is a whole one."""
    made(_MODEL)
    compile_part, calls = CpuProvider.compile, []

    def fails_once(self: CpuProvider, partition: Partition, bodies: object) -> object:
        calls.append(partition.name)
        if len(calls) == 1:
            raise EPFail("no")
        return compile_part(self, partition, bodies)  # type: ignore[arg-type]

    monkeypatch.setattr(CpuProvider, "compile", fails_once)
    session, by_kept = made(_MODEL)
    assert not by_kept
    assert len(results(session, **_FEED)) == 3


@pytest.mark.usefixtures("folder")
def test_a_load_that_is_cancelled_ends() -> None:
    """It is not taken for a record that does not work."""
    made(_MODEL)
    options = SessionOptions()
    options.set_load_cancellation_flag(True)
    with pytest.raises(ModelLoadCanceled):
        made(_MODEL, options)


@pytest.mark.usefixtures("folder")
def test_runs_of_single_outputs_read_the_model_again(tmp_path: Path) -> None:
    """A session that was made by a record knows its file."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_MODEL)
    made(path)
    session, by_kept = made(path)
    assert by_kept
    assert session.run(["g"], _FEED)[0].shape == (3, 6)
    path.unlink()
    assert session.run(["y"], _FEED)[0].shape == (5, 3, 2)
