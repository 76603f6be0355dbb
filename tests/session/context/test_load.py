"""Loading models whose partitions are compiled already."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.models import model
from support.sessions import options_of
from support.users import STRANGER, as_another_user, needs_root

import sardonyx as ort
from sardonyx import errors
from sardonyx.codegen.run import elf
from sardonyx.formats import onnx as onnx_format
from sardonyx.trace import observe

CPU = "CPUExecutionProvider"
TEXT = """graph(x: float[n, 16], s: float[n, 16]) -> (y: float[n, 8], z: float[p, q]) {
    w: float[16, 8] = ... 1
    m = MatMul(x, w)
    y = Relu(m)
    places = NonZero(y)
    found = Cast(places) {to = 1}
    z = Neg(found)
}"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key for seals is the test's own."""
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model that the CPU provider runs in two parts."""
    path = tmp_path / "model.onnx"
    onnx_format.save(model(TEXT), path)
    return path


def _write(source: Path, **entries: str) -> Path:
    ort.InferenceSession(str(source), options_of(ep__context_enable="1", **entries), providers=[CPU])
    return source.with_name(f"{source.stem}_ctx.onnx")


def _load(path: Path, **entries: str) -> ort.InferenceSession:
    return ort.InferenceSession(str(path), options_of(session__disable_model_compile="1", **entries), providers=[CPU])


def _feed() -> dict[str, Any]:
    return {name: np.random.default_rng(1).standard_normal((3, 16), dtype=np.float32) for name in ("x", "s")}


def _edit(path: Path, **changes: Any) -> None:
    """Change attributes of the first EPContext node."""
    proto = onnx.load(str(path))
    node = next(item for item in proto.graph.node if item.op_type == "EPContext")
    kept = [item for item in node.attribute if item.name not in changes]
    del node.attribute[:]
    node.attribute.extend([*kept, *(onnx.helper.make_attribute(name, value) for name, value in changes.items())])
    onnx.save(proto, str(path))


def test_code_from_elsewhere_needs_the_user_s_word(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the key that it was sealed with it is an error that names the option."""
    path = _write(source)
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "elsewhere"))
    with pytest.raises(errors.EPFail, match="not compiled by this user on this machine.*session.trust_compiled_context to 1"):
        _load(path)
    assert _load(path, session__trust_compiled_context="1").run(None, _feed())[0].shape == (3, 8)


def test_a_truncated_or_missing_file_is_an_error(source: Path) -> None:
    """Typed, with what to do."""
    path = _write(source)
    for file in source.parent.glob("model_ctx*.bin"):
        file.write_bytes(file.read_bytes()[:-64])
    with pytest.raises(errors.EPFail, match="needs [0-9]* bytes of .*, which has [0-9]*; restore it, or make the context anew"):
        _load(path)
    for file in source.parent.glob("model_ctx*.bin"):
        file.unlink()
    with pytest.raises(errors.NoSuchFile, match="EPContext node"):
        _load(path)


def test_without_its_provider_it_is_an_error(source: Path) -> None:
    """The message names who compiled it."""
    path = _write(source)
    with pytest.raises(errors.NotImplemented, match=f"was compiled by {CPU} and cannot be loaded by ReferenceExecutionProvider"):
        ort.InferenceSession(str(path), providers=["ReferenceExecutionProvider"])


def test_compiling_can_be_forbidden(source: Path) -> None:
    """Then a model that is not compiled yet is an error."""
    with pytest.raises(errors.ModelRequiresCompilation, match="would compile .* but session.disable_model_compile is set"):
        _load(source)


@pytest.mark.parametrize(
    ("attributes", "kind", "message"),
    [
        ({}, errors.InvalidGraph, "has '' as its ep_cache_context"),
        ({"ep_cache_context": 3}, errors.InvalidGraph, "'ep_cache_context' has type INT"),
        ({"ep_cache_context": "A" * 2000, "embed_mode": 0}, errors.InvalidGraph, "names a file of 2000 characters"),
        ({"ep_cache_context": "AAAA", "embed_mode": "yes"}, errors.InvalidGraph, "'embed_mode' has type STRING"),
        ({"main_context": 0}, errors.InvalidGraph, "has main_context 0: its program is in another node"),
        ({"ep_cache_context": b"\xff\xfe", "notes": b"\xff"}, errors.EPFail, "holds what is no base64 text"),
        ({"ep_cache_context": "not base64!"}, errors.EPFail, "holds what is no base64 text"),
        (
            {"ep_cache_context": "AAAA"},
            errors.EPFail,
            "EPContext node 'odd': the 3 bytes of a compiled partition do not end as one",
        ),
        ({"ep_cache_context": "../odd.bin", "embed_mode": 0}, errors.InvalidArgument, "EPContext node 'odd'"),
        ({"ep_cache_context": "AAAA", "source": "Nobody"}, errors.NotImplemented, "compiled by Nobody and cannot be loaded"),
    ],
)
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


