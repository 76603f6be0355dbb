"""Models whose partitions are compiled already."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.models import model
from support.providers import FusingProvider
from support.sessions import options_of

import sardonyx as ort
from sardonyx import errors
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Graph, Tensor
from sardonyx.provider import Body, Partition, Program
from sardonyx.version import __version__

CPU = "CPUExecutionProvider"
ATTRIBUTES = (
    "main_context",
    "ep_cache_context",
    "embed_mode",
    "ep_sdk_version",
    "onnx_model_filename",
    "hardware_architecture",
    "partition_name",
    "source",
    "notes",
    "max_size",
)
"""All that onnxruntime's schema of EPContext has."""
TEXT = """graph(x: float[n, 16], more: bool[]) -> (y: float[n, 8], z: float[p, q]) {
    w: float[16, 8] = ... 1
    b: float[8] = ... 2
    m = MatMul(x, w)
    a = Add(m, b)
    y = Relu(a)
    places = NonZero(y)
    found = Cast(places) {to = 1}
    z = If(more) {then_branch = graph() -> (s) {
        t = Neg(found)
        s = Exp(t)
    }, else_branch = graph() -> (r) {
        r = Identity(found)
    }}
}"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key for seals is the test's own."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model that the CPU provider runs in parts."""
    path = tmp_path / "model.onnx"
    onnx_format.save(model(TEXT), path)
    return path


def _write(source: Path, **entries: str) -> ort.InferenceSession:
    return ort.InferenceSession(str(source), options_of(ep__context_enable="1", **entries), providers=[CPU])


def _load(path: Path, **entries: str) -> ort.InferenceSession:
    return ort.InferenceSession(str(path), options_of(session__disable_model_compile="1", **entries), providers=[CPU])


def _feed() -> dict[str, Any]:
    return {"x": np.random.default_rng(1).standard_normal((3, 16), dtype=np.float32), "more": np.array(True)}


@pytest.mark.parametrize("embed", ["0", "1"])
def test_a_written_model_gives_the_same_results_and_compiles_nothing(source: Path, embed: str) -> None:
    """Bodies too are compiled already; what no provider keeps stays as it was."""
    first = _write(source, ep__context_embed_mode=embed)
    path = source.with_name("model_ctx.onnx")
    assert bool(list(source.parent.glob("model_ctx*.bin"))) == (embed == "0")
    again = _load(path)
    for left, right in zip(first.run(None, _feed()), again.run(None, _feed()), strict=True):
        np.testing.assert_array_equal(left, right)
    kinds = [item.op_type for item in again.explain() if item.provider == CPU]
    assert set(kinds) == {"com.microsoft.EPContext"}


def test_the_nodes_have_onnxruntime_s_attributes(source: Path) -> None:
    """Names, source and prefix are as it writes them, and the file is valid."""
    _write(source, ep__context_node_name_prefix="mine_")
    proto = onnx.load(str(source.with_name("model_ctx.onnx")))
    node = next(item for item in proto.graph.node if item.op_type == "EPContext")
    found = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    assert node.domain == "com.microsoft"
    assert node.name == f"mine_{found['partition_name'].decode()}"
    assert (found["source"], found["main_context"], found["embed_mode"]) == (CPU.encode(), 1, 0)
    assert found["ep_cache_context"] == b"model_ctx.bin"
    assert 0 < found["max_size"] <= source.with_name("model_ctx.bin").stat().st_size
    assert found["onnx_model_filename"] == b"model.onnx"
    assert found["ep_sdk_version"] == f"sardonyx {__version__}".encode()
    assert platform.machine().encode() in found["hardware_architecture"]
    assert set(found) <= set(ATTRIBUTES)
    assert not [item for item in proto.graph.initializer if item.name in ("w", "b")]


def test_a_fresh_process_compiles_nothing(source: Path, tmp_path: Path) -> None:
    """With a cache that holds nothing but the key; the trace of a plain load has the events that are missing here."""
    _write(source)
    code = "import sys, sardonyx; sardonyx.InferenceSession(sys.argv[1], providers=[sys.argv[2]])"
    for path, compiles in ((source, True), (source.with_name("model_ctx.onnx"), False)):
        for item in (tmp_path / "cache").glob("*.sxo"):
            item.unlink()
        trace = tmp_path / f"{path.stem}.jsonl"
        places = {"PYTHONPATH": ":".join(sys.path), "SARDONYX_CACHE_DIR": str(tmp_path / "cache"), "SARDONYX_TRACE": str(trace)}
        subprocess.run([sys.executable, "-c", code, str(path), CPU], check=True, env=places)
        names = [json.loads(line)["name"] for line in trace.read_text(encoding="utf-8").splitlines()]
        assert ("codegen.compile" in names) == compiles
        assert ("context.load" in names) != compiles


