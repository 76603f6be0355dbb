"""Changed bytes of TensorFlow Lite and Circle files: each is run, or refused by an error of ours, in bounded time.

    PYTHONPATH=src:tests python -m fuzz.flat_files 10000 --seed 1 [--zoo FOLDER] [--runs]

The files are the cases of single operators, and those in a folder. With `--runs` what loads is run too, on the reference provider.
Printed are exceptions that are none of ours, and files that take longer than two seconds; the exit status is 1 where there are any.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from pathlib import Path

import numpy as np
from formats.tflite.cases import every_case
from formats.tflite.cases.case import Case

import sardonyx
from sardonyx.errors import SardonyxError
from sardonyx.formats import models

_SLOW_S = 2.0
_BYTES = (0, 1, 2, 4, 127, 128, 254, 255)
_WORDS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x10000, 8, 4)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a file with some bytes, words or a stretch changed, moved or cut."""
    content = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        kind = rng.randrange(6)
        place = rng.randrange(max(len(content), 1))
        if kind < 2 and content:
            content[place] = rng.choice(_BYTES) if kind else rng.randrange(256)
        elif kind < 4 and len(content) >= 8:
            place = min(place & ~3, len(content) - 4)
            word = rng.choice(_WORDS) if kind == 2 else rng.randrange(0, 200)
            content[place : place + 4] = word.to_bytes(4, "little")
        elif kind == 4 and rng.randrange(4) == 0:
            del content[place:]
        elif len(content) >= 16:
            source = rng.randrange(len(content) - 8)
            content[place : place + 8] = content[source : source + 8]
    return bytes(content)


def run_one(data: bytes, case: Case, *, runs: bool) -> str:
    """Load a file, and perhaps run it; returns what was wrong, "" for nothing."""
    start = time.perf_counter()
    try:
        if not runs:
            models.load(data)
        else:
            session = sardonyx.InferenceSession(data, providers=["ReferenceExecutionProvider"])
            feed = dict(zip([value.name for value in session.get_inputs()], case.feeds, strict=False))
            session.run(None, feed)
    except SardonyxError as error:
        if "its maker should know" in str(error):
            return f"an error of the format itself: {error}\n{traceback.format_exc()}"
    except MemoryError:
        return "memory"
    except Exception:  # noqa: BLE001  what is none of ours is what is looked for
        return traceback.format_exc()
    seconds = time.perf_counter() - start
    return f"{seconds:.1f} s" if seconds > _SLOW_S else ""


def main() -> int:
    """Change files, and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--runs", action="store_true")
    arguments = parser.parse_args()
    seeds = list(every_case())
    if arguments.zoo is not None:
        files = [path for path in sorted(arguments.zoo.rglob("*")) if path.suffix in (".tflite", ".circle")]
        seeds += [Case(path.name, path.read_bytes(), [np.zeros(())]) for path in files]
    rng, failures = random.Random(arguments.seed), 0
    for number in range(arguments.count):
        case = rng.choice(seeds)
        wrong = run_one(mutated(case.data, rng), case, runs=arguments.runs)
        if wrong:
            failures += 1
            print(f"{number} {case.name}: {wrong}", file=sys.stderr)
    print(f"{arguments.count} files, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
