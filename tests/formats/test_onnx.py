"""ONNX files: load and save."""

from __future__ import annotations

import gc
import io
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from support.circles import assert_no_circles
from support.protos import info, model, node, tensor
from support.same_model import assert_same_model

from sardonyx.errors import Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile, SardonyxError
from sardonyx.formats.onnx import external_places, load, save, save_located, to_bytes, to_proto
from sardonyx.ir import Model
from sardonyx.ir.verify import verify

WEIGHT = np.arange(2 << 20, dtype=np.float32)
SMALL = model([node("Add", ["x", "w"], ["y"])], initializers=[tensor("w", np.ones(2, np.float32))])

BRANCH = helper.make_graph([node("Neg", ["x"], ["b"])], "branch", [], [info("b", ("n",))], [tensor("c", np.ones(3))])
FUNCTION = helper.make_function("f", "F", ["a"], ["b"], [node("Elu", ["a"], ["b"])], [helper.make_opsetid("", 21)])
NESTED = model(
    [node("If", ["c"], ["t"], then_branch=BRANCH, else_branch=BRANCH), node("F", ["t"], ["y"], domain="f", axis=1, names=["a"])],
    ["x", info("c", (), onnx.TensorProto.BOOL)],
    functions=[FUNCTION],
    imports={"": 21, "f": 1},
).SerializeToString()


def large() -> onnx.ModelProto:
    return model([node("Add", ["x", "w"], ["y"])], [info("x", ())], [info("y", (2 << 20,))], [tensor("w", WEIGHT)])


def weight_of(found: Model) -> np.ndarray:
    constant = found.graph.initializers["w"].constant
    assert constant is not None
    return constant.numpy()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "model.onnx"
    target.write_bytes(SMALL.SerializeToString())
    return target


def test_every_kind_of_source_gives_the_same_model(path: Path) -> None:
    """A path as Path or text, bytes in any buffer, an open file and a message load alike."""
    data = path.read_bytes()
    expected = load(path)
    verify(expected)
    sources = [str(path), data, bytearray(data), memoryview(data), memoryview(bytearray(data)), io.BytesIO(data), SMALL]
    for source in sources:
        assert_same_model(load(source), expected)
    with path.open("rb") as file:
        assert_same_model(load(file), expected)


def test_a_model_knows_its_path(path: Path) -> None:
    """Messages call it by the name of its file."""
    assert load(path).path == path
    assert load(str(path)).label == "model.onnx"
    assert load(path.read_bytes()).path is None


def test_large_weights_stay_in_the_file(tmp_path: Path) -> None:
    """The array of a weight is a read-only view, and not of memory that was allocated for it."""
    target = tmp_path / "large.onnx"
    target.write_bytes(large().SerializeToString())
    found = weight_of(load(target))
    assert found.tobytes() == WEIGHT.tobytes()
    assert not found.flags.writeable
    assert not found.flags.owndata


def test_large_weights_of_bytes_are_views_of_them() -> None:
    """Loading from bytes copies no weight."""
    data = large().SerializeToString()
    assert np.shares_memory(weight_of(load(data)), np.frombuffer(data, np.uint8))


def test_a_buffer_that_may_change_is_copied() -> None:
    """What the caller does to a bytearray afterwards does not reach the model."""
    data = bytearray(large().SerializeToString())
    found = load(data)
    data[:] = bytes(len(data))
    assert weight_of(found).tobytes() == WEIGHT.tobytes()


def test_a_message_is_left_as_it_was() -> None:
    """Loading a ModelProto does not change it."""
    proto = large()
    before = proto.SerializeToString()
    load(proto)
    assert proto.SerializeToString() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"hello world, this is no model\n", "looks like text, beginning with 'hello world"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer; .* `git lfs pull`"),
        (b"PK\x03\x04" + bytes(40), "ZIP archive"),
        (b"PK\x03\x04" + bytes(26) + b"model/data.pkl", "a file of torch.save; export the model by torch.onnx.export"),
        (pickle.dumps({"a": 1}), "a pickle; convert the model that it holds, one of scikit-learn by skl2onnx"),
        (bytes([80, 0, 0, 0, 0, 0, 0, 0]) + b'{"w":{"dtype":"F32"}}', "safetensors, which hold weights and no graph"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(40), "TensorFlow Lite"),
        (b"\x1c\x00\x00\x00ORTM" + bytes(40), "ORT format"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b'{"irVersion": 8}', "JSON"),
        (SMALL.SerializeToString()[:-7], "no ONNX model, or a part of one only"),
        (large().SerializeToString()[:-7], "no ONNX model, or a part of one only"),
        (bytes(random.Random(0).randbytes(3000)), "no ONNX model"),
        (SMALL.graph.SerializeToString(), "hold no graph|no ONNX model"),
        (tensor("w", np.ones(20)).SerializeToString(), "hold no graph|no ONNX model"),
        (onnx.ModelProto(ir_version=8).SerializeToString(), "hold no graph"),
    ],
    ids=[
        "empty",
        "text",
        "lfs",
        "zip",
        "torch",
        "pickle",
        "safetensors",
        "tflite",
        "ort",
        "html",
        "json",
        "cut",
        "large",
        "random",
        "graph",
        "tensor",
        "no-graph",
    ],
)
def test_bytes_that_are_no_model_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """The error names the file and says what the bytes look like."""
    target = tmp_path / "bad.onnx"
    target.write_bytes(content)
    with pytest.raises(InvalidProtobuf, match=message) as caught:
        load(target)
    assert str(caught.value).startswith(repr(str(target)))
    with pytest.raises(InvalidProtobuf, match=message):
        load(content)