def test_programs_that_were_swapped_are_an_error(source: Path) -> None:
    """Also where the user trusts them: a node notes what it was written with."""
    path = _write(source)
    sizes = [item.i for node in onnx.load(str(path)).graph.node for item in node.attribute if item.name == "max_size"]
    _edit(path, max_size=sizes[1])
    for trust in ("0", "1"):
        with pytest.raises(errors.EPFail, match="was written with another content than .*: files were swapped"):
            _load(path, session__trust_compiled_context=trust)


def test_a_program_of_another_partition_does_not_run(source: Path) -> None:
    """Not even where its notes are changed, too."""
    path = _write(source)
    nodes = [node for node in onnx.load(str(path)).graph.node if node.op_type == "EPContext"]
    other = {item.name: onnx.helper.get_attribute_value(item) for item in nodes[1].attribute}
    _edit(path, max_size=other["max_size"], notes=other["notes"])
    with pytest.raises(errors.EPFail, match="in the program that it holds; it is the program of another partition"):
        _load(path)


def test_a_file_written_anew_beside_the_old_model_is_an_error(source: Path) -> None:
    """The model and its file belong together."""
    path = _write(source)
    kept = path.read_bytes()
    path.unlink()
    onnx_format.save(model(TEXT.replace("Relu", "Tanh")), source)
    _write(source)
    path.write_bytes(kept)
    with pytest.raises(errors.EPFail, match="EPContext node"):
        _load(path)


@pytest.mark.parametrize("place", [0.0, 0.2, 0.5, 0.9])
def test_a_changed_byte_of_code_is_an_error(source: Path, place: float) -> None:
    """Machine code and header are as they were written, or are not run."""
    path = _write(source, ep__context_embed_mode="0")
    file = path.with_suffix(".bin")
    content = bytearray(file.read_bytes())
    begin = content.index(b"\x7fELF")
    content[begin + int(place * 1000)] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(errors.EPFail, match="a compiled partition is damaged .*some of its bytes changed"):
        _load(path, session__trust_compiled_context="1")


def test_a_model_from_memory_finds_its_file_by_an_option(source: Path) -> None:
    """It has no folder of its own; the option is onnxruntime's."""
    path = _write(source)
    content = path.read_bytes()
    with pytest.raises(errors.InvalidArgument, match="in the file 'model_ctx.bin', but the model comes from memory; set "):
        ort.InferenceSession(content, providers=[CPU])
    again = ort.InferenceSession(content, options_of(ep__context_file_path=str(path)), providers=[CPU])
    assert again.run(None, _feed())[0].shape == (3, 8)


def test_each_file_is_read_once(source: Path) -> None:
    """A callback is asked once for a name, however many programs are in it."""
    path = _write(source)
    asked: list[str] = []

    def read(name: str, buffer: ort.OrtEpContextDataBuffer) -> None:
        asked.append(name)
        content = path.with_suffix(".bin").read_bytes()
        buffer.allocate(len(content))
        buffer.write(content)

    options = options_of(session__disable_model_compile="1")
    options.set_ep_context_data_read_func(read, 1 << 20)
    session = ort.InferenceSession(path.read_bytes(), options, providers=[CPU])
    assert asked == ["model_ctx.bin"]
    assert session.run(None, _feed())[0].shape == (3, 8)
    options.clear_ep_context_data_read_func()
    assert ort.InferenceSession(str(path), options, providers=[CPU]).run(None, _feed())[0].shape == (3, 8)
    assert asked == ["model_ctx.bin"]