def test_the_path_is_the_model_s_with_ctx_or_what_the_option_says(source: Path, tmp_path: Path) -> None:
    """A file that exists is not written over."""
    path = tmp_path / "other.onnx"
    _write(source, ep__context_file_path=str(path))
    assert path.exists()
    with pytest.raises(errors.InvalidArgument, match="other.onnx' exists; remove it"):
        _write(source, ep__context_file_path=str(path))
    with pytest.raises(errors.InvalidArgument, match="comes from no file; set ep.context_file_path"):
        ort.InferenceSession(source.read_bytes(), options_of(ep__context_enable="1"), providers=[CPU])


def test_a_context_model_is_not_compiled_again(source: Path) -> None:
    """It has no nodes to compile."""
    _write(source)
    with pytest.raises(errors.InvalidArgument, match="has EPContext nodes already"):
        _write(source.with_name("model_ctx.onnx"))


def test_initializers_that_a_feed_may_override_stay_so(tmp_path: Path) -> None:
    """They are inputs with a default in the written model too."""
    held = model("graph(x: float[2], k: float[2]) -> (y: float[2]) {\ny = Add(x, k)\n}")
    value = held.graph.inputs[1]
    value.constant = Tensor.from_array(np.float32([10, 20]), "k")
    held.graph.initializers["k"] = value
    path = tmp_path / "defaults.onnx"
    onnx_format.save(held, path)
    _write(path)
    again = _load(path.with_name("defaults_ctx.onnx"))
    assert [item.name for item in again.get_overridable_initializers()] == ["k"]
    assert again.run(None, {"x": np.float32([1, 2])})[0].tolist() == [11, 22]
    assert again.run(None, {"x": np.float32([1, 2]), "k": np.float32([0, 0])})[0].tolist() == [1, 2]


def _second(source: Path) -> Path:
    """Another model with the same weights."""
    path = source.with_name("second.onnx")
    onnx_format.save(model(TEXT.replace("y = Relu(a)", "y = Sigmoid(a)").replace("float[n, 16]", "float[1, 16]")), path)
    return path


def _large(source: Path) -> None:
    text = "graph(x: float[n, 256]) -> (y: float[n, 256]) {\nw: float[256, 256] = ... 1\nm = MatMul(x, w)\ny = Relu(m)\n}"
    onnx_format.save(model(text), source)
    onnx_format.save(model(text.replace("Relu", "Tanh")), source.with_name("second.onnx"))


@pytest.mark.parametrize(("weightless", "most_bytes"), [("0", 1.7 * 256 * 256 * 4), ("1", 0.7 * 256 * 256 * 4)])
def test_sessions_that_share_write_equal_weights_once(weightless: str, most_bytes: float, source: Path) -> None:
    """Each model is whole: all are loaded from one file, whichever was first. It may be without weights, too."""
    _large(source)
    paths = [source, source.with_name("second.onnx")]
    feed = {"x": np.random.default_rng(1).standard_normal((3, 256), dtype=np.float32)}
    expected = [ort.InferenceSession(str(path), providers=[CPU]).run(None, feed)[0] for path in paths]
    _write(paths[0], ep__share_ep_contexts="1", ep__enable_weightless=weightless)
    _write(paths[1], ep__share_ep_contexts="1", ep__stop_share_ep_contexts="1", ep__enable_weightless=weightless)
    (file,) = source.parent.glob("*.bin")
    assert file.stat().st_size < most_bytes
    for path, result in reversed(list(zip(paths, expected, strict=True))):
        found = _load(path.with_name(f"{path.stem}_ctx.onnx")).run(None, feed)[0]
        np.testing.assert_array_equal(found, result)


def test_a_session_after_the_last_that_shares_has_a_file_of_its_own(source: Path) -> None:
    """Sharing ends where an option says so."""
    second = _second(source)
    _write(source, ep__stop_share_ep_contexts="1")
    _write(second, ep__stop_share_ep_contexts="1")
    assert sorted(item.name for item in source.parent.glob("*.bin")) == ["model_ctx.bin", "second_ctx.bin"]


