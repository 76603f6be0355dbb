"""Run cases in children of this process, between unmapped pages, and say what went wrong.

crash       the process was stopped: a kernel left its buffers
hang        it took longer than `SECONDS` of the processor's time, or ten times as long by the clock
untyped     an exception that is none of sardonyx's own
differs     the CPU provider and the reference provider both compute, but not the same
wrong       a damaged compiled model computes something else
accepts     the CPU provider computes what the reference provider refuses
refuses     the other way round
search      the case could not be made, or not be compared
peer        onnxruntime computes something else, where both providers agree
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import pkgutil
import resource
import signal
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from fuzz.damaged import run_damaged
from fuzz.draw import Draw, shrink
from fuzz.model import Case, Making
from fuzz.operators import OPERATORS, make_case

from sardonyx import InferenceSession, SessionOptions
from sardonyx.dtypes import Array
from sardonyx.errors import SardonyxError

__all__ = [
    "BROKEN",
    "HUNG",
    "Judge",
    "Runnable",
    "be_limited",
    "case_maker",
    "finding_of",
    "kind_of",
    "limit_time",
    "make_small",
    "peer_finding",
    "run_case",
    "signature_of",
    "warm_up",
]

SECONDS = 20
"""How much of the processor's time a case may take: others may use the machine too."""
_MEMORY_BYTES = 6 << 30
HUNG = (signal.SIGALRM, signal.SIGPROF)
"""The signals that end what takes too long."""
BROKEN = ("crash", "hang", "untyped", "differs", "wrong", "search")
"""What is a defect whatever the model."""
_RANDOM = (b"Random", b"Bernoulli", b"Multinomial", b"Dropout", b"SampleOp", b"Sampling")
"""Operators that draw numbers: two runs differ."""
_NAN_ATTRIBUTE = b"\x15\x00\x00\xc0\x7f"
"""An attribute that is NaN, as a file has it: no definition says what comes of it."""
_SPREADING = (b"DFT", b"STFT", b"Conv")
"""Operators whose algorithms spread NaN and infinities over other elements than the definition's sums: fast transforms, and
convolutions, which may multiply what is outside of an image as zeros or leave it out."""
_QUANTIZING = b"QuantizeLinear"
"""An operator that makes a whole step of what rounds otherwise."""


_WARM = ("codegen", "formats", "ops", "optimize", "partition", "providers.cpu", "providers.reference", "runtime", "session")
"""Packages of which a session imports modules when it needs them."""
_KEEPS_ONE_IN = 8
"""Of how many models one is kept on disk as it was decided: each is new, and what is kept of it is read once at most."""

_BFLOAT16_SHARE = 2e-2
"""By what share of the largest element results of bfloat16 may differ: steps of 2 ** -8, of which the reference provider makes several
where the CPU provider computes in float32."""


class Runnable(Protocol):
    """A case: a model and what is fed to it."""

    feeds: dict[str, Any]
    """A value for each name."""

    def content(self) -> bytes:
        """The bytes of the model."""


Judge = Callable[[Runnable], str]
"""What says what is wrong with a case."""


def case_maker(operators: Sequence[Callable[[Making], str]] = OPERATORS) -> Callable[[Draw], Case]:
    """What draws a case of these operators."""
    return lambda draw: make_case(draw, operators)


def kind_of(finding: str) -> str:
    """Which of the kinds above it is."""
    return finding.partition(":")[0]


def signature_of(finding: str) -> str:
    """What findings of one cause mostly have in common."""
    return "".join(letter for letter in finding if not letter.isdigit())[:80]


def make_small(choices: Sequence[int], finding: str, make: Callable[[Draw], Runnable], *, tries: int = 200) -> tuple[str, Runnable]:
    """The finding of fewer and smaller choices that is of the same kind, and its case."""
    kind = kind_of(finding)
    small = shrink(choices, lambda tried: kind_of(finding_of(lambda: make(Draw(tried)))) == kind, tries=tries)
    return finding_of(lambda: make(Draw(small))) or finding, make(Draw(small))


def warm_up() -> None:
    """Import and compile in this process what every child needs; what one of them imports is lost for the next."""
    for name in _WARM:
        package = importlib.import_module(f"sardonyx.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    feeds = {"x": np.ones((1, 1, 4, 4), np.float32), "w": np.ones((1, 1, 3, 3), np.float32)}
    text = "graph(x: float[n, 1, 4, 4], w: float[1, 1, 3, 3]) -> (y, z) {\ny = Relu(x)\nz = Conv(x, w) {pads = [1, 1, 1, 1]}\n}"
    finding = run_case(Case(text, 21, feeds))
    if finding:
        raise AssertionError(finding)


def finding_of(case: Runnable | Callable[[], Runnable], judge: Judge | None = None) -> str:
    """What goes wrong in a child that makes and judges the case, by `run_case` if not otherwise, with details; empty where nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_a_child(case, judge or run_case, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    if status == 0:
        return said
    return "hang: it took too long" if status in HUNG else f"crash: signal {status} in {said or 'making the model'}"


def limit_time(*, ends: bool = True) -> None:
    """Let the process be ended when it has used `SECONDS` more of the processor's time, or waited ten times as long, or never."""
    seconds = SECONDS if ends else 0
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)


def be_limited() -> None:
    """Limit this process's memory, let nothing be printed, and let no crash be reported by anything but its status."""
    faulthandler.disable()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)


