"""Processes of every kind get a session, or one clear error: without a home, a disk, streams, threads or children, as another user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.processes import python_environment, run_python

import sardonyx

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and users are those of Linux")

TEXT = "graph(x: float[n, 4]) -> (y: float[n, 4]) {\\na = Softmax(x)\\nb = MatMul(a, a)\\ny = Relu(x)\\n}"
MAKE = f"""
import numpy as np
import sardonyx as ort
from sardonyx.formats.onnx import to_bytes
from support.models import model

content = to_bytes(model("{TEXT.replace("b = MatMul(a, a)", "b = Exp(a)")}"))


def run(options=None):
    session = ort.InferenceSession(content, options)
    (y,) = session.run(None, {{"x": np.array([[1, -1, 2, 0]], np.float32)}})
    return y.tolist()
"""
RIGHT = "[[1.0, 0.0, 2.0, 0.0]]"
USE = MAKE + "\nprint(run())\n"
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")


def _fresh(tmp_path: Path, **changes: str | None) -> Mapping[str, str | None]:
    """An environment whose cache of kernels is empty."""
    return {"SARDONYX_CACHE_DIR": str(tmp_path / "cache"), **changes}


@pytest.mark.parametrize("home", [None, "", "/nonexistent", "/proc", "relative"])
def test_without_a_home(home: str | None, tmp_path: Path) -> None:
    """Nothing is cached where there is no place for it, and nothing is put into the working folder."""
    changes = {"HOME": home, "XDG_CACHE_HOME": None, "SARDONYX_CACHE_DIR": None}
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env=python_environment(**changes), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == RIGHT, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["/proc/cache", "/dev/null/cache", "/sys/cache", "\udcff/\n", "a" * 5000])
def test_without_a_place_for_the_cache(place: str, tmp_path: Path) -> None:
    """Kernels are compiled, and kept nowhere."""
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env=python_environment(SARDONYX_CACHE_DIR=place),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == RIGHT, done.stderr


def test_no_file_may_grow(tmp_path: Path) -> None:
    """As on a full disk: each write is an error to the process."""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    assert run_python(limit + USE, changes=_fresh(tmp_path)).strip() == RIGHT
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.stat().st_size] == []


@needs_root
@pytest.mark.parametrize("options", ["size=16k", "ro"])
def test_a_full_or_read_only_disk(options: str, tmp_path: Path) -> None:
    """A file system in memory with room for nothing, or that takes no writes."""
    folder = tmp_path / "disk"
    folder.mkdir(mode=0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        if options != "ro":
            (folder / "filler").write_bytes(bytes(12 << 10))
        assert run_python(USE, changes={"SARDONYX_CACHE_DIR": str(folder / "cache")}).strip() == RIGHT
    finally:
        subprocess.run(["umount", str(folder)], check=True)


_NO_CAPABILITY = "this root may not have files read"
_AS_NOBODY = f"""
import ctypes, os, struct
libc = ctypes.CDLL(None)
libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
reads_all = struct.pack("6I", 4, 4, 4, 0, 0, 0)  # CAP_DAC_READ_SEARCH and no other: this interpreter may lie in root's home
if libc.capset(struct.pack("Ii", 0x20080522, 0), reads_all) or libc.prctl(47, 2, 2, 0, 0):  # PR_CAP_AMBIENT, for children too
    print("{_NO_CAPABILITY}")
    raise SystemExit
"""


@needs_root
@pytest.mark.parametrize("limit", ["", "NPROC"])
def test_as_another_user(limit: str, tmp_path: Path) -> None:
    """Whose home is root's, who may write nothing there, and who may start no process and no thread besides."""
    source = f"import resource\nresource.setrlimit(resource.RLIMIT_{limit}, (0, 0))\n" if limit else ""
    asked = "options = ort.SessionOptions()\noptions.intra_op_num_threads = 4\nprint(run(options))\n"
    found = run_python(_AS_NOBODY + source + MAKE + asked, changes=_fresh(tmp_path, OPENBLAS_NUM_THREADS="1"))
    if found.strip() == _NO_CAPABILITY:
        pytest.skip("another user cannot read this interpreter")
    assert found.strip() == RIGHT
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_with_closed_streams(closed: tuple[int, ...], tmp_path: Path) -> None:
    """The files that the process opens take their numbers, and nothing that belongs elsewhere is written into these."""
    target = tmp_path / "result"
    close = f"import os\nfor number in {closed!r}:\n    os.close(number)\n"
    run_python(close + MAKE + f"\nopen({str(target)!r}, 'w').write(str(run()))\n", changes=_fresh(tmp_path))
    assert target.read_text() == RIGHT


