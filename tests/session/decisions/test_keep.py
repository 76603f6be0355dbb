"""Decisions that are kept: when they are used, and when a session is made without."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.kept_decisions import folder, made, results
from support.models import model
from support.toy_format import TOY, content_of

import sardonyx as ort
from sardonyx.disk_cache import shared_cache
from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.formats import registry
from sardonyx.formats.onnx import to_bytes
from sardonyx.ir import Tensor

__all__ = ["folder"]

_ROWS = np.arange(12, dtype=np.float32).reshape(3, 4) / 8


def _bytes(*, weight: float = 1.0, folded: float = 2.0, size: int = 200) -> bytes:
    """A product with a large weight, and a sum of constants, which is folded."""
    rng = np.random.default_rng(7)
    tensors = [
        numpy_helper.from_array((rng.standard_normal((4, size * 30)) * weight).astype(np.float32), "w"),
        numpy_helper.from_array(np.full(size * 30, folded, np.float32), "a"),
        numpy_helper.from_array(np.ones(size * 30, np.float32), "b"),
    ]
    nodes = [
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "c"], ["q"]),
        helper.make_node("Relu", ["q"], ["y"]),
    ]
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", size * 30])]
    graph = helper.make_graph(nodes, "kept", values, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


_SMALL = to_bytes(model("graph(x: float[n, 4]) -> (y: float[n, 4]) { a = Identity(x)\n b = Relu(a)\n y = Exp(b) }"))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("content", [_bytes(), _SMALL])
def test_the_second_session_is_made_by_what_the_first_decided(content: bytes) -> None:
    """It computes the same bits, and says the same of itself."""
    first, by_kept = made(content)
    assert not by_kept
    second, by_kept = made(content)
    assert by_kept
    assert [item.tobytes() for item in results(second, x=_ROWS)] == [item.tobytes() for item in results(first, x=_ROWS)]
    assert [str(item) for item in second.get_inputs()] == [str(item) for item in first.get_inputs()]
    assert [str(item) for item in second.get_outputs()] == [str(item) for item in first.get_outputs()]
    assert second.get_modelmeta() == first.get_modelmeta()
    assert second.optimization_report.fired == first.optimization_report.fired
    assert second.optimization_report.nodes_after == first.optimization_report.nodes_after
    assert second.explain() == first.explain()


@pytest.mark.usefixtures("folder")
def test_a_file_is_found_by_its_content(tmp_path: Path) -> None:
    """Not by its name."""
    for name in ("one.onnx", "two.onnx"):
        (tmp_path / name).write_bytes(_bytes())
    made(tmp_path / "one.onnx")
    session, by_kept = made(tmp_path / "two.onnx")
    assert by_kept
    assert "two.onnx" in repr(session)


@pytest.mark.usefixtures("folder")
def test_weights_are_those_of_the_file_at_hand() -> None:
    """One that nothing was decided by may have other elements: they are used, and nothing is decided anew."""
    made(_bytes())
    other = _bytes(weight=-3.0)
    session, by_kept = made(other)
    assert by_kept
    plain, _ = made(other, _options(**{"session.keep_decisions": "0"}))
    assert [item.tobytes() for item in results(session, x=_ROWS)] == [item.tobytes() for item in results(plain, x=_ROWS)]


@pytest.mark.usefixtures("folder")
def test_weights_that_were_read_are_compared() -> None:
    """What was folded of others is not used, and the session is made anew."""
    made(_bytes())
    session, by_kept = made(_bytes(folded=5.0))
    assert not by_kept
    plain, _ = made(_bytes(folded=5.0), _options(**{"session.keep_decisions": "0"}))
    assert [item.tobytes() for item in results(session, x=_ROWS)] == [item.tobytes() for item in results(plain, x=_ROWS)]


def _options(**entries: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    for key, text in entries.items():
        options.add_session_config_entry(key, text)
    return options


def test_the_variable_switches_it_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept, and nothing that was kept is used."""
    made(_SMALL)
    monkeypatch.setenv("SARDONYX_KEEP_DECISIONS", "0")
    assert not made(_SMALL)[1]