@pytest.mark.parametrize("embed", ["0", "1"])
def test_weights_may_stay_in_the_model(source: Path, embed: str) -> None:
    """The context has none, and gives the same results with those of the model, wherever that is."""
    _large(source)
    feed = {"x": np.random.default_rng(1).standard_normal((3, 256), dtype=np.float32)}
    first = _write(source, ep__enable_weightless="1", ep__context_embed_mode=embed)
    path = source.with_name("model_ctx.onnx")
    assert sum(item.stat().st_size for item in source.parent.glob("model_ctx*")) < 256 * 256 * 4 // 2
    np.testing.assert_array_equal(_load(path).run(None, feed)[0], first.run(None, feed)[0])
    moved = source.parent / "elsewhere" / "other.onnx"
    moved.parent.mkdir()
    source.rename(moved)
    with pytest.raises(errors.NoSuchFile, match="model.onnx.* or set the config entry ep.context_source_model_path"):
        _load(path)
    again = _load(path, ep__context_source_model_path=str(moved))
    np.testing.assert_array_equal(again.run(None, feed)[0], first.run(None, feed)[0])
    second = source.with_name("second.onnx")
    assert _load(path, ep__context_source_model_path=str(second)).run(None, feed)[0].shape == (3, 256)


def test_weights_of_another_model_are_an_error(source: Path) -> None:
    """Their names may be the same; the message says which is another."""
    _large(source)
    _write(source, ep__enable_weightless="1")
    path = source.with_name("model_ctx.onnx")
    text = "graph(x: float[n, {0}]) -> (y: float[n, {0}]) {{ w: float[{0}, {0}] = ... 7 y = MatMul(x, w) }}"
    for size, message in ((256, "'w' has other elements"), (128, r"'w' is float32\[128, 128\], but float32\[256, 256\]")):
        onnx_format.save(model(text.format(size)), source)
        with pytest.raises(errors.EPFail, match=f"the weight {message}.*; give the model"):
            _load(path)
    onnx_format.save(model("graph(x: float[n]) -> (y: float[n]) { y = Relu(x) }"), source)
    with pytest.raises(errors.EPFail, match="needs the weight 'w' of the model"):
        _load(path)


class _Packer(FusingProvider):
    """Keeps programs, but not without their weights."""

    def save(self, partition: Partition, program: Program) -> bytes | None:
        return b"all of it"

    def load(self, partition: Partition, content: memoryview) -> Program:
        raise errors.EPFail("nothing was kept")


@pytest.mark.parametrize(
    ("entries", "kind", "message"),
    [
        ({"ep__enable_weightless": "1"}, errors.EPFail, "enable_weightless is set, but Packer does not keep programs without"),
        ({"ep__share_ep_contexts": "1", "ep__context_embed_mode": "1"}, errors.InvalidArgument, "set ep.context_embed_mode to 0"),
        ({"ep__context_model_external_initializers_file_name": "model_ctx.bin"}, errors.InvalidArgument, "is the file of programs"),
        (
            {"ep__context_file_path": "model_ctx.bin"},
            errors.InvalidArgument,
            "'model_ctx.bin' is the file of programs; give the model",
        ),
        ({"ep__context_enable": "yes"}, errors.InvalidArgument, 'ep.context_enable is "0" or "1"'),
        ({"ep__context_model_external_initializers_size": "-1"}, errors.InvalidArgument, "_size is a number of bytes, got '-1'"),
    ],
)
def test_options_that_cannot_be_are_errors(source: Path, entries: dict[str, str], kind: type[Exception], message: str) -> None:
    """And nothing is written."""
    options = options_of(**{"ep__context_enable": "1", **entries})
    with pytest.raises(kind, match=message):
        ort.InferenceSession(str(source), options, providers=[_Packer({"Relu"}, "Packer")])
    assert not list(source.parent.glob("*_ctx*"))


def test_a_model_without_a_file_cannot_keep_weights(source: Path, tmp_path: Path) -> None:
    """There is nowhere to find them again."""
    options = options_of(ep__context_enable="1", ep__enable_weightless="1", ep__context_file_path=str(tmp_path / "a.onnx"))
    with pytest.raises(errors.InvalidArgument, match="comes from no file where weights could stay; give a path"):
        ort.InferenceSession(source.read_bytes(), options, providers=[CPU])


