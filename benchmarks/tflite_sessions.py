"""How long sessions of TensorFlow Lite models take to make with a warm cache, beside LiteRT's interpreters.

    python benchmarks/tflite_models.py FOLDER; python benchmarks/tflite_sessions.py FOLDER [--processes 7] [NAME …]

Needs ai_edge_litert. Each figure is the least of some processes, in milliseconds of the processor: of the first session of one
that has imported its package, of a second one, of another file, and of a first one with its first run; LiteRT's are those of
`Interpreter`, `allocate_tensors` and `invoke`. The bar: at most twice LiteRT's. Before, sessions of each file were made in other
processes, so that all that is kept is kept.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BAR = 2.0
_TITLES, _WIDTHS = ("first", "second", "with run"), (8, 9, 10)


def measured_here(package: str, path: str, other: str) -> tuple[float, float, float]:
    """Return the times of a first session, of one of another file, and of the first with a run, in milliseconds."""
    import numpy as np

    if package == "sardonyx":
        import sardonyx

        def make(name: str) -> Any:
            options = sardonyx.SessionOptions()
            options.intra_op_num_threads = 1
            return sardonyx.InferenceSession(name, options)

        def run(session: Any) -> None:
            feed = {
                item.name: np.zeros([size if isinstance(size, int) else 1 for size in item.shape], _DTYPES[item.type])
                for item in session.get_inputs()
            }
            session.run(None, feed)
    else:
        from ai_edge_litert.interpreter import Interpreter

        def make(name: str) -> Any:
            interpreter = Interpreter(name, num_threads=1)
            interpreter.allocate_tensors()
            return interpreter

        def run(session: Any) -> None:
            for item in session.get_input_details():
                session.set_tensor(item["index"], np.zeros(item["shape"], item["dtype"]))
            session.invoke()
            [session.get_tensor(item["index"]) for item in session.get_output_details()]

    start = time.process_time()
    first = make(path)
    made = time.process_time()
    run(first)
    ran = time.process_time()
    second = make(other)
    end = time.process_time()
    del second
    return 1e3 * (made - start), 1e3 * (end - ran), 1e3 * (ran - start)


_DTYPES = {
    f"tensor({name})": dtype
    for name, dtype in {"float": "f4", "int8": "i1", "uint8": "u1", "int16": "i2", "int32": "i4", "int64": "i8"}.items()
}


def measured(package: str, path: Path, other: Path, processes: int) -> tuple[float, float, float]:
    """Return the least of each figure over some processes."""
    best = (math.inf,) * 3
    for _ in range(processes):
        command = [sys.executable, __file__, "--measure", package, str(path), str(other)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        best = tuple(map(min, best, map(float, text)))
    return best


def main() -> int:
    """Print the table; the exit status is the number of figures above the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("names", nargs="*", help="beginnings of the names of files")
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if options.measure:
        print(*measured_here(*options.measure))
        return 0
    above = 0
    titles = (f"{title:>{width}}{'LiteRT':>8}{'ratio':>7}" for title, width in zip(_TITLES, _WIDTHS, strict=True))
    print(f"{'file':36}" + "".join(titles))
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(options.folder.glob("*.tflite")):
            if options.names and not any(path.name.startswith(name) for name in options.names):
                continue
            other = Path(folder) / f"other.{path.name}"
            shutil.copy(path, other)
            with other.open("ab") as file:
                file.write(b"another file")
            for _ in range(3):
                measured("sardonyx", path, other, 1)
                time.sleep(2.1)  # a file is known by its name once it was left alone for a while
            own, peer = (measured(package, path, other, options.processes) for package in ("sardonyx", "ai_edge_litert"))
            ratios = [one / two for one, two in zip(own, peer, strict=True)]
            above += sum(ratio > BAR for ratio in ratios[:2])
            print(
                f"{path.name:36}"
                + "".join(
                    f"{one:{width}.2f}{two:8.2f}{ratio:7.2f}"
                    for width, one, two, ratio in zip(_WIDTHS, own, peer, ratios, strict=True)
                ),
                flush=True,
            )
    return above


if __name__ == "__main__":
    sys.exit(main())
