"""The border to llvmlite."""

import io
import itertools
import marshal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sardonyx.codegen import llvm
from sardonyx.codegen.target import host_target

_TEXT = "define i64 @seven() { ret i64 7 }"


def _compile(text: str) -> bytes:
    target = host_target()
    return llvm.compile_text(text, target.triple, target.features, 1)


def test_the_version_names_llvmlite_and_the_size_of_its_library() -> None:
    """Both are part of the name under which objects are kept."""
    import llvmlite

    version, *sizes = llvm.version().split("/")
    assert version == llvmlite.__version__
    assert all(int(size) > 1 << 20 for size in sizes)


def test_a_frozen_application_asks_the_package_for_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no records of what was installed."""
    known = llvm.version()
    monkeypatch.setattr("importlib.metadata.distributions", lambda **_: ())
    monkeypatch.setattr(llvm, "_VERSION", [])
    assert llvm.version() == known


@pytest.mark.parametrize("entry", [None, 3, b"/nowhere", Path("/nowhere")])
def test_the_version_is_found_whatever_is_on_the_path(monkeypatch: pytest.MonkeyPatch, entry: object) -> None:
    """Imports pass over what is no text, too."""
    known = llvm.version()
    monkeypatch.setattr(sys, "path", [entry, *sys.path])
    monkeypatch.setattr(llvm, "_VERSION", [])
    assert llvm.version() == known


def test_a_version_that_another_process_found_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none was found here yet."""
    monkeypatch.setattr(llvm, "_VERSION", [])
    llvm.know_version("1.0/7")
    llvm.know_version("2.0/7")
    assert llvm.version() == "1.0/7"


def test_text_that_is_no_ir_is_an_error() -> None:
    """LLVM's message is passed on."""
    with pytest.raises(ValueError, match="not valid LLVM IR"):
        _compile("define nonsense")


def test_an_error_may_lie_in_a_cycle() -> None:
    """The collector frees its frames in any order, and with them LLVM's objects: none is freed after what it refers to."""
    code = """
        import gc
        from sardonyx.codegen import llvm
        from sardonyx.codegen.target import host_target

        text = "define void @f() {\\n  %z = add i64 %q, 1\\n  %q = add i64 1, 1\\n  ret void\\n}"
        for _ in range(60):
            try:
                llvm.compile_text(text, host_target().triple, host_target().features, 1)
            except ValueError as error:
                error.itself = error
        assert gc.collect() >= 60
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


def test_the_linker_of_llvm_finds_exported_symbols() -> None:
    """Where there is no linker of our own, LLVM's has the same result: addresses by symbol."""
    target = host_target()
    assert llvm.link(_compile(_TEXT), ["seven"], target.triple, target.features)["seven"]


def test_the_linker_of_llvm_refuses_what_is_no_object() -> None:
    """A broken object is an error, not a crash."""
    target = host_target()
    with pytest.raises(ValueError, match="cannot link"):
        llvm.link(b"nonsense", ["seven"], target.triple, target.features)


def test_the_program_answers_each_request_by_its_number() -> None:
    """Objects and refusals come back over the pipe; the program ends when its input does."""
    target = host_target()
    requests = io.BytesIO()
    marshal.dump((sys.path, 2), requests)
    for number, text in enumerate([_TEXT, "define nonsense"]):
        marshal.dump((number, text, target.triple, target.features, 1), requests)
    program = [sys.executable, "-P", str(Path(llvm.__file__))]
    done = subprocess.run(program, input=requests.getvalue(), capture_output=True, check=True)
    stream = io.BytesIO(done.stdout)
    lengths = iter(lambda: int.from_bytes(stream.read(llvm.LENGTH_BYTES), "little"), None)
    replies = [marshal.loads(stream.read(length)) for length in itertools.islice(filter(None, lengths), 2)]
    answers = {number: (machine_code, problem) for number, machine_code, problem in replies}
    assert answers[0] == (_compile(_TEXT), "")
    assert "not valid LLVM IR" in answers[1][1]


def test_the_program_says_that_it_is_alive() -> None:
    """While a kernel is compiled, lengths of 0 come; a lack of memory ends the program."""
    code = (
        "import sys, time; from sardonyx.codegen import llvm\n"
        "def compile_text(text, *arguments):\n"
        "    time.sleep(0.5)\n"
        "    if text == 'large': raise MemoryError\n"
        "    return b'object'\n"
        "llvm.compile_text, llvm.BEAT_SECONDS = compile_text, 0.05\n"
        "llvm.serve(sys.stdin.buffer, sys.stdout.buffer)"
    )
    for text, status in (("small", 0), ("large", 1)):
        requests = marshal.dumps((sys.path, 2)) + marshal.dumps((0, text, "", "", 1))
        done = subprocess.run([sys.executable, "-c", code], input=requests, capture_output=True, check=False, timeout=30)
        assert done.stdout.startswith(bytes(2 * llvm.LENGTH_BYTES))
        assert done.returncode == status
        assert (b"object" in done.stdout) == (status == 0)
