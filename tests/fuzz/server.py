"""Many cases, one after another, in children of one warm process: forking and importing cost next to nothing.

A child runs cases until one ends it; the process above then notes what that was, and forks another one for the rest. What a child
finds is run once more in a child of its own: what depends on the cases before is reported as such.

    child    "begin 7", "found 7 differs: …" or "done 7", "peer 7 …" …; where it crashes, Python's lines about that
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from fuzz.draw import Draw
from fuzz.harness import HUNG, Runnable, be_limited, kind_of, limit_time, peer_finding, run_case

__all__ = ["Found", "run_seeds"]

_PER_CHILD = 150
"""Cases of one child: what they leave behind is limited."""
_FRAME = re.compile(r'  File ".*?([^/"]+)", line (\d+) in ')
"""A line of what faulthandler says of a crash."""
_MOST_FRAMES = 4


class Found(NamedTuple):
    """What one case gave."""

    seed: int
    """Which case."""
    finding: str
    """What was wrong with it; empty where nothing was."""
    peer: str
    """Where onnxruntime, if it was asked, differs or crashed."""


def run_seeds(first: int, count: int, make: Callable[[Draw], Runnable], *, asks_peer: bool = False) -> Iterator[Found]:
    """Yield what each case gives that is drawn by `make` from a seed of [first, first + count)."""
    seed, end = first, first + count
    while seed < end:
        for found in _run_child(seed, min(end, seed + _PER_CHILD), make, asks_peer):
            yield found
            seed = found.seed + 1


def _run_child(first: int, end: int, make: Callable[[Draw], Runnable], asks_peer: bool) -> Iterator[Found]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_a_child(first, end, make, asks_peer, writing)
    os.close(writing)
    begun, finding, peer = first, "", ""
    is_open = asked = False
    frames: list[str] = []
    with open(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            word, _, rest = line.rstrip("\n").partition(" ")
            number, _, text = rest.partition(" ")
            if word == "begin":
                begun, finding, peer, is_open, asked = int(number), "", "", True, False
            elif word == "found":
                finding = text
            elif word == "ask":
                asked = True
            elif word == "peer":
                peer = text
            elif word == "done":
                is_open = False
                yield Found(begun, finding, peer)
            elif frame := _FRAME.match(line):
                frames.append(f"{frame[1]}:{frame[2]}")
    status = os.waitpid(child, 0)[1]
    if is_open:
        ended = "hang: it took too long" if status in HUNG else f"crash: signal {status} at {_place(frames)}"
        yield Found(begun, finding, f"peer: {ended}") if asked else Found(begun, ended, "")


def _place(frames: Sequence[str]) -> str:
    return " < ".join(frames[:_MOST_FRAMES]) or "no line of Python"


def _be_a_child(first: int, end: int, make: Callable[[Draw], Runnable], asks_peer: bool, writing: int) -> None:
    with contextlib.suppress(BaseException):
        be_limited()
        with open(writing, "w", encoding="utf-8", errors="replace", buffering=1) as pipe:
            faulthandler.enable(pipe, all_threads=False)
            for seed in range(first, end):
                limit_time()
                _run_one(seed, make, asks_peer, lambda line: pipe.write(line.replace("\n", " ") + "\n"))
        limit_time(ends=False)
        os._exit(0)
    os._exit(1)


def _run_one(seed: int, make: Callable[[Draw], Runnable], asks_peer: bool, say: Callable[[str], object]) -> None:
    say(f"begin {seed}")
    random.seed(seed)
    try:
        case = make(Draw.seeded(seed))
        finding = run_case(case)
    except Exception as error:  # noqa: BLE001  the search itself failed
        say(f"found {seed} search: {type(error).__name__}: {error}")
    else:
        say(f"found {seed} {finding[:2000]}")
        if asks_peer and kind_of(finding) == "":
            say(f"ask {seed}")
            say(f"peer {seed} {peer_finding(case)[:2000]}")
    say(f"done {seed}")