@pytest.mark.usefixtures("folder")
def test_the_entry_switches_it_off() -> None:
    """Nothing is kept, and nothing that was kept is used."""
    off = _options(**{"session.keep_decisions": "0"})
    made(_SMALL, off)
    assert not made(_SMALL)[1]
    assert not made(_SMALL, off)[1]


def _with_rule() -> ort.SessionOptions:
    class Rule:
        name = "of_a_user"

        def run(self, held: object, context: object) -> bool:
            return False

    options = ort.SessionOptions()
    options.add_pass(Rule())
    return options


def _saving(path: Path) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(path / "saved.onnx")
    return options


def _placing() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.place("Relu", "ReferenceExecutionProvider")
    return options


def _verifying() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.verify = True
    return options


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("what", ["pass", "saved", "placed", "verify", "profile"])
def test_sessions_that_do_more_are_made_anew(what: str, tmp_path: Path) -> None:
    """A pass of the user's, a file that is written, nodes placed by hand, a check of rules, a profile."""
    options = {"pass": _with_rule, "saved": lambda: _saving(tmp_path), "placed": _placing, "verify": _verifying}.get(what)
    if options is None:
        profiling = ort.SessionOptions()
        profiling.enable_profiling, profiling.profile_file_prefix = True, str(tmp_path / "profile")
        options = lambda: profiling  # noqa: E731  beside its other way
    made(_SMALL, options())
    assert not made(_SMALL, options())[1]


@pytest.mark.usefixtures("folder")
def test_operators_of_the_process_switch_it_off() -> None:
    """What a model means depends on them."""

    @ort.op("of.a.test", "Twice")
    def twice(x: np.ndarray) -> np.ndarray:
        return x + x

    made(_SMALL)
    ort.register_operator(twice)
    try:
        assert not made(_SMALL)[1]
    finally:
        ort.unregister_operator(twice)
    assert made(_SMALL)[1]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "feed"),
    [
        (
            "graph(c: bool[], x: float[2]) -> (y: float[2]) { y = If(c) {then_branch = graph() -> (a) { a = Relu(x) }, "
            "else_branch = graph() -> (b) { t = Neg(x) b = Exp(t) }} }",
            {"c": np.array(True), "x": np.float32([-1, 2])},
        ),
        (
            "graph(m: int64[], x: float[n, 3]) -> (y, all) { more: bool[] = [1]\n y, all = Loop(m, more, x) "
            "{body = graph(i: int64[], c: bool[], s: float[n, 3]) -> (go, t, t2) { w: float[3, 3] = ... 1\n p = MatMul(s, w) t = Tanh(p) "
            "t2 = Identity(t) go = Identity(c) }} }",
            {"m": np.array(5), "x": np.float32([[1, 2, 3], [4, 5, 6]])},
        ),
        (
            "graph(x: float[n, 3]) -> (y, all) { zero: float[3] = ... 0\n y, all = Scan(zero, x) {num_scan_inputs = 1, "
            "body = graph(s: float[3], row: float[3]) -> (t, u) { t = Add(s, row) u = Identity(t) }} }",
            {"x": np.float32([[1, 2, 3], [4, 5, 6]])},
        ),
    ],
)
def test_models_with_subgraphs_are_kept(text: str, feed: dict[str, Any]) -> None:
    """Where one provider runs them with their nodes."""
    content = to_bytes(model(text))
    first, _ = made(content)
    session, by_kept = made(content)
    assert by_kept
    for ours, before in zip(results(session, **feed), results(first, **feed), strict=True):
        assert ours.tobytes() == before.tobytes()
    assert session.explain() == first.explain()


@pytest.mark.usefixtures("folder")
def test_subgraphs_that_several_providers_share_are_not_kept() -> None:
    """They are made as ever."""
    content = to_bytes(
        model(
            "graph(c: bool[], x: string[2]) -> (y: string[2]) { y = If(c) {then_branch = graph() -> (a) { a = Identity(x) }, "
            'else_branch = graph() -> (b) { b = StringNormalizer(x) {case_change_action = "UPPER"} }} }'
        )
    )
    made(content)
    session, by_kept = made(content)
    assert not by_kept
    assert results(session, c=np.array(False), x=np.array(["a", "b"], object))[0].tolist() == ["A", "B"]