def _be_a_child(case: Runnable | Callable[[], Runnable], judge: Judge, writing: int) -> None:
    limit_time()
    with contextlib.suppress(BaseException):
        be_limited()
        os.write(writing, judge(case() if callable(case) else case).encode())
        os._exit(0)
    os._exit(1)


def run_case(case: Runnable) -> str:
    """What the two providers make of a case, as above."""
    found, wanted = (_outcome(case, provider) for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"))
    for name, outcome in (("CPU", found), ("reference", wanted)):
        if isinstance(outcome, Exception) and not _is_typed(outcome, case.feeds):
            return f"untyped: {name}: {type(outcome).__name__}: {outcome}"
    damage = getattr(case, "damage", ())
    if damage and not isinstance(found, Exception):
        return _damaged_finding(case, damage, found)
    if isinstance(found, Exception):
        return "" if isinstance(wanted, Exception) else f"refuses: {found}"
    if isinstance(wanted, Exception):
        return f"accepts: {wanted}"
    return _difference("differs", found, wanted, case.content())


def peer_finding(case: Runnable) -> str:
    """Where onnxruntime, which must be installed, computes something else than sardonyx's default; empty where not."""
    import onnxruntime

    found = _outcome(case, None)
    if isinstance(found, Exception):
        return ""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        wanted = onnxruntime.InferenceSession(case.content(), options, providers=["CPUExecutionProvider"]).run(
            None, {name: _native(value) for name, value in case.feeds.items()}
        )
    except Exception:  # noqa: BLE001  whatever it refuses is its own matter
        return ""
    return _difference("peer", found, wanted, case.content())


def _native(value: Any) -> Any:
    """Elements in the machine's order of bytes, in which onnxruntime reads them whatever they are in."""
    return value.astype(value.dtype.newbyteorder("=")) if isinstance(value, np.ndarray) else value


def _damaged_finding(case: Runnable, damage: Sequence[int], expected: list[Any]) -> str:
    try:
        found = run_damaged(case.content(), case.feeds, damage)
    except SardonyxError:
        return ""
    except Exception as error:  # noqa: BLE001  which class it is of is what we want to know
        return f"untyped: damaged: {type(error).__name__}: {error}"
    return "" if found is None else _difference("wrong", found, expected, case.content())


def _is_typed(error: Exception, feeds: Mapping[str, Any]) -> bool:
    """Whether an exception is one of ours, or Python's for an argument of a type that is no value."""
    return isinstance(error, SardonyxError)


def _outcome(case: Runnable, provider: str | None) -> list[Any] | Exception:
    options = SessionOptions()
    try:
        content = case.content()
        options.intra_op_num_threads = 1 + len(content) % 2
        options.add_session_config_entry("session.keep_decisions", str(int(zlib.crc32(content) % _KEEPS_ONE_IN == 0)))
        session = InferenceSession(content, options, providers=None if provider is None else [provider])
        return list(session.run(None, dict(case.feeds)))
    except Exception as error:  # noqa: BLE001  which class it is of is what we want to know
        return error


def _difference(kind: str, found: Sequence[Any], wanted: Sequence[Any], content: bytes) -> str:
    if any(name in content for name in (*_RANDOM, _NAN_ATTRIBUTE)):
        return ""
    likeness = _Likeness(any(name in content for name in _SPREADING), 2e-2 if _QUANTIZING in content else 2e-3)
    pairs = zip(found, wanted, strict=True)
    return next((f"{kind}: {_told(a)} and {_told(b)}" for a, b in pairs if not _are_close(a, b, likeness)), "")


class _Likeness(NamedTuple):
    """How much results may differ."""

    spreads: bool
    """Whether only elements that both have finite are compared."""
    share: float
    """By what share of the largest element."""


def _are_close(found: Any, wanted: Any, likeness: _Likeness) -> bool:
    if isinstance(found, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(_are_close(*pair, likeness) for pair in zip(found, wanted, strict=True))
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(_are_close(found[key], wanted[key], likeness) for key in found)
    if isinstance(found, (np.generic, float)) and isinstance(wanted, (np.generic, float)):
        found, wanted = np.asarray(found), np.asarray(wanted)
    if not isinstance(found, np.ndarray) or not isinstance(wanted, np.ndarray):
        return type(found) is type(wanted) and bool(found == wanted)
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return False
    if found.dtype.kind not in "fV":
        return bool(np.array_equal(found, wanted))
    if found.dtype.name == "bfloat16":
        likeness = likeness._replace(share=max(likeness.share, _BFLOAT16_SHARE))
    return _are_close_floats(found.astype(np.float64), wanted.astype(np.float64), likeness)


def _are_close_floats(found: Array, wanted: Array, likeness: _Likeness) -> bool:
    """Whether numbers are about equal; an infinity and NaN are, since what sums with infinities give depends on their order."""
    finite = np.isfinite(wanted)
    if likeness.spreads:
        finite &= np.isfinite(found)
    elif not np.array_equal(finite, np.isfinite(found)):
        return False
    scale = max(float(np.abs(wanted[finite]).max(initial=0)), 1e-3)
    return bool(np.allclose(found[finite], wanted[finite], rtol=1e-2, atol=likeness.share * scale))


def _told(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)} {value.reshape(-1)[:12].tolist()}"
    return repr(value)[:200]