def test_as_a_daemon(tmp_path: Path) -> None:
    """Detached from its parent, its session, its folder and its streams."""
    target = tmp_path / "result"
    detach = f"""
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.chdir("/")
os.umask(0)
null = os.open(os.devnull, os.O_RDWR)
for number in range(3):
    os.dup2(null, number)
{MAKE}
with open({str(target)!r} + ".draft", "w") as file:
    file.write(str(run()))
os.replace({str(target)!r} + ".draft", {str(target)!r})
"""
    run_python(detach, changes=_fresh(tmp_path))
    end = time.monotonic() + 60
    while not target.exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert target.read_text() == RIGHT


def test_packed_into_a_zip_file(tmp_path: Path) -> None:
    """Sources and all."""
    package, archive = Path(sardonyx.__file__).parent, tmp_path / "application.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in package.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                file.write(path, Path("sardonyx") / path.relative_to(package))
        file.writestr("support/__init__.py", "")
        file.write(Path(__file__).parents[1] / "support" / "models.py", "support/models.py")
    changes = _fresh(tmp_path, PYTHONPATH=str(archive))
    first, again = (run_python(USE + "\nprint(ort.__file__)", changes=changes).split("\n") for _ in range(2))
    assert first == again
    assert first[0] == RIGHT
    assert "application.zip" in first[1]


def test_isolated(tmp_path: Path) -> None:
    """`python -I` with the packages' folders given by the program."""
    paths = python_environment()["PYTHONPATH"].split(os.pathsep)
    assert run_python(f"import sys\nsys.path[:0] = {paths!r}\n" + USE, flags=["-I"], changes=_fresh(tmp_path)).strip() == RIGHT


@pytest.mark.parametrize("flags", [["-O"], ["-OO"], ["-B"], ["-s", "-E"], ["-X", "dev"], ["-X", "utf8=0"]])
def test_under_flags_of_the_interpreter(flags: list[str], tmp_path: Path) -> None:
    """Without assertions and docstrings too."""
    paths = python_environment()["PYTHONPATH"].split(os.pathsep)
    found = run_python(f"import sys\nsys.path[:0] = {paths!r}\n" + USE, flags=flags, changes=_fresh(tmp_path))
    assert found.strip() == RIGHT


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_in_children_of_multiprocessing(way: str, tmp_path: Path) -> None:
    """Each makes a session of its own, and a forked one runs that of its parent."""
    script = tmp_path / "main.py"
    script.write_text(
        MAKE
        + f"""
import multiprocessing

session = ort.InferenceSession(content)


def work(number):
    (y,) = session.run(None, {{"x": np.array([[1, -1, 2, 0]], np.float32)}})
    return y.tolist(), run()


if __name__ == "__main__":
    with multiprocessing.get_context({way!r}).Pool(2) as pool:
        print(pool.map(work, range(3)) == 3 * [({RIGHT}, {RIGHT})])
"""
    )
    environment = python_environment(**_fresh(tmp_path))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.parametrize("what", ["SIG_IGN", "SIG_DFL"])
@pytest.mark.parametrize("name", ["SIGCHLD", "SIGPIPE", "SIGALRM", "SIGINT"])
def test_whatever_is_done_about_signals(name: str, what: str, tmp_path: Path) -> None:
    """With children that are never waited for, too."""
    handler = f"import signal\nsignal.signal(signal.{name}, signal.{what})\n"
    assert run_python(handler + USE, changes=_fresh(tmp_path)).strip() == RIGHT


def test_signals_all_the_time(tmp_path: Path) -> None:
    """A handler that runs every millisecond interrupts system calls, and nothing else."""
    storm = "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
    calm = "signal.setitimer(signal.ITIMER_REAL, 0)\n"  # the interpreter takes its handlers away when it ends
    assert run_python(storm + USE + calm, changes=_fresh(tmp_path)).strip() == RIGHT


