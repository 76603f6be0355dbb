"""What `--data` and `--evaluate` read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sardonyx.cli.calibration_data import labelled_feeds, read_feeds
from sardonyx.errors import InvalidArgument
from sardonyx.session.values import NodeArg

OPEN = [NodeArg("x", "tensor(float)", ["n", 2])]
FIXED = [NodeArg("x", "tensor(float)", [3, 2])]


@pytest.mark.parametrize(("arguments", "sizes"), [(OPEN, [4, 4, 2]), (FIXED, [3, 3, 3])])
def test_an_array_of_examples_is_cut_into_batches(arguments: list[NodeArg], sizes: list[int], tmp_path: Path) -> None:
    """Of the size that the model takes, where it says so; a rest that is too small is left out then."""
    np.savez(tmp_path / "data.npz", x=np.zeros((10, 2), np.float32))
    assert [len(feed["x"]) for feed in read_feeds(arguments, [str(tmp_path / "data.npz")], 4)] == sizes


def test_a_folder_holds_feeds(tmp_path: Path) -> None:
    """One for each file, in the order of names."""
    for number in (1, 0):
        np.save(tmp_path / f"{number}.npy", np.full((1, 2), number, np.float32))
    assert [feed["x"][0, 0] for feed in read_feeds(OPEN, [str(tmp_path)], 4)] == [0, 1]


def test_nothing_to_feed_is_an_error(tmp_path: Path) -> None:
    """No such path, and an empty folder."""
    with pytest.raises(InvalidArgument, match="no file or folder"):
        list(read_feeds(OPEN, [str(tmp_path / "none")], 4))
    with pytest.raises(InvalidArgument, match="holds none of"):
        list(read_feeds(OPEN, [str(tmp_path)], 4))


def test_labels_lie_beside_the_inputs(tmp_path: Path) -> None:
    """The only array is the only input, whatever its name."""
    np.savez(tmp_path / "data.npz", images=np.zeros((5, 2), np.float32), labels=np.arange(5))
    feeds, labels = labelled_feeds(OPEN, tmp_path / "data.npz", 4)
    assert [len(feed["x"]) for feed in feeds] == [4, 1]
    assert len(labels) == 5


def test_missing_labels_and_inputs_are_errors(tmp_path: Path) -> None:
    """That say what is there; so is another file."""
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    np.savez(tmp_path / "b.npz", u=np.zeros(3), v=np.zeros(3), labels=np.zeros(3))
    (tmp_path / "c.npz").write_bytes(b"no")
    for name, message in (("a", "no `labels`"), ("b", "no 'x'"), ("c", "takes a .npz"), ("d", "takes a .npz")):
        with pytest.raises(InvalidArgument, match=message):
            labelled_feeds(OPEN, tmp_path / f"{name}.npz", 4)
