"""What a model keeps from run to run."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from support.models import model

import sardonyx
from sardonyx.formats.tflite import STATES
from sardonyx.ir import Model
from sardonyx.session.states import States


def _counting() -> Model:
    """Return an ONNX model that adds its input to a sum."""
    made = model("graph(x: float[1], s: float[1]) -> (y: float[1], t: float[1]) {\ny = Add(x, s)\nt = Identity(y)\n}")
    made.metadata = {STATES: json.dumps([["sum", "s", "t"]])}
    from sardonyx.ir import Tensor

    value = made.graph.inputs[1]
    value.constant = Tensor.from_array(np.array([10], np.float32), "s")
    made.graph.initializers["s"] = value
    return made


FEED = {"x": np.array([1], np.float32)}


def test_outputs_of_a_run_are_inputs_of_the_next() -> None:
    """The first begins with the default; neither is shown."""
    session = sardonyx.InferenceSession(_counting())
    assert ([value.name for value in session.get_inputs()], [value.name for value in session.get_outputs()]) == (["x"], ["y"])
    assert [session.run(None, FEED)[0].item() for _ in range(3)] == [11, 12, 13]


def test_sessions_keep_values_of_their_own() -> None:
    """Also of one model."""
    one, other = sardonyx.InferenceSession(_counting()), sardonyx.InferenceSession(_counting())
    one.run(None, FEED)
    assert (one.run(None, FEED)[0].item(), other.run(None, FEED)[0].item()) == (12, 11)


def test_a_reset_begins_anew() -> None:
    """As the first run did."""
    session = sardonyx.InferenceSession(_counting())
    session.run(None, FEED)
    session.reset_all_variables()
    assert session.run(["y"], FEED)[0].item() == 11


def test_threads_take_turns() -> None:
    """No run is lost."""
    session = sardonyx.InferenceSession(_counting())
    threads = [threading.Thread(target=lambda: [session.run(None, FEED) for _ in range(25)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.run(None, FEED)[0].item() == 111


def test_bindings_keep_values_too() -> None:
    """They compute as runs do."""
    session = sardonyx.InferenceSession(_counting())
    binding = session.io_binding()
    binding.bind_cpu_input("x", FEED["x"])
    binding.bind_output("y")
    for expected in (11, 12, 13):
        session.run_with_iobinding(binding)
        assert binding.copy_outputs_to_cpu()[0].item() == expected


def test_metadata_that_are_none_mean_nothing() -> None:
    """Anybody may have written them."""
    assert States.of({}, ["y"]) is None
    assert States.of({STATES: "[["}, ["y"]) is None
    assert States.of({STATES: "7"}, ["y"]) is None


def test_many_runs_of_one_shape_need_no_python() -> None:
    """And feed states on as the first runs did; other ways to run go on from them."""
    session = sardonyx.InferenceSession(_counting())
    assert [session.run(None, FEED)[0].item() for _ in range(8)] == list(range(11, 19))
    assert session.run(["y"], FEED)[0].item() == 19
    assert session.run(None, FEED, sardonyx.RunOptions())[0].item() == 20
    session.reset_all_variables()
    assert [session.run(None, FEED)[0].item() for _ in range(2)] == [11, 12]
    assert session.run(None, {"x": np.array([1], np.float32), "s": np.array([5], np.float32)})[0].item() == 6


def test_results_are_the_callers_own() -> None:
    """What is written into one changes no state."""
    session = sardonyx.InferenceSession(_counting())
    for expected in range(11, 17):
        (found,) = session.run(None, FEED)
        assert found.item() == expected
        found[:] = 0


def test_a_feed_that_is_wrong_changes_nothing() -> None:
    """In any run."""
    session = sardonyx.InferenceSession(_counting())
    for expected in range(11, 17):
        with pytest.raises(sardonyx.InvalidArgument):
            session.run(None, {"x": np.zeros((2, 2), np.float32)})
        assert session.run(None, FEED)[0].item() == expected


@pytest.mark.parametrize("names", [["sum", "s", "t"], ['a"b', "s", "t"], ["a\\b", "s", "t"], ["a, b", "[s]", "ü"]])
def test_names_are_read_as_json_has_them(names: list[str]) -> None:
    """With quotes, escapes and commas in them, and other spaces between them."""
    for text in (json.dumps([names]), json.dumps([names, names]), json.dumps([names], indent=1)):
        found = States.of({STATES: text}, [names[2], "y"])
        assert found is not None
        assert (found.hidden, found.visible) == ({names[2]}, ["y"])