def test_a_callback_that_gives_something_else_is_an_error(source: Path) -> None:
    """As a damaged file is; so is one that fails."""
    path = _write(source)
    options = options_of()
    options.set_ep_context_data_read_func(lambda name, buffer: buffer.allocate(100_000), 1 << 20)
    with pytest.raises(errors.EPFail, match="was written with another content"):
        ort.InferenceSession(str(path), options, providers=[CPU])
    options.set_ep_context_data_read_func(lambda name, buffer: buffer.allocate(100_000), 10)
    with pytest.raises(errors.Fail, match="read callback failed for 'model_ctx.bin': 100000 bytes are to be allocated"):
        ort.InferenceSession(str(path), options, providers=[CPU])


def test_a_link_out_of_the_folder_is_refused(source: Path, tmp_path: Path) -> None:
    """As for external data."""
    path = _write(source)
    file, elsewhere = path.with_suffix(".bin"), tmp_path.with_name(f"{tmp_path.name}.elsewhere")
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with pytest.raises(errors.InvalidArgument, match="leads by a link to .*, outside the model's folder"):
        _load(path)


def test_a_file_may_grow_while_it_is_read(source: Path) -> None:
    """Sessions that share it write behind what others have mapped."""
    second = source.with_name("second.onnx")
    onnx_format.save(model(TEXT.replace("Relu", "Tanh")), second)
    path = _write(source, ep__share_ep_contexts="1")
    session = _load(path)
    expected = session.run(None, _feed())
    other = _write(second, ep__stop_share_ep_contexts="1")
    for left, right in zip(session.run(None, _feed()), expected, strict=True):
        np.testing.assert_array_equal(left, right)
    assert _load(path).run(None, _feed())[0].shape == _load(other).run(None, _feed())[0].shape


@pytest.mark.skipif(not elf.is_supported(), reason="objects are linked by LLVM here")
def test_no_compiler_is_even_loaded(source: Path) -> None:
    """Without a cache, in a fresh process; the user's word stands for the key."""
    path = _write(source)
    code = """if True:
        import sys, sardonyx
        options = sardonyx.SessionOptions()
        options.add_session_config_entry("session.trust_compiled_context", "1")
        sardonyx.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
        print([name for name in sys.modules if name.startswith("llvmlite")])
    """
    places = {"PYTHONPATH": ":".join(sys.path), "SARDONYX_CACHE_DIR": ""}
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=places, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_loading_is_traced_for_each_partition(source: Path) -> None:
    """And nothing is compiled or looked up."""
    path = _write(source)
    names: list[str] = []
    with observe(lambda event: names.append(event.name)):
        _load(path)
    assert names.count("context.load") == 2
    assert not [name for name in names if name.startswith(("codegen", "disk_cache"))]


def test_notes_of_any_text_are_no_seal(source: Path) -> None:
    """Not even what is no text."""
    path = _write(source)
    for notes in ("", "hmac-sha256:", b"\xff\xfe", "hmac-sha256:" + "0" * 64):
        _edit(path, notes=notes)
        with pytest.raises(errors.EPFail, match="holds machine code that was not compiled by this user"):
            _load(path)


def _write_large(source: Path) -> Path:
    """A compiled model whose file is large enough to be mapped."""
    size = 1100
    nodes = f"w: float[{size}, {size}] = ... 1\ny = MatMul(x, w)"
    onnx_format.save(model(f"graph(x: float[n, {size}]) -> (y: float[n, {size}]) {{\n{nodes}\n}}"), source)
    return _write(source)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="maps are read from Linux")
