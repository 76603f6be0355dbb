"""`session.set_denormal_as_zero`."""

from __future__ import annotations

import numpy as np
import pytest
from support.session_models import session

import sardonyx as ort
from sardonyx.codegen.run.control_word import has_control
from sardonyx.codegen.target import host_target

pytestmark = pytest.mark.skipif(not has_control(host_target()), reason="the processor has no control word that is known")

_TEXT = "graph(x: float[n]) -> (y: float[n]) {\none: float[] = [1.0]\na = Mul(x, x)\nb = Mul(x, one)\ny = Add(a, b)\n}"
_TINY = np.float32(1e-40)


def _options(threads: int = 1, **entries: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    for key, text in entries.items():
        options.add_session_config_entry(f"session.{key}", text)
    return options


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ReferenceExecutionProvider"])
def test_denormal_numbers_are_zero_in_all_threads(provider: str, threads: int) -> None:
    """In small arrays and in such that are shared with workers, in the first run and in those of machine code."""
    made = session(_TEXT, sess_options=_options(threads, set_denormal_as_zero="1"), providers=[provider])
    for size in (7, 3_000_000):
        for _ in range(4):
            assert not made.run(None, {"x": np.full(size, _TINY)})[0].any()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_are_restored(threads: int) -> None:
    """The calling thread and workers compute with denormal numbers again, in Python and in other sessions."""
    with_zeros = session(_TEXT, sess_options=_options(threads, set_denormal_as_zero="1"))
    plain = session(_TEXT, sess_options=_options(threads))
    for size in (7, 3_000_000, 7):
        x = np.full(size, _TINY)
        for _ in range(4):
            assert not with_zeros.run(None, {"x": x})[0].any()
            assert (x * np.float32(1)).all()
            assert plain.run(None, {"x": x})[0].all()


def test_bound_outputs_are_computed_the_same_way() -> None:
    """Also from the third run on, by machine code."""
    made = session(_TEXT, sess_options=_options(set_denormal_as_zero="1"))
    binding = made.io_binding()
    binding.bind_cpu_input("x", np.full(7, _TINY))
    y = np.ones(7, np.float32)
    binding.bind_output("y", "cpu", 0, np.float32, (7,), y.ctypes.data)
    for _ in range(4):
        y[:] = 1
        made.run_with_iobinding(binding)
        assert not y.any()


def test_steps_on_several_threads_take_zeros_too() -> None:
    """The executor that runs steps at once, on the reference provider, whose kernels run in its threads."""
    options = _options(set_denormal_as_zero="1")
    options.add_session_config_entry("session.executor", "parallel")
    options.inter_op_num_threads = 3
    made = session(_TEXT, sess_options=options, providers=["ReferenceExecutionProvider"])
    assert not made.run(None, {"x": np.full(7, _TINY)})[0].any()


def test_a_failing_run_restores_the_thread() -> None:
    """An index out of range ends the run; the thread is as before."""
    text = "graph(x: float[n], i: int64[1]) -> (y: float[1]) {\na = Relu(x)\ny = Gather(a, i)\n}"
    for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"):
        made = session(text, sess_options=_options(set_denormal_as_zero="1"), providers=[provider])
        with pytest.raises(ort.InvalidArgument):
            made.run(None, {"x": np.zeros(3, np.float32), "i": np.int64([7])})
        assert (np.full(3, _TINY) * np.float32(1)).all()


def test_a_provider_option_says_it_for_one_provider() -> None:
    """`set_denormal_as_zero` of the CPU provider."""
    made = session(_TEXT, sess_options=_options(), providers=[("CPUExecutionProvider", {"set_denormal_as_zero": "1"})])
    assert not made.run(None, {"x": np.full(7, _TINY)})[0].any()
