"""What `--input` reads."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from PIL import Image

from sardonyx.cli.input_files import read_inputs
from sardonyx.errors import InvalidArgument
from sardonyx.formats import tensor_file
from sardonyx.session.values import NodeArg

X = NodeArg("x", "tensor(float)", ["n", 2])
T = NodeArg("t", "tensor(int64)", [2])
S = NodeArg("s", "tensor(string)", [1])
PAIR = np.float32([[1, 2]])


def test_npy_npz_pb_and_json_files_feed_an_input(tmp_path: Path) -> None:
    """Each as it holds the values."""
    np.save(tmp_path / "x.npy", PAIR)
    np.savez(tmp_path / "x.npz", whatever=PAIR)
    tensor_file.save(PAIR, tmp_path / "x.pb", "x")
    (tmp_path / "x.json").write_text("[[1, 2]]")
    for ending in ("npy", "npz", "pb", "json"):
        (found,) = read_inputs([X], [f"x={tmp_path}/x.{ending}"], {}, {}).values()
        assert (found.tolist(), found.dtype) == ([[1, 2]], np.float32)


def test_an_npz_file_feeds_all_inputs_that_it_names(tmp_path: Path) -> None:
    """By the names of its arrays."""
    np.savez(tmp_path / "all.npz", x=PAIR, t=np.int64([3, 4]))
    assert set(read_inputs([X, T], [f"{tmp_path}/all.npz"], {}, {})) == {"x", "t"}


def test_a_folder_of_test_data_feeds_all_inputs(tmp_path: Path) -> None:
    """By the names in its files, else in their order."""
    tensor_file.save(PAIR, tmp_path / "input_0.pb", "")
    tensor_file.save(np.int64([3, 4]), tmp_path / "input_1.pb", "t")
    feed = read_inputs([X, T], [str(tmp_path)], {}, {})
    assert {name: value.tolist() for name, value in feed.items()} == {"x": [[1, 2]], "t": [3, 4]}


def test_a_file_alone_feeds_the_only_input(tmp_path: Path) -> None:
    """Without its name."""
    np.save(tmp_path / "any.npy", PAIR)
    assert list(read_inputs([X], [f"{tmp_path}/any.npy"], {}, {})) == ["x"]


def test_a_map_comes_from_json(tmp_path: Path) -> None:
    """Its keys are numbers where the model's are."""
    (tmp_path / "m.json").write_text(json.dumps({"1": 2.5}))
    argument = NodeArg("m", "map(int64,tensor(float))", [])
    assert read_inputs([argument], [f"m={tmp_path}/m.json"], {}, {}) == {"m": {1: 2.5}}


@pytest.mark.parametrize(
    ("kind", "shape", "expected"),
    [
        ("tensor(float)", ["n", 3, 4, 6], ((1, 3, 4, 6), 1.0)),
        ("tensor(float)", [1, 4, 6, 3], ((1, 4, 6, 3), 1.0)),
        ("tensor(uint8)", [3, 4, 6], ((3, 4, 6), 255)),
        ("tensor(float)", [1, 1, 4, 6], ((1, 1, 4, 6), 76 / 255)),
        ("tensor(float)", [1, 3, "h", "w"], ((1, 3, 5, 224), 1.0)),
    ],
)
def test_an_image_is_resized_to_what_an_input_takes(
    kind: str, shape: list[int | str | None], expected: object, tmp_path: Path
) -> None:
    """Channels first or last; 0 to 1 for floats; grey for one channel."""
    Image.new("RGB", (10, 10), (255, 0, 0)).save(tmp_path / "red.png")
    (found,) = read_inputs([NodeArg("x", kind, shape)], [f"{tmp_path}/red.png"], {"h": 5}, {}).values()
    assert (found.shape, pytest.approx(found.max())) == expected


def test_a_range_says_what_black_and_white_become(tmp_path: Path) -> None:
    """For models that were trained on -1 to 1."""
    Image.new("RGB", (2, 2), (255, 0, 0)).save(tmp_path / "red.png")
    (found,) = read_inputs([NodeArg("x", "tensor(float)", [1, 3, 2, 2])], [f"x={tmp_path}/red.png"], {}, {"x": (-1, 1)}).values()
    assert found[0, :, 0, 0].tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["y=f.npy"], "the model has no input 'y'; its inputs are"),
        (["f.npy"], "--input takes NAME=FILE, FILE.npz or a folder"),
        (["x=f.txt"], "f.txt is no .npy or .npz file that can be read without unpickling"),
        (["x=f.json"], "f.json is no JSON"),
        (["x=f.pb"], "f.pb"),
        (["x=f.png"], "shape .*, and takes no image"),
        (["empty"], "empty holds no input_0.pb"),
        (["two.npz"], "the model has no input 'u'"),
        (["x=two.npz"], "none of them is called 'x'"),
        (["x=empty"], "--input x=empty: 'empty' is a folder; a file is expected"),
        (["x="], "--input x=: a file or a value in JSON is expected behind '='"),
    ],
)
def test_what_cannot_be_read_is_an_error(texts: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That says what can."""
    monkeypatch.chdir(tmp_path)
    for name in ("f.txt", "f.json", "f.pb", "f.png"):
        Path(name).write_bytes(b"\xff no such thing")
    Path("empty").mkdir()
    np.save("f.npy", PAIR)
    np.savez("two.npz", u=PAIR, v=PAIR)
    with pytest.raises(InvalidArgument, match=message) if "f.pb" not in message else pytest.raises(RuntimeError, match=message):
        read_inputs([X, T], texts, {}, {})


def test_types_that_numpy_keeps_as_bytes_become_those_of_the_input(tmp_path: Path) -> None:
    """As bfloat16 is kept."""
    array = np.array([1.5, 2], ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", array)
    found = read_inputs([NodeArg("x", "tensor(bfloat16)", [2])], [f"x={tmp_path / 'x.npy'}"], {}, {})["x"]
    assert found.dtype == array.dtype
    assert found.tolist() == array.tolist()


def test_a_value_may_be_given_in_the_place_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In JSON, of the input's type; a file of that name comes first."""
    found = read_inputs([X, T, S], ["x=[[1, 2]]", "t=[3, 4]", 's=["a b"]'], {}, {})
    assert [(value.tolist(), value.dtype) for value in found.values()] == [
        ([[1, 2]], np.float32),
        ([3, 4], np.int64),
        (["a b"], object),
    ]
    monkeypatch.chdir(tmp_path)
    np.save("3.npy", PAIR)
    (tmp_path / "3.npy").rename("3")
    assert read_inputs([X], ["x=3"], {}, {})["x"].tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t=young", "there is no file 'young' .* values are written as JSON"),
        ('t=["young"]', "--input t=.* input 't' takes a tensor.int64., which this is not"),
        ("t=[[1], [1, 2]]", "which this is not"),
        (f"t=[{2**70}]", "which this is not"),
        ("t=[1, 2", r"--input t=\[1, 2: this is no JSON, and there is no such file: Expecting"),
    ],
)
def test_what_is_neither_a_file_nor_a_value_is_an_error(text: str, message: str) -> None:
    """It says what was expected."""
    with pytest.raises(InvalidArgument, match=message):
        read_inputs([T], [text], {}, {})