@pytest.mark.parametrize("delay", [0.02, 0.1, 0.3, 0.6])
def test_an_exception_of_a_handler_at_any_stage(delay: float, tmp_path: Path) -> None:
    """It comes out, and sessions are made afterwards.

    The signal is repeated: Python itself drops an exception that is raised while it frees an object. What `import onnx` reads of
    Python's library is imported before: an exception between a submodule and its entry in the package, which is Python's code, leaves
    the package without it for good.
    """
    interrupt = f"""
import importlib.metadata, signal, time
class Stop(Exception):
    pass
def stop(*_):
    raise Stop("stop")
signal.signal(signal.SIGALRM, stop)
{MAKE}
signal.setitimer(signal.ITIMER_REAL, {delay}, 1)
try:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        run()
except Stop:
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("stopped")
print(run())
"""
    assert run_python(interrupt, changes=_fresh(tmp_path)).split("\n")[:2] == ["stopped", RIGHT]


def test_a_clock_that_jumps(tmp_path: Path) -> None:
    """Back and forth by a year between any two looks at it, and files of the cache that are from the future."""
    jump = """
import itertools, time
truth, jumps = time.time, itertools.cycle([0, 3.2e7, -3.2e7])
time.time = lambda: truth() + next(jumps)
"""
    changes = _fresh(tmp_path)
    assert run_python(jump + USE, changes=changes).strip() == RIGHT
    for path in (tmp_path / "cache").rglob("*.sxo"):
        os.utime(path, (4e9, 4e9))
    assert run_python(jump + USE, changes=changes).strip() == RIGHT


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity is set on Linux")
def test_on_one_processor_of_many(tmp_path: Path) -> None:
    """As many threads as the process may have, and no more."""
    pin = "import os\nos.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    count = "from sardonyx.codegen.run.processors import available_processors\nprint(available_processors())\n"
    assert run_python(pin + USE + count, changes=_fresh(tmp_path)).split("\n")[:2] == [RIGHT, "1"]


def test_where_no_written_page_may_be_executed(tmp_path: Path) -> None:
    """As in services with `MemoryDenyWriteExecute`."""
    deny = "import ctypes\nprint(ctypes.CDLL(None).prctl(65, 1, 0, 0, 0))\n"  # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN
    found = run_python(deny + USE, changes=_fresh(tmp_path)).split("\n")
    if found[0] != "0":
        pytest.skip("this system forbids nothing of the kind")
    assert found[1] == RIGHT


@pytest.mark.parametrize("number", [8, 12, 20])
def test_with_few_descriptors(number: int, tmp_path: Path) -> None:
    """A session, or one error of ours, or the system's from before."""
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({number}, {number}))\n"
    guarded = "\ntry:\n    print(run())\nexcept ort.SardonyxError as error:\n    print('typed', error)\n"
    found = run_python(MAKE + limit + guarded, changes=_fresh(tmp_path)).strip()
    assert found == RIGHT or found.startswith("typed")


def _damage_link(cache: Path) -> None:
    for path in list(cache.rglob("*.sxo")):
        other = path.with_suffix(".other")
        path.rename(other)
        path.symlink_to(other)


def _damage_mode(cache: Path) -> None:
    for path in cache.rglob("*.sxo"):
        path.chmod(0o666)


def _damage_owner(cache: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    for path in cache.rglob("*.sxo"):
        os.chown(path, NOBODY, NOBODY)


def _damage_content(cache: Path) -> None:
    for path in cache.rglob("*.sxo"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


def _damage_length(cache: Path) -> None:
    for path in cache.rglob("*.sxo"):
        os.truncate(path, path.stat().st_size // 2)


def _damage_kind(cache: Path) -> None:
    for path in list(cache.rglob("*.sxo")):
        path.unlink()
        path.mkdir()


def _damage_folder(cache: Path) -> None:
    shutil.rmtree(cache)
    cache.write_text("no folder")


@pytest.mark.parametrize(
    "damage", [_damage_link, _damage_mode, _damage_owner, _damage_content, _damage_length, _damage_kind, _damage_folder]
)
def test_a_poisoned_cache(damage: Callable[[Path], None], tmp_path: Path) -> None:
    """What somebody else may have written is not run."""
    tmp_path.chmod(0o700)
    changes = _fresh(tmp_path)
    assert run_python(USE, changes=changes).strip() == RIGHT
    assert list((tmp_path / "cache").rglob("*.sxo"))
    damage(tmp_path / "cache")
    assert run_python(USE, changes=changes).strip() == RIGHT
