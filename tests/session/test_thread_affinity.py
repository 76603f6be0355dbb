"""`session.intra_op_thread_affinities`."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from support.session_models import session

import sardonyx as ort

_KEY = "session.intra_op_thread_affinities"
_TEXT = "graph(x: float[n]) -> (y: float[n]) {\ny = Exp(x)\n}"


def _made(text: str, threads: int = 3) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry(_KEY, text)
    return session(_TEXT, sess_options=options)


@pytest.mark.parametrize(
    "text", ["x;y", "0;1", "1-;2", "2-1;1", "1-2,4;1", "1 ; 1", "-1;1", "99999999999;1", "", "1", "1;1;1", ";"]
)
def test_what_onnxruntime_refuses_is_refused(text: str) -> None:
    """Texts that say no processors, and lists that are not one less than there are threads."""
    with pytest.raises(ort.InvalidArgument, match=_KEY):
        _made(text)


def test_one_thread_needs_no_processors() -> None:
    """The calling thread runs where it is, whatever the list says."""
    assert _made("1;2;3", threads=1).run(None, {"x": np.zeros(3, np.float32)})[0].tolist() == [1, 1, 1]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads are pinned on Linux")
def test_workers_run_on_their_processors_only() -> None:
    """Those that were there and those that start later; the calling thread keeps its own."""
    own = sorted(os.sched_getaffinity(0))
    first, last = own[0] + 1, own[-1] + 1
    program = f"""
import os, threading
import numpy as np
import sardonyx as ort
from sardonyx.ir.text import parse_model

from support.session_models import session

def made(count, text):
    options = ort.SessionOptions()
    options.intra_op_num_threads = count
    options.add_session_config_entry({_KEY!r}, text)
    made = session({_TEXT!r}, sess_options=options)
    made.run(None, {{"x": np.zeros(3_000_000, np.float32)}})
    workers = sorted((thread.name, thread.native_id) for thread in threading.enumerate() if thread.name.startswith("sardonyx-"))
    return [sorted(os.sched_getaffinity(number)) for _, number in workers]

assert made(2, "{last}") == [[{last - 1}]]
assert made(3, "{first};{first}-{last}") == [[{first - 1}], {own}]
assert sorted(os.sched_getaffinity(0)) == {own}
"""
    program = program.replace("from sardonyx.ir.text import parse_model\n", "")
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads are pinned on Linux")
def test_processors_that_there_are_none_of_are_warned_of() -> None:
    """As onnxruntime logs an error and goes on."""
    with pytest.warns(UserWarning, match="gives thread 1 the processors 60000, none of which"):
        made = _made("1-60001;60000")
    assert made.run(None, {"x": np.zeros(3_000_000, np.float32)})[0].all()
