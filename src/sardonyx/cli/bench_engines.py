"""The processes of `sardonyx bench`: one for each engine, asked in turns."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
import pkgutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from sardonyx import config
from sardonyx.cli import bench_worker
from sardonyx.cli.load import module_name
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import Fail
from sardonyx.session.options import SessionOptions

__all__ = ["Engine", "Job", "Measured", "Turn", "start_engine"]


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """What all engines do."""

    model: str
    """The path of the model."""
    feed: Mapping[str, OnnxValue]
    """Its inputs."""
    options: SessionOptions
    """Of a session of this engine; others get the number of threads only."""
    providers: Sequence[str]
    """Of a session of this engine."""
    loaded: Sequence[str]
    """Python files with operators that the options have."""
    threads: int
    """How many threads a run may use."""
    streams: int
    """How many runs are under way at a time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """What an engine did in one turn."""

    latencies_ms: tuple[float, ...]
    """How long each run took."""
    elapsed_ms: float
    """How long the turn took."""


@dataclasses.dataclass(slots=True)
class Measured:
    """All that is known of one engine."""

    engine: str
    """Its name."""
    version: str = ""
    """Its version."""
    starts_ms: list[float] = dataclasses.field(default_factory=list)
    """From the start of a process to its first result, for each start."""
    cold_start_ms: float | None = None
    """The same with an empty cache of kernels; None where that was not asked for."""
    parts_ms: dict[str, float] = dataclasses.field(default_factory=dict)
    """Parts of the last start: import, load, first run."""
    loaded_bytes: int = 0
    """What the process has in memory after its first result."""
    peak_bytes: int = 0
    """What it had in memory at most."""
    turns: list[Turn] = dataclasses.field(default_factory=list)
    """Its turns."""
    error: str = ""
    """Why it could not go on; "" where it could."""

    @property
    def latencies_ms(self) -> list[float]:
        """All runs, the fastest first."""
        return sorted(latency for turn in self.turns for latency in turn.latencies_ms)

    @property
    def throughput_per_s(self) -> float:
        """How many runs end in a second."""
        elapsed = sum(turn.elapsed_ms for turn in self.turns)
        return 1e3 * sum(len(turn.latencies_ms) for turn in self.turns) / elapsed if elapsed else 0.0

    def ratios(self, other: Measured) -> list[float]:
        """Return for each turn how many times as long as those of `other` the runs of this engine take, by their medians."""
        return [
            statistics.median(mine.latencies_ms) / statistics.median(theirs.latencies_ms)
            for mine, theirs in zip(self.turns, other.turns, strict=False)
        ]


class Engine:
    """An engine's process that is ready to run; a context manager that ends it."""

    def __init__(self, name: str, process: subprocess.Popen[str], complaints: Path) -> None:
        """Wrap a process of the worker, whose stderr is the file `complaints`."""
        self._name, self._process, self._complaints = name, process, complaints

    def read(self) -> dict[str, Any]:
        """Return the next reply; raises Fail with what the engine said where it failed. Any, as it comes from JSON."""
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            raise Fail(f"{self._name} ended without an answer, {self._end()}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise Fail(reply["error"])
        return reply

    def _end(self) -> str:
        """Wait for the end of the process; returns its signal or status, and the last line that it wrote."""
        status = self._process.wait()
        lines = self._complaints.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        how = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
        return f"{how}: {last:.500}" if last else how

    def run(self, seconds: float, count: int) -> tuple[Turn, dict[str, Any]]:
        """Run the model for so long, or so often where `count` is not 0; returns the turn, and the reply with the memory."""
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps({"seconds": seconds, "count": count}) + "\n")
            self._process.stdin.flush()
        reply = self.read()
        latencies = tuple(latency / 1e6 for latency in reply["latencies_ns"])
        return Turn(latencies, reply["elapsed_ns"] / 1e6), reply

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()


def start_engine(found: Measured, job: Job, folder: Path, *, cold: bool = False) -> Engine:
    """Start the process of an engine and wait for its first result, which is written to `found`.

    Args:
        found: of which engine, and where what it took is noted.
        job: what it runs.
        folder: where files for it may lie.
        cold: whether kernels are compiled anew, into a cache that is thrown away.

    Raises:
        Fail: the engine cannot be imported, or does not run the model.
    """
    request = folder / f"{found.engine}.json"
    request.write_text(json.dumps(_request(found.engine, job, folder)), encoding="utf-8")
    program = _program(folder)
    environment = config.environment_with_cache(folder / "empty") if cold else None
    complaints = folder / f"{found.engine}.err"
    with complaints.open("wb") as stderr:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-P", str(program), str(request)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            env=environment,
        )
    engine = Engine(found.engine, process, complaints)
    try:
        reply = engine.read()
    except BaseException:
        engine.__exit__(None, None, None)
        raise
    elapsed_ms = 1e3 * (time.perf_counter() - start)
    if cold:
        found.cold_start_ms = elapsed_ms
    else:
        found.starts_ms.append(elapsed_ms)
        found.parts_ms, found.version = reply["ready"], reply["version"]
        found.loaded_bytes, found.peak_bytes = reply["memory_bytes"], reply["peak_bytes"]
    return engine


def _program(folder: Path) -> Path:
    """Return the file of the worker: a copy in `folder` where the package lies in an archive."""
    path = Path(bench_worker.__file__)
    if path.exists():
        return path
    copy = folder / path.name
    if not copy.exists():
        copy.write_bytes(pkgutil.get_data(bench_worker.__name__.rpartition(".")[0], path.name) or b"")
    return copy


def _request(name: str, job: Job, folder: Path) -> dict[str, Any]:
    feed, options = folder / "feed.pickle", folder / "options.pickle"
    if not feed.exists():
        feed.write_bytes(pickle.dumps(dict(job.feed)))
        _write_options(options, job)
    return {
        "engine": name,
        "model": job.model,
        "feed": str(feed),
        "options": str(options),
        "providers": list(job.providers),
        "loaded": list(job.loaded),
        "threads": job.threads,
        "streams": job.streams,
        "path": list(_search_path()),
    }


class _Pickler(pickle.Pickler):
    """Writes objects of the loaded files by module and name: the other process makes its own of them."""

    def __init__(self, file: IO[bytes], loaded: Sequence[str]) -> None:
        super().__init__(file)
        names = [module_name(path) for path in loaded]
        items = [(name, key, item) for name in names for key, item in vars(sys.modules[name]).items()]
        self._names = {id(item): (name, key) for name, key, item in items if hasattr(item, "definitions")}

    def persistent_id(self, item: object) -> tuple[str, str] | None:
        return self._names.get(id(item))


def _write_options(path: Path, job: Job) -> None:
    with path.open("wb") as file:
        _Pickler(file, job.loaded).dump(job.options)


def _search_path() -> Iterator[str]:
    return (str(entry) for entry in sys.path)
