"""Models whose partitions are compiled already."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.models import model

import sardonyx as ort
from sardonyx import errors
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Tensor

CPU = "CPUExecutionProvider"
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


def _options(**entries: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    for key, text in entries.items():
        options.add_session_config_entry(key.replace("__", "."), text)
    return options


def _write(source: Path, **entries: str) -> ort.InferenceSession:
    return ort.InferenceSession(str(source), _options(ep__context_enable="1", **entries), providers=[CPU])


def _load(path: Path, **entries: str) -> ort.InferenceSession:
    return ort.InferenceSession(str(path), _options(session__disable_model_compile="1", **entries), providers=[CPU])


def _feed() -> dict[str, Any]:
    return {"x": np.random.default_rng(1).standard_normal((3, 16), dtype=np.float32), "more": np.array(True)}


@pytest.mark.parametrize("embed", ["0", "1"])
def test_a_written_model_gives_the_same_results_and_compiles_nothing(source: Path, embed: str) -> None:
    """Bodies too are compiled already; what no provider keeps stays as it was."""
    first = _write(source, ep__context_embed_mode=embed)
    path = source.with_name("model_ctx.onnx")
    assert bool(list(source.parent.glob("model_ctx_*.bin"))) == (embed == "0")
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
        ort.InferenceSession(source.read_bytes(), _options(ep__context_enable="1"), providers=[CPU])


def test_a_context_model_is_not_compiled_again(source: Path) -> None:
    """It has no nodes to compile."""
    _write(source)
    with pytest.raises(errors.InvalidArgument, match="has EPContext nodes already"):
        _write(source.with_name("model_ctx.onnx"))


def test_code_from_elsewhere_needs_the_user_s_word(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the key that it was sealed with it is an error that names the option."""
    _write(source)
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "elsewhere"))
    path = source.with_name("model_ctx.onnx")
    with pytest.raises(errors.EPFail, match="not compiled by this user on this machine.*session.trust_compiled_context to 1"):
        _load(path)
    assert _load(path, session__trust_compiled_context="1").run(None, _feed())[0].shape == (3, 8)


def test_a_truncated_or_missing_file_is_an_error(source: Path) -> None:
    """Typed, with what to do."""
    _write(source)
    path = source.with_name("model_ctx.onnx")
    for file in source.parent.glob("model_ctx_*.bin"):
        file.write_bytes(file.read_bytes()[:-64])
    with pytest.raises(errors.EPFail, match="a compiled partition is damaged .*; make the context anew"):
        _load(path)
    for file in source.parent.glob("model_ctx_*.bin"):
        file.unlink()
    with pytest.raises(errors.NoSuchFile, match="EPContext node"):
        _load(path)


def test_without_its_provider_it_is_an_error(source: Path) -> None:
    """The message names who compiled it."""
    _write(source)
    with pytest.raises(errors.NotImplemented, match=f"was compiled by {CPU} and cannot be loaded by ReferenceExecutionProvider"):
        ort.InferenceSession(str(source.with_name("model_ctx.onnx")), providers=["ReferenceExecutionProvider"])


def test_compiling_can_be_forbidden(source: Path) -> None:
    """Then a model that is not compiled yet is an error."""
    with pytest.raises(errors.ModelRequiresCompilation, match="would compile .* but session.disable_model_compile is set"):
        _load(source)


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


@pytest.mark.parametrize(("attributes", "kind", "message"), [
    ({}, errors.InvalidGraph, "has '' as its ep_cache_context"),
    ({"ep_cache_context": 3}, errors.InvalidGraph, "has 3 as its ep_cache_context"),
    ({"ep_cache_context": "not base64!"}, errors.EPFail, "holds what is no base64 text"),
    ({"ep_cache_context": "AAAA"}, errors.EPFail, "EPContext node 'odd': the 3 bytes of a compiled partition do not begin as one"),
    ({"ep_cache_context": "../odd.bin", "embed_mode": 0}, errors.InvalidArgument, "EPContext node 'odd'"),
    ({"ep_cache_context": "AAAA", "source": "Nobody"}, errors.NotImplemented, "compiled by Nobody and cannot be loaded"),
])  # fmt: skip
def test_nodes_that_are_wrong_are_errors(attributes: dict[str, Any], kind: type[Exception], message: str, tmp_path: Path) -> None:
    """Typed, with the node's name, also where the user trusts the file."""
    info = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in ("x", "y")]
    given = {"source": CPU, "embed_mode": 1, **attributes}
    node = onnx.helper.make_node("EPContext", ["x"], ["y"], "odd", domain="com.microsoft", **given)
    proto = onnx.helper.make_model(onnx.helper.make_graph([node], "main", info[:1], info[1:]))
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    onnx.save(proto, str(tmp_path / "odd.onnx"))
    with pytest.raises(kind, match=message):
        _load(tmp_path / "odd.onnx", session__trust_compiled_context="1")
