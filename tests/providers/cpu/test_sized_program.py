"""Nodes whose output's size elements of their inputs say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cpu_run import cpu_session, reference
from support.models import model

import sardonyx
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.providers.cpu import latest_bindings
from sardonyx.providers.cpu.sized_program import SizedProgram

_RANGE = "graph(a: int64[], b: int64[], c: int64[]) -> (y, z) { y = Range(a, b, c) z = Neg(y) }"


def _numbers(*numbers: int) -> dict[str, Any]:
    return {name: np.array(number) for name, number in zip("abc", numbers, strict=True)}


@pytest.mark.parametrize(
    ("body", "feeds"),
    [
        (_RANGE, [_numbers(0, 9, 1), _numbers(9, 0, -2), _numbers(5, 5, 3), _numbers(7, 3, 1), _numbers(-4, 9, 4)]),
        (
            "graph(a: float[], b: float[1], c: float[]) -> (y) { y = Range(a, b, c) }",
            [
                {"a": np.float32(x), "b": np.array([y], np.float32), "c": np.float32(z)}
                for x, y, z in ((0, 1, 0.25), (1, 0.5, -0.125), (0, 1, 2))
            ],
        ),
        (
            "graph(a: int64[2]) -> (y, z) { y = ConstantOfShape(a) z = Relu(y) }",
            [{"a": np.array(shape)} for shape in ((2, 3), (0, 4), (1, 1000))],
        ),
        (
            "graph(a: int32[N, M], d: int64[], v: float[2]) -> (y) { y = OneHot(a, d, v) {axis = 1} }",
            [
                {"a": np.array([[0, 3, -1]], np.int32), "d": np.array(depth), "v": np.array([2, 5], np.float32)}
                for depth in (4, 1, 0, 100)
            ],
        ),
        (
            "graph(t: float[N, 2, 3], s: int64[4]) -> (y) { y = AffineGrid(t, s) {align_corners = 1} }",
            [{"t": np.ones((2, 2, 3), np.float32), "s": np.array(size)} for size in ((2, 1, 3, 4), (2, 5, 1, 7))],
        ),
        (
            "graph(n: int64[]) -> (y) { y = BlackmanWindow(n) {output_datatype = 10} }",
            [{"n": np.array(size)} for size in (0, 1, 2, 37)],
        ),
        (
            """graph(n: int64[], d: int64[], r: int64[], a: float[], b: float[]) -> (y) {
            y = MelWeightMatrix(n, d, r, a, b) {output_datatype = 11} }""",
            [
                {"n": np.array(n), "d": np.array(d), "r": np.array(16000), "a": np.float32(a), "b": np.float32(7600)}
                for n, d, a in ((0, 0, 0), (1, 16, 20), (80, 400, 125), (40, 1023, 1000))
            ],
        ),
    ],
)  # fmt: skip
def test_each_run_has_a_size_of_its_own(body: str, feeds: list[dict[str, Any]]) -> None:
    """In one session, empty ones among them."""
    session = cpu_session(body)
    for feed in feeds:
        for found, wanted in zip(session.run(None, feed), reference(body, feed), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("body", "feed", "message"),
    [
        (_RANGE, _numbers(0, 9, 0), "delta is 0"),
        ("graph(a: int64[2]) -> (y) { y = ConstantOfShape(a) }", {"a": np.array([2, -1])}, "negative size"),
        ("graph(n: int64[]) -> (y) { y = HannWindow(n) }", {"n": np.array(-1)}, "expected 0 or more elements"),
        ("graph(n: int64[]) -> (y) { y = HannWindow(n) }", {"n": np.array(1 << 60)}, "elements|bytes"),
        (
            "graph(a: float[], b: float[], c: float[]) -> (y) { y = Range(a, b, c) }",
            {"a": np.float32(0), "b": np.float32(np.inf), "c": np.float32(1)},
            "no finite length",
        ),
    ],
)  # fmt: skip
def test_sizes_that_there_cannot_be(body: str, feed: dict[str, Any], message: str) -> None:
    """They are errors that name the node, and leave the session as it was."""
    session = cpu_session(body)
    for _ in range(2):
        with pytest.raises(InvalidArgument, match=message):
            session.run(None, feed)


def test_more_sizes_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are bound again."""
    monkeypatch.setattr(latest_bindings, "_MOST_BINDINGS", 3)
    session = cpu_session(_RANGE)
    for count in (1, 2, 3, 4, 5, 1, 2):
        np.testing.assert_array_equal(session.run(None, _numbers(0, count, 1))[0], np.arange(count))


def test_many_threads_run_one_node() -> None:
    """Each with a size of its own."""
    session = cpu_session(_RANGE)

    def work(number: int) -> bool:
        return all(len(session.run(["y"], _numbers(0, number, 1))[0]) == number for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_a_size_that_shapes_show_takes_no_part_of_its_own() -> None:
    """What follows from Shape is bound with the rest."""
    body = "graph(x: float[N]) -> (y) { n = Size(x) a: int64[] = 0 c: int64[] = 1 r = Range(a, n, c) y = Neg(r) }"
    (step,) = cpu_session(body)._runner.built.plans[0].steps  # type: ignore[attr-defined]  # of a private base
    assert not isinstance(step.program, SizedProgram)


def test_runs_can_be_profiled(tmp_path: Path) -> None:
    """Its steps have times."""
    options = sardonyx.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "run")
    made = model("graph(n: int64[]) -> (y) { y = HannWindow(n) }", opset=21)
    session = sardonyx.InferenceSession(to_bytes(made), options)
    session.run(None, {"n": np.array(5)})
    assert "HannWindow" in Path(session.end_profiling()).read_text()