@pytest.mark.usefixtures("folder")
def test_weights_of_subgraphs_are_those_of_the_file_at_hand() -> None:
    """A large one is not in the record: it is read where it lies in the file."""

    def content(value: float) -> bytes:
        text = (
            "graph(c: bool[], x: float[1, 200]) -> (y: float[1, 200]) { y = If(c) {then_branch = graph() -> (a) "
            "{ w: float[200, 200] = ... 1\n a = MatMul(x, w) }, else_branch = graph() -> (b) { b = Neg(x) }} }"
        )
        held = model(text)
        (node,) = held.graph
        (weight,) = node.subgraphs[0].initializers.values()
        weight.constant = Tensor.from_array(np.full((200, 200), value, np.float32))
        return to_bytes(held)

    feed = {"c": np.array(True), "x": np.ones((1, 200), np.float32)}
    made(content(1.0))
    session, _ = made(content(2.0))
    assert results(session, **feed)[0].tolist() == [[400.0] * 200]


@pytest.mark.usefixtures("folder")
def test_a_model_that_is_wrong_is_refused_each_time() -> None:
    """By the same message."""
    broken = to_bytes(model("graph(x: float[2]) -> (y) { y = Frobnicate(x) }"))
    messages = []
    for _ in range(2):
        with pytest.raises(ort.SardonyxError) as error:
            ort.InferenceSession(broken)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    with pytest.raises(NoSuchFile):
        ort.InferenceSession("/there/is/no/such.onnx")
    with pytest.raises(InvalidArgument):
        ort.InferenceSession("a\0b.onnx")


def _records(path: Path) -> list[Path]:
    contents = {file: file.read_bytes() for file in path.glob("*.sxo")}
    return [file for file, content in contents.items() if content.startswith(b"SARDONYX") and b"CPUExecutionProvider" in content]


def _remove_programs(path: Path) -> None:
    """Without them a session is made by the record."""
    for file in path.glob("*.sxo"):
        if file.read_bytes().startswith(b"SARDONYB"):
            file.unlink()


def test_a_damaged_record_is_passed_over(folder: Path) -> None:
    """And written anew."""
    made(_SMALL)
    _remove_programs(folder)
    (record,) = _records(folder)
    content = bytearray(record.read_bytes())
    content[-9] ^= 1
    record.write_bytes(bytes(content))
    session, by_kept = made(_SMALL)
    assert not by_kept
    assert results(session, x=_ROWS)[0].shape == (3, 4)
    assert made(_SMALL)[1]


def test_a_record_of_another_form_is_passed_over(folder: Path) -> None:
    """Also one that is whole, under the right key."""
    made(_SMALL)
    (record,) = _records(folder)
    cache = shared_cache()
    assert cache is not None
    for content in (b"", b"no marshal", b"\xe9\x05\x00\x00\x00", b")\x02\xe9\x01\x00\x00\x00N"):
        cache.store(record.stem, content)
        session, by_kept = made(_SMALL)
        assert not by_kept
        assert results(session, x=_ROWS)[0].shape == (3, 4)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
def test_records_are_private(folder: Path) -> None:
    """Nobody else can write them, and one that others can write is not used."""
    made(_SMALL)
    (record,) = _records(folder)
    assert stat.S_IMODE(record.stat().st_mode) & 0o077 == 0
    record.chmod(0o666)
    assert not made(_SMALL)[1]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
def test_records_of_a_folder_that_others_can_write_are_not_used(folder: Path) -> None:
    """Another user could have put them there."""
    made(_SMALL)
    folder.chmod(0o777)
    assert not made(_SMALL)[1]


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path) -> None:
    """There is a file in its place: sessions are made anew each time."""
    shutil.rmtree(folder)
    folder.write_text("no folder")
    for _ in range(2):
        session, by_kept = made(_SMALL)
        assert not by_kept
        assert results(session, x=_ROWS)[0].shape == (3, 4)