@pytest.mark.parametrize("size_bytes", range(SMALL.graph.ByteSize()))
def test_no_truncation_is_accepted_silently(size_bytes: int) -> None:
    """A model cut anywhere in its graph is an error of ours."""
    with pytest.raises(SardonyxError):
        load(SMALL.SerializeToString()[:size_bytes])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 255)), min_size=1, max_size=5))
def test_damaged_bytes_give_a_sound_model_or_an_error_of_ours(edits: list[tuple[int, int]]) -> None:
    """Whatever bytes are changed, nothing but a SardonyxError is raised, by loading, verifying, reading data or saving."""
    data = bytearray(NESTED)
    for place, byte in edits:
        data[place % len(data)] = byte
    try:
        found = load(bytes(data))
        verify(found)
        to_bytes(found)
    except SardonyxError:
        pass


def test_a_missing_file_is_no_such_file(tmp_path: Path) -> None:
    """The message holds the path."""
    with pytest.raises(NoSuchFile, match=r"gone\.onnx' does not exist"):
        load(tmp_path / "gone.onnx")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """The message says that it is one."""
    with pytest.raises(InvalidArgument, match="is a folder"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (42, "cannot be loaded from int"),
        (None, "cannot be loaded from NoneType"),
        (io.StringIO("text"), "open it in binary mode"),
        (SMALL.graph, r"expected an onnx\.ModelProto, got onnx\.GraphProto"),
    ],
)
def test_what_is_no_source_is_refused(source: Any, message: str) -> None:
    """The message says what a model can be loaded from."""
    with pytest.raises(InvalidArgument, match=message):
        load(source)


def test_errors_of_the_graph_name_the_file(tmp_path: Path) -> None:
    """Whatever is wrong inside, the message starts with the file."""
    target = tmp_path / "bad.onnx"
    target.write_bytes(model([node("Relu", ["nothing"], ["y"])]).SerializeToString())
    with pytest.raises(InvalidGraph, match=r"^'.*bad\.onnx': node \(Relu\)"):
        load(target)


def test_importing_the_module_imports_no_protobuf() -> None:
    """The onnx package is loaded with the first model."""
    code = "import sys, sardonyx.formats.onnx; sys.exit(any(name in sys.modules for name in ('onnx', 'google.protobuf')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_loading_leaves_the_collector_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is neither switched off nor on, and no object of the program's changes its generation."""
    for name in ("disable", "enable", "freeze", "unfreeze", "collect", "set_threshold"):
        monkeypatch.delattr(gc, name)
    load(path)
    with pytest.raises(InvalidProtobuf):
        load(b"")


@pytest.mark.parametrize("spoil", ["weight", "name", "function"])
def test_a_model_that_cannot_be_read_leaves_no_circles(spoil: str) -> None:
    """Nodes and values of a graph that was read in part go without the garbage collector."""
    proto = onnx.ModelProto.FromString(NESTED)
    if spoil == "weight":
        proto.graph.node[0].attribute[0].g.initializer[0].dims[0] += 1
    elif spoil == "name":
        proto.graph.node[-1].input[0] = "nobody"
    else:
        proto.functions[0].output[0] = "nobody"
    content = proto.SerializeToString()

    def fail() -> None:
        with pytest.raises(SardonyxError):
            load(content)

    assert_no_circles(fail)


def test_external_data_is_found_beside_the_model(tmp_path: Path) -> None:
    """Saved with its data in a file of its own, a model loads from its path, and from bytes with the folder given."""
    target = tmp_path / "m.onnx"
    save(load(large()), target, external_data=True)
    assert (tmp_path / "m.onnx.data").stat().st_size == WEIGHT.nbytes
    assert target.stat().st_size < 1000
    onnx.checker.check_model(target)
    assert weight_of(load(target)).tobytes() == WEIGHT.tobytes()
    assert weight_of(load(target.read_bytes(), external_dir=tmp_path)).tobytes() == WEIGHT.tobytes()
    with pytest.raises(InvalidArgument, match="initializer 'w' .* name the folder that holds 'm.onnx.data'"):
        load(target.read_bytes())


