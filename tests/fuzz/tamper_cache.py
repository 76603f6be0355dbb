"""Changes bytes of the files of a disk cache, and cuts them short everywhere: nothing but what was kept, or nothing, is read of them.

    PYTHONPATH=src:tests python -m fuzz.tamper_cache [--every 1] [--sessions 200]

A session fills a cache with kernels, decisions and packed weights. Small files of it are read with every byte changed, and cut short
at every byte; each must be as if it were not there. With as many of the changes as `--sessions` says, a session is made
and run in a child process: its results must be the same.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from sardonyx import InferenceSession, SessionOptions
from sardonyx.codegen.run import compile_process
from sardonyx.disk_cache import DiskCache
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir.text import parse_model

__all__ = ["damaged_forms", "fill_cache", "is_read_as_kept", "kinds_of_files"]

_TEXT = """ir_version 10
opset 21
graph main(x: float[n, 64]) -> (y: float[n, 192]) {
    w: float[64, 192] = ... 1
    m = MatMul(x, w)
    y = Softmax(m)
}"""
_SECONDS = 60
_SMALL_BYTES = 20_000


def fill_cache(folder: Path) -> Path:
    """Write a model, and make and run a session of it in a new process with a cache in `folder`; return the path of the model.

    The process is a new interpreter: this one may hold the kernels already, or have opened another cache.
    """
    path = folder / "model.onnx"
    onnx_format.save(parse_model(_TEXT), path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SARDONYX_CACHE_DIR": str(folder / "cache")}
    subprocess.run([sys.executable, "-m", "fuzz.tamper_cache", "--fill", str(path)], env=environment, check=True, timeout=_SECONDS)
    return path


def kinds_of_files(cache: Path) -> list[Path]:
    """Return files of up to 20 KB, which hold kernels and decisions, and the smallest one with blocks beside them."""
    files = sorted((path for path in cache.glob("*.sxo")), key=lambda path: path.stat().st_size)
    kinds = {path.read_bytes()[:8]: path for path in reversed(files)}
    return [path for path in files if path.stat().st_size < _SMALL_BYTES or path in kinds.values()]


def damaged_forms(content: bytes, every: int = 1) -> Iterator[bytes]:
    """Yield a content with one byte changed, for one in `every`, then cut short, then with bytes behind its end."""
    draw = random.Random(0)
    for place in range(draw.randrange(every), len(content), every):
        yield content[:place] + bytes([content[place] ^ draw.randrange(1, 256)]) + content[place + 1 :]
    for end in range(draw.randrange(every), len(content), every):
        yield content[:end]
    yield content + b"\0"
    yield content + content


def is_read_as_kept(path: Path, damaged: bytes) -> bool:
    """Return whether a damaged file, put in its place, is read as if it were not there, or as it was; the file is as before then."""
    cache, key, content = DiskCache(path.parent), path.stem, path.read_bytes()

    def read() -> tuple[bytes | None, bytes | None]:
        blocks = cache.load_blocks(key, lambda size: memoryview(bytearray(size)))
        _put(path, held)
        return cache.load(key), None if blocks is None else bytes(blocks[0]) + bytes(blocks[1])

    held = content
    expected = read()
    held = damaged
    _put(path, damaged)
    found = read()
    _put(path, content)
    return all(one is None or one == other for one, other in zip(found, expected, strict=True))


def _put(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)


def _results(path: Path) -> bytes:
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return b"".join(item.tobytes() for item in session.run(None, {"x": np.ones((3, 64), np.float32)}))


def _in_a_child(work: Callable[[], bytes]) -> bytes | None:
    """Return what `work` returns in a child process; None where it raised or the child ended otherwise."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            signal.alarm(_SECONDS)
            os.write(writing, b"+" + work()[:60_000])
            compile_process.reap()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said[1:] if said else None


def main() -> int:
    """Try all; returns 1 where anything else than what was kept was read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--fill", type=Path, help="run this model, and no more")
    arguments = parser.parse_args()
    if arguments.fill is not None:
        _results(arguments.fill)
        return 0
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        os.environ["SARDONYX_CACHE_DIR"] = str(Path(name) / "cache")
        model = fill_cache(Path(name))
        expected = _in_a_child(lambda: _results(model))
        files = kinds_of_files(Path(name) / "cache")
        for path in files:
            content = path.read_bytes()
            forms = list(damaged_forms(content, arguments.every))
            wrong = sum(not is_read_as_kept(path, form) for form in forms)
            draw, others = random.Random(1), 0
            chosen = draw.sample(forms, min(len(forms), arguments.sessions // len(files)))
            for form in chosen:
                _put(path, form)
                others += _in_a_child(lambda: _results(model)) != expected
                _put(path, content)
            sys.stdout.write(
                f"{path.name[:16]} {len(content)} bytes: {len(forms)} changes, {wrong} read otherwise; {len(chosen)} sessions, "
                f"{others} with other results\n"
            )
            failures += wrong + others
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