def test_the_metadata_say_what_programs_are_good_for(source: Path) -> None:
    """One entry for each provider that compiled."""
    _write(source)
    found = _load(source.with_name("model_ctx.onnx")).get_modelmeta().custom_metadata_map
    assert list(found) == [f"ep_compatibility_info.{CPU}"]


class _Odd(FusingProvider):
    """Does the wrong thing in one of its methods."""

    hardware_architecture = "odd"

    def __init__(self, wrong: str) -> None:
        super().__init__({"Relu"}, "Odd")
        self._wrong = wrong

    def _act(self, name: str, result: Any) -> Any:
        if self._wrong == name:
            raise KeyError("lost")
        return result

    def save(self, partition: Partition, program: Program) -> Any:
        return self._act("save", "no bytes" if self._wrong == "text" else b"bytes")

    def load(self, partition: Partition, content: memoryview) -> Any:
        return self._act("load", None)

    def compatibility_info(self) -> Any:
        return self._act("compatibility_info", "any")

    def compatibility(self, info: str) -> Any:
        return self._act("compatibility", 9 if self._wrong == "number" else 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("save", "Odd failed to save .*: KeyError: 'lost'"),
        ("text", "Odd failed to save .*: TypeError: .* bytes-like object"),
        ("compatibility_info", "Odd failed to describe its programs: KeyError"),
    ],
)
def test_a_provider_that_fails_while_programs_are_written_is_named(wrong: str, message: str, source: Path) -> None:
    """With what it was doing."""
    with pytest.raises(errors.EPFail, match=message) as caught:
        ort.InferenceSession(str(source), options_of(ep__context_enable="1"), providers=[_Odd(wrong)])
    assert caught.value.provider == "Odd"
    assert not source.with_name("model_ctx.onnx").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("compatibility", "Odd failed to judge programs that were compiled before: KeyError"),
        ("number", "Odd failed to judge programs that were compiled before: ValueError: 9"),
        ("load", "Odd failed to load EPContext node .*: KeyError: 'lost'"),
        ("", "Odd loaded EPContext node .* to None, no program: it lacks makes_outputs, bind, run"),
    ],
)
def test_a_provider_that_fails_while_programs_are_loaded_is_named(wrong: str, message: str, source: Path) -> None:
    """So is one that gives no program."""
    ort.InferenceSession(str(source), options_of(ep__context_enable="1"), providers=[_Odd("")])
    with pytest.raises(errors.EPFail, match=message) as caught:
        ort.InferenceSession(str(source.with_name("model_ctx.onnx")), providers=[_Odd(wrong)])
    assert caught.value.provider == "Odd"


class _Failing(_Packer):
    """Compiles, keeps its programs, and fails when they run."""

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> Program:
        program = super().compile(partition, bodies)

        def fail(*arguments: Any) -> list[Any]:
            raise errors.EPFail("out of order")

        program.run = fail  # type: ignore[method-assign]  # of this one object
        return program


def test_a_provider_that_fails_later_does_not_have_the_model_written_again(source: Path) -> None:
    """The session goes on without it; what was written stays."""
    options = options_of(ep__context_enable="1")
    options.provider_failure = "skip"
    session = ort.InferenceSession(str(source), options, providers=[_Failing({"Relu"}, "Failing"), "ReferenceExecutionProvider"])
    before = source.with_name("model_ctx.onnx").read_bytes()
    with pytest.warns(UserWarning, match="Failing failed and is left out"):
        assert session.run(None, _feed())[0].shape == (3, 8)
    assert session.get_providers() == ["ReferenceExecutionProvider"]
    assert source.with_name("model_ctx.onnx").read_bytes() == before


def test_a_provider_s_own_form_lies_in_a_file_of_its_own(source: Path) -> None:
    """The node says which, and how long it is."""
    ort.InferenceSession(str(source), options_of(ep__context_enable="1"), providers=[_Packer({"Relu"}, "Packer")])
    (file,) = source.parent.glob("model_ctx_*.bin")
    assert file.read_bytes() == b"all of it"
    with pytest.raises(errors.EPFail, match="nothing was kept"):
        ort.InferenceSession(str(source.with_name("model_ctx.onnx")), providers=[_Packer({"Relu"}, "Packer")])
