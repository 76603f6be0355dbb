"""Inputs of a model on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sardonyx.cli.feeds import make_feed
from sardonyx.session.values import NodeArg

FLOATS = NodeArg("x", "tensor(float)", ["n", 2])
TEXTS = NodeArg("t", "tensor(string)", [2])


def test_files_are_read_and_the_rest_is_drawn(tmp_path: Path) -> None:
    """Symbolic dimensions take the sizes asked for, or 1."""
    np.save(tmp_path / "t.npy", np.zeros(2))
    feed = make_feed([FLOATS, TEXTS], [f"t={tmp_path / 't.npy'}"], ["n=3"], 0)
    assert feed["x"].shape == (3, 2)
    assert feed["t"].tolist() == [0, 0]
    assert make_feed([FLOATS], [], [], 0)["x"].shape == (1, 2)


def test_one_seed_gives_one_feed() -> None:
    """Another gives another."""
    first, same, other = (make_feed([FLOATS], [], [], seed)["x"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_texts_are_drawn_too() -> None:
    """All alike."""
    assert make_feed([TEXTS], [], [], 0)["t"].tolist() == ["text", "text"]


@pytest.mark.parametrize(
    ("files", "dims", "seed", "message"),
    [
        ([], [], None, "is not fed: give --input x=FILE.npy"),
        (["x"], [], 0, "expected NAME=VALUE, got 'x'"),
        ([], ["n=many"], 0, "the size of dimension 'n' must be a number, got 'many'"),
    ],
)
def test_what_is_wrong_ends_the_command(
    files: list[str], dims: list[str], seed: int | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With status 1 and a line that says so."""
    with pytest.raises(SystemExit, match="1"):
        make_feed([FLOATS], files, dims, seed)
    assert message in capsys.readouterr().err


def test_other_values_are_not_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """Sequences come from nowhere."""
    with pytest.raises(SystemExit):
        make_feed([NodeArg("s", "seq(tensor(float))", [])], [], [], 0)
    assert "--random draws tensors only" in capsys.readouterr().err