def test_text_that_is_no_utf8_is_no_model_for_either_protobuf() -> None:
    """The implementation in Python raises another error than the compiled one."""
    code = """
from sardonyx.errors import InvalidProtobuf
from sardonyx.formats.onnx import load
try:
    load(bytes([0x12, 2, 0xFF, 0xFE]))
except InvalidProtobuf:
    print("refused")
"""
    for implementation in ("python", "upb"):
        environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "refused\n"


def test_missing_external_data_is_found_at_load(tmp_path: Path) -> None:
    """The error names model, tensor and data file."""
    target = tmp_path / "m.onnx"
    save(load(large()), target, external_data=True)
    (tmp_path / "m.onnx.data").unlink()
    with pytest.raises(NoSuchFile, match=r"m\.onnx': initializer 'w' .*m\.onnx\.data' does not exist"):
        load(target)


def test_places_of_external_data_are_told(tmp_path: Path) -> None:
    """Of what lies outside only, and without reading it."""
    target = tmp_path / "m.onnx"
    save(load(large()), target)
    assert external_places(target) == {}
    save(load(large()), target, external_data=True)
    (tmp_path / "m.onnx.data").unlink()
    assert external_places(target) == {"w": ("m.onnx.data", 0, WEIGHT.nbytes)}


def test_data_may_be_where_the_caller_has_put_it(path: Path) -> None:
    """The model refers to it, and is the same; a folder that is not there is an error."""
    held, (name, *_) = load(path), load(path).graph.initializers
    tensor = held.graph.initializers[name].constant
    assert tensor is not None
    path.with_name("mine.bin").write_bytes(tensor.numpy().tobytes())
    place = ("mine.bin", 0, tensor.size_bytes)
    save_located(held, path.with_name("located.onnx"), lambda key, _: place if key == name else None)
    assert_same_model(load(path.with_name("located.onnx")), held)
    with pytest.raises(Fail, match="cannot be saved as .*nowhere"):
        save_located(held, path.with_name("nowhere") / "located.onnx", lambda key, _: None)


def test_a_model_can_be_saved_over_itself(tmp_path: Path) -> None:
    """Weights that are mapped from the files that are replaced stay what they were."""
    target = tmp_path / "m.onnx"
    save(load(large()), target, external_data=True)
    found = load(target)
    save(found, target, external_data=True)
    save(found, target)
    assert weight_of(found).tobytes() == WEIGHT.tobytes()
    assert weight_of(load(target)).tobytes() == WEIGHT.tobytes()


def test_models_are_saved_to_open_files() -> None:
    """An open file gets all bytes; it has no folder for external data."""
    stream = io.BytesIO()
    found = load(SMALL)
    save(found, stream)
    assert_same_model(load(stream.getvalue()), found)
    with pytest.raises(InvalidArgument, match="needs a path"):
        save(found, stream, external_data=True)


def test_a_failed_save_leaves_what_was_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stands and no temporary file is left when the data of a tensor cannot be read."""
    before = path.read_bytes()
    found = load(SMALL)
    constant = found.graph.initializers["w"].constant
    assert constant is not None
    found.graph.initializers["w"].constant = type(constant)(constant.dtype, constant.shape, _fail)
    with pytest.raises(InvalidGraph, match="lost"):
        save(found, path, external_data=True)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["model.onnx"]


def _fail() -> Any:
    raise InvalidGraph("lost")


def test_a_target_that_cannot_be_written_fails(tmp_path: Path) -> None:
    """The error names the path."""
    with pytest.raises(Fail, match=r"cannot be saved as .*gone"):
        save(load(SMALL), tmp_path / "gone" / "m.onnx")


def test_saved_bytes_pass_the_checker() -> None:
    """onnx.checker accepts what was written."""
    onnx.checker.check_model(to_bytes(load(SMALL)), full_check=True)
    onnx.checker.check_model(to_proto(load(SMALL)), full_check=True)


CASES = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").glob("*/*/model.onnx"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.parent.name)
def test_the_models_of_the_standard_survive_a_round_trip(case: Path) -> None:
    """Loading what was saved gives an equivalent model, which the checker accepts."""
    found = load(case)
    verify(found)
    saved = to_bytes(found)
    again = load(saved)
    verify(again)
    assert_same_model(found, again)
    onnx.checker.check_model(saved)