def test_large_weights_may_stay_in_the_file(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user wants it mapped, sessions that load it, of any process, have it in memory once."""
    monkeypatch.setenv("SARDONYX_MAP_WEIGHTS", "1")
    path = _write_large(source)
    sessions = [_load(path), _load(path)]
    maps = [line.split() for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()]
    found = [fields for fields in maps if fields[-1] == str(path.with_suffix(".bin"))]
    assert len(found) == len(sessions)
    assert {fields[1] for fields in found} == {"r--s"}


@pytest.mark.parametrize("harm", ["cut short", "written over", "deleted"])
def test_the_file_may_go_once_a_session_is_made(source: Path, harm: str) -> None:
    """Nothing of it is mapped or open: a mapping that was cut short would end the process."""
    path = _write_large(source)
    session = _load(path)
    feed = {"x": np.ones((2, 1100), np.float32)}
    (expected,) = session.run(None, feed)
    file = path.with_suffix(".bin")
    if harm == "deleted":
        file.unlink()
    else:
        os.truncate(file, 0)
    if harm == "written over":
        file.write_bytes(b"\xff" * (8 << 20))
    np.testing.assert_array_equal(session.run(None, feed)[0], expected)


_WRITER = r"""if True:
    import mmap, re, sys
    with open(sys.argv[1], "r+b") as stream:
        held = mmap.mmap(stream.fileno(), 0)
    places = [found.start() + 64 for found in re.finditer(b"\x7fELF", held)]
    codes = [held[place : place + 512] for place in places]
    print("ready", flush=True)
    while True:
        for code in ([b"\xcc" * 512] * len(places), codes):
            for place, content in zip(places, code):
                held[place : place + 512] = content
"""
_LOADER = """if True:
    import sys, numpy, sardonyx
    feed, found = {"x": numpy.ones((2, 1100), numpy.float32)}, []
    for _ in range(40):
        try:
            session = sardonyx.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
        except sardonyx.EPFail:
            continue
        found.append(session.run(None, feed)[0].tobytes())
    print(len(set(found)))
"""


@pytest.mark.skipif(not elf.is_supported(), reason="objects are no ELF files")
def test_code_that_changes_while_it_is_loaded_is_not_run(source: Path) -> None:
    """Another process writes traps over it and takes them back, as fast as it can: each session is refused or right."""
    path = _write_large(source)
    places = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", _WRITER, str(path.with_suffix(".bin"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            done = subprocess.run(
                [sys.executable, "-c", _LOADER, str(path)], env=places, capture_output=True, text=True, check=False
            )
        finally:
            writer.kill()
    assert (done.returncode, done.stdout.strip() in ("0", "1")) == (0, True), done.stderr


def test_weights_that_were_changed_are_refused(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to one bit, by sums, or by a digest where the session is asked to; of mapped files, only samples are compared."""
    path = _write_large(source)
    file = path.with_suffix(".bin")
    content = bytearray(file.read_bytes())
    place = content.rindex(b"\x7fELF") + 2_500_000
    content[place] ^= 1
    file.write_bytes(content)
    for entries in ({}, {"session__trust_compiled_context": "1"}, {"session__check_compiled_weights": "1"}):
        with pytest.raises(errors.EPFail, match=r"EPContext node .* has other elements in its weight \d"):
            _load(path, **entries)
    monkeypatch.setenv("SARDONYX_MAP_WEIGHTS", "1")
    _load(path)
    file.write_bytes(content[:place] + bytes(2_000_000) + content[place + 2_000_000 :])
    with pytest.raises(errors.EPFail, match="has other elements in its weight .*the file is damaged or was changed; restore it"):
        _load(path)


def test_weights_that_are_compared_whole_are_out_of_reach(source: Path) -> None:
    """They are copied first, so that the file may be written over afterwards."""
    path = _write_large(source)
    session, feed = _load(path, session__check_compiled_weights="1"), {"x": np.ones((2, 1100), np.float32)}
    expected = session.run(None, feed)[0]
    with path.with_suffix(".bin").open("r+b") as stream:
        stream.write(bytes(path.with_suffix(".bin").stat().st_size))
    np.testing.assert_array_equal(session.run(None, feed)[0], expected)


@needs_root
def test_code_that_another_user_sealed_in_a_folder_of_his_is_not_run(source: Path, tmp_path: Path) -> None:
    """He made the cache folder that this user is led to, with a key that he knows; the error says so."""
    path = _write(source)
    _load(path)
    for place in (tmp_path / "cache" / "context.key", tmp_path / "cache"):
        os.chown(place, STRANGER, STRANGER)
    message = f"not compiled by this user on this machine.*cache belongs to user {STRANGER}.*; set SARDONYX_CACHE_DIR to a folder"
    with pytest.raises(errors.EPFail, match=message):
        _load(path)
    assert _load(path, session__trust_compiled_context="1").run(None, _feed())[0].shape == (3, 8)


@needs_root
def test_code_that_another_user_compiled_is_not_run(source: Path, tmp_path: Path) -> None:
    """Here as that other user, for whom root's key is none."""
    path = _write(source)
    for place in (tmp_path, *tmp_path.parents):
        if place == Path(tempfile.gettempdir()):
            break
        place.chmod(0o755)

    def load() -> str:
        try:
            _load(path)
        except errors.EPFail as error:
            return str(error)
        return ""

    assert "cache belongs to user 0, and this is user" in as_another_user(load)
