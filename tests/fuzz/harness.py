"""Run cases in children of this process, between unmapped pages, and say what went wrong.

crash       the process was stopped: a kernel left its buffers
hang        it took longer than `SECONDS`
untyped     an exception that is none of sardonyx's own
differs     the CPU provider and the reference provider both compute, but not the same
accepts     the CPU provider computes what the reference provider refuses
refuses     the other way round
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fuzz.draw import Draw, shrink
from fuzz.model import Case, Making
from fuzz.operators import OPERATORS, make_case
from support.models import model

from sardonyx import InferenceSession, SessionOptions
from sardonyx.dtypes import Array
from sardonyx.errors import SardonyxError
from sardonyx.formats.onnx import to_bytes

__all__ = ["BROKEN", "finding_of", "run_case", "search", "warm_up"]

SECONDS = 20
BROKEN = ("crash", "hang", "untyped", "differs")
"""What is a defect whatever the model."""


def search(
    seed: int, *, kinds: Sequence[str] = BROKEN, operators: Sequence[Callable[[Making], str]] = OPERATORS
) -> tuple[str, Case] | None:
    """The finding of the case that a seed draws, made small; None where nothing is wrong with it."""
    draw = Draw.seeded(seed)
    found = finding_of(make_case(draw, operators))
    kind = found.partition(":")[0]
    if kind not in kinds:
        return None
    small = shrink(draw.choices, lambda choices: finding_of(make_case(Draw(choices), operators)).partition(":")[0] == kind)
    case = make_case(Draw(small), operators)
    return finding_of(case), case


def warm_up() -> None:
    """Import and compile in this process what every child needs."""
    feeds = {"x": np.ones((1, 1, 4, 4), np.float32), "w": np.ones((1, 1, 3, 3), np.float32)}
    text = "graph(x: float[n, 1, 4, 4], w: float[1, 1, 3, 3]) -> (y, z) {\ny = Relu(x)\nz = Conv(x, w) {pads = [1, 1, 1, 1]}\n}"
    finding = run_case(Case(text, 21, feeds))
    if finding:
        raise AssertionError(finding)


def finding_of(case: Case) -> str:
    """What goes wrong in a child that runs the case, with details; empty where nothing does."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_a_child(case, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    if status == 0:
        return said
    return "hang" if status == signal.SIGALRM else f"crash: signal {status} in {said or 'making the model'}"


def _be_a_child(case: Case, writing: int) -> None:
    faulthandler.disable()
    signal.alarm(SECONDS)
    with contextlib.suppress(BaseException):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(writing, run_case(case).encode())
        os._exit(0)
    os._exit(1)


def run_case(case: Case) -> str:
    """What the two providers make of a case, as `finding_of` says."""
    found, wanted = (_outcome(case, provider) for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"))
    for name, outcome in (("CPU", found), ("reference", wanted)):
        if isinstance(outcome, Exception) and not isinstance(outcome, SardonyxError):
            return f"untyped: {name}: {outcome!r}"
    if isinstance(found, Exception):
        return "" if isinstance(wanted, Exception) else f"refuses: {found}"
    if isinstance(wanted, Exception):
        return f"accepts: {wanted}"
    return next((f"differs: {_told(a)} and {_told(b)}" for a, b in zip(found, wanted, strict=True) if not _are_close(a, b)), "")


def _outcome(case: Case, provider: str) -> list[Any] | Exception:
    options = SessionOptions()
    options.intra_op_num_threads = 1 + len(case.text) % 2
    try:
        session = InferenceSession(to_bytes(model(case.text, opset=case.opset)), options, providers=[provider])
        return session.run(None, dict(case.feeds))
    except Exception as error:  # noqa: BLE001  which class it is of is what we want to know
        return error


def _are_close(found: Array, wanted: Array) -> bool:
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return False
    if found.dtype.kind != "f":
        return bool(np.array_equal(found, wanted))
    finite = np.isfinite(wanted)
    scale = max(float(np.abs(wanted[finite]).max(initial=0)), 1e-3)
    return bool(np.allclose(found, wanted, rtol=1e-2, atol=2e-3 * scale, equal_nan=True))


def _told(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)} {array.reshape(-1)[:12].tolist()}"