@pytest.mark.usefixtures("folder")
def test_a_full_disk_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session is made, and nothing is kept."""

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sardonyx.disk_cache.DiskCache._write", full)
    session, _ = made(_SMALL)
    assert results(session, x=_ROWS)[0].shape == (3, 4)
    assert not made(_SMALL)[1]


@pytest.mark.usefixtures("folder")
def test_a_file_that_changes_meanwhile_is_an_error_as_ever(tmp_path: Path) -> None:
    """Its new content is what the next session has."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_bytes())
    made(path)
    path.write_bytes(_bytes(folded=9.0))
    session, by_kept = made(path)
    assert not by_kept
    plain, _ = made(_bytes(folded=9.0), _options(**{"session.keep_decisions": "0"}))
    assert [item.tobytes() for item in results(session, x=_ROWS)] == [item.tobytes() for item in results(plain, x=_ROWS)]


def test_another_process_uses_what_this_one_decided(folder: Path, tmp_path: Path) -> None:
    """It imports neither the optimizer, nor shape functions, nor NumPy kernels, nor what compiles, nor protobuf."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_bytes())
    expected = results(made(path)[0], x=_ROWS)[0]
    environment = dict(os.environ)
    subprocess.run(
        [sys.executable, "-c", f"import sardonyx; sardonyx.InferenceSession({str(path)!r})"], check=True, env=environment
    )
    code = f"""
import sys, numpy as np, sardonyx as ort
session = ort.InferenceSession({str(path)!r})
result = session.run(None, {{"x": np.arange(12, dtype=np.float32).reshape(3, 4) / 8}})[0]
np.save({str(tmp_path / "result.npy")!r}, result)
print("\\n".join(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    modules = set(done.stdout.split())
    assert np.load(tmp_path / "result.npy").tobytes() == expected.tobytes()
    heavy = (
        "argparse google.protobuf importlib.metadata llvmlite multiprocessing onnx rich subprocess sardonyx.ops.infer "
        "sardonyx.ops.schemas sardonyx.ops.shapes sardonyx.optimize sardonyx.codegen.run.compile_process "
        "sardonyx.providers.cpu.kernels.attention sardonyx.providers.cpu.kernels.conv sardonyx.providers.reference.program"
    )
    assert sorted(modules & set(heavy.split())) == []
    assert not [name for name in modules if name.startswith("sardonyx.providers.reference.kernels.")]


def test_processes_of_one_folder_do_not_disturb_one_another(folder: Path, tmp_path: Path) -> None:
    """Several that begin at once on an empty folder all compute the same."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_SMALL)
    code = f"import numpy as np, sardonyx as ort; s = ort.InferenceSession({str(path)!r}); print(s.run(None, {{'x': np.ones((1, 4), np.float32)}}))"
    command = [sys.executable, "-c", code]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) for _ in range(3)]
    outputs = {process.communicate()[0] for process in started}
    assert len(outputs) == 1
    assert len(_records(folder)) == 1


@pytest.mark.usefixtures("folder")
def test_models_of_a_packages_format_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without their large data, which is found in the file again; other elements that nobody decided by are those of the file."""
    monkeypatch.setattr(registry, "_installed", lambda path: (TOY,))
    monkeypatch.setattr(registry, "_REGISTERED", [])
    first, by_kept = made(content_of(np.arange(20_000)))
    assert not by_kept
    x = np.ones(20_000, np.float32)
    for base in (0, 5):
        again, by_kept = made(content_of(np.arange(20_000) + base))
        assert by_kept
        assert results(again, x=x)[0].tolist() == (results(first, x=x)[0] + base).tolist()


@pytest.mark.usefixtures("folder")
def test_models_of_a_registered_format_are_not_kept() -> None:
    """Nothing says in another process what the format was."""
    registry.register_format(TOY)
    try:
        for _ in range(2):
            _, by_kept = made(content_of([1.0, 2.0]))
            assert not by_kept
    finally:
        registry.unregister_format(TOY)
