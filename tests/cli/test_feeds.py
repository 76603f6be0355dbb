"""Inputs of a model on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.models import model

from sardonyx.cli.feeds import draw_feed, make_feed
from sardonyx.formats.onnx import to_bytes
from sardonyx.session.inference_session import InferenceSession


@pytest.fixture(scope="module")
def session() -> InferenceSession:
    """A model of floats and integers."""
    text = "graph(x: float[n, 2], t: int64[n]) -> (y: float[n, 2]) {\nf = Cast(t) {to = 1}\nu = Unsqueeze(f, o)\no: int64[1] = [1]\ny = Add(x, u)\n}"
    return InferenceSession(to_bytes(model(text)))


def test_files_are_read_and_the_rest_is_drawn(session: InferenceSession, tmp_path: Path) -> None:
    """A size that a file has is that of the others too."""
    np.save(tmp_path / "t.npy", np.zeros(3, np.int64))
    feed = make_feed(session, [f"t={tmp_path / 't.npy'}"], [], [], 0)
    assert feed["x"].shape == (3, 2)
    assert feed["t"].tolist() == [0, 0, 0]


def test_sizes_and_ranges_are_those_asked_for(session: InferenceSession) -> None:
    """Of what is drawn."""
    feed = make_feed(session, [], ["n=30"], ["x=5:6", "t=-3:-3"], 0)
    assert feed["x"].shape == (30, 2)
    assert feed["x"].min() >= 5
    assert set(feed["t"].tolist()) == {-3}


@pytest.mark.parametrize(
    ("files", "dims", "ranges", "seed", "message"),
    [
        ([], [], [], None, "input 'x' (tensor(float), shape [n, 2]) is not fed: give --input x=FILE.npy, or --random"),
        ([], ["n"], [], 0, "--dim: expected NAME=VALUE, got 'n'"),
        ([], ["n=many"], [], 0, "the size of dimension 'n' must be 0 or a greater whole number, got 'many'"),
        ([], ["n=-1"], [], 0, "the size of dimension 'n' must be 0 or a greater whole number, got '-1'"),
        ([], ["m=2"], [], 0, "the model has no symbolic dimension 'm'"),
        ([], [], ["x=1"], 0, "the range of input 'x' must be LOW:HIGH, two numbers, got '1'"),
        ([], [], ["z=1:2"], 0, "the model has no input 'z'"),
        (["z=a.npy"], [], [], 0, "--input: the model has no input 'z'; its inputs are ['x', 't']"),
        (["x=none.npy"], [], [], 0, "there is no file 'none.npy' for --input NAME=FILE, where NAME is 'x'"),
    ],
)
def test_what_is_wrong_ends_the_command(
    files: list[str],
    dims: list[str],
    ranges: list[str],
    seed: int | None,
    message: str,
    session: InferenceSession,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With status 1 and a line that says so."""
    with pytest.raises(SystemExit, match="1"):
        make_feed(session, files, dims, ranges, seed)
    assert message in capsys.readouterr().err


def test_a_model_without_a_session_is_fed_alike(model_file: Path, tmp_path: Path) -> None:
    """Files are read at once; the rest is drawn when it is asked for."""
    np.savez(tmp_path / "x.npz", x=np.float32([[1, 2]]))
    assert draw_feed(str(model_file), [str(tmp_path / "x.npz")], (), (), 0)()["x"].tolist() == [[1, 2]]
    assert draw_feed(str(model_file), (), ["n=3"], (), 0)()["x"].shape == (3, 2)
    with pytest.raises(SystemExit):
        draw_feed(str(model_file), ["y=missing.npy"], (), (), 0)
