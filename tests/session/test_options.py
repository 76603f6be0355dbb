"""Options with onnxruntime's names."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument, ModelLoadCanceled, ModelLoadTimedOut, RunTimedOut
from sardonyx.session.options import ExecutionMode, GraphOptimizationLevel, SessionOptions
from sardonyx.session.run_options import RunOptions
from sardonyx.values.hardware import OrtExecutionProviderDevicePolicy


def test_defaults_are_onnxruntimes() -> None:
    """All optimizations, sequential, as many threads as it likes."""
    options = SessionOptions()
    assert options.graph_optimization_level == GraphOptimizationLevel.ORT_ENABLE_ALL
    assert options.execution_mode == ExecutionMode.ORT_SEQUENTIAL
    assert options.intra_op_num_threads == 0


def test_config_entries_are_kept_by_name() -> None:
    """What is added can be got."""
    options = SessionOptions()
    options.add_session_config_entry("mine.x", "1")
    assert options.get_session_config_entry("mine.x") == "1"
    assert options.session_config_entries == {"mine.x": "1"}


def test_an_empty_key_is_refused() -> None:
    """As onnxruntime does."""
    with pytest.raises(InvalidArgument, match="key of 1 to 1024"):
        SessionOptions().add_session_config_entry("", "1")


def test_a_negative_dimension_is_left_open() -> None:
    """Also where it was fixed before; a text is no size."""
    options = SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    options.add_free_dimension_override_by_name("batch", -1)
    assert options.dimension_overrides == {}
    with pytest.raises(TypeError):
        options.add_free_dimension_override_by_name("batch", "a")  # type: ignore[arg-type]


def test_config_entries_are_texts_of_any_length() -> None:
    """A number is none."""
    options = SessionOptions()
    options.add_session_config_entry("my.entry", "x" * 5000)
    assert len(options.get_session_config_entry("my.entry")) == 5000
    with pytest.raises(TypeError, match="the key and the value of a config entry are texts, got 'my.entry' and 3"):
        options.add_session_config_entry("my.entry", 3)  # type: ignore[arg-type]


def test_external_initializers_pair_names_with_values() -> None:
    """One value each."""
    options = SessionOptions()
    options.add_external_initializers(["a", "b"], [np.zeros(1), np.ones(1)])
    assert {name: array.tolist() for name, array in options.initializers.items()} == {"a": [0.0], "b": [1.0]}


def test_contents_of_files_are_given_from_memory() -> None:
    """As many bytes of each buffer as are said to count."""
    options = SessionOptions()
    buffers = [b"abcd", np.arange(3, dtype=np.int16)]
    options.add_external_initializers_from_files_in_memory(["a.bin", "b.bin"], buffers, [3, 6])
    assert {name: content.tobytes() for name, content in options.external_files.items()} == {
        "a.bin": b"abc",
        "b.bin": buffers[1].tobytes(),
    }
    with pytest.raises(InvalidArgument, match="2 file_names, 1 buffers and 1 lengths"):
        options.add_external_initializers_from_files_in_memory(["a", "b"], [b""], [0])
    with pytest.raises(InvalidArgument, match="buffer of 'a' is dense and has at least 5 bytes, got 4"):
        options.add_external_initializers_from_files_in_memory(["a"], [b"abcd"], [5])
    with pytest.raises(TypeError):
        options.add_external_initializers_from_files_in_memory(["a"], [3], [5])


def test_providers_are_added_in_order() -> None:
    """Option values become text."""
    options = SessionOptions()
    assert not options.has_providers()
    options.add_provider("ReferenceExecutionProvider", {"x": "1"})
    assert options.providers == (("ReferenceExecutionProvider", {"x": "1"}),)


def test_placements_are_kept_in_order() -> None:
    """As the command line writes them."""
    options = SessionOptions()
    options.place("Conv", "CPUExecutionProvider")
    options.place("node:last", "ReferenceExecutionProvider")
    assert options.placements == ("Conv=CPUExecutionProvider", "node:last=ReferenceExecutionProvider")


@pytest.mark.parametrize("made", [SessionOptions, RunOptions])
def test_a_misspelt_property_cannot_be_set(made: type) -> None:
    """As in onnxruntime."""
    with pytest.raises(AttributeError, match="enable_profilling"):
        made().enable_profilling = True


def test_a_copy_changes_by_itself() -> None:
    """Properties, entries and what was added."""
    options = SessionOptions()
    options.add_session_config_entry("mine.x", "1")
    options.place("Conv", "A")
    made = options.copy()
    made.add_session_config_entry("mine.x", "2")
    made.place("Relu", "A")
    made.verify = True
    assert (options.session_config_entries, options.placements, options.verify) == ({"mine.x": "1"}, ("Conv=A",), False)
    assert (made.session_config_entries, made.placements) == ({"mine.x": "2"}, ("Conv=A", "Relu=A"))


def test_the_load_flag_is_shared_with_copies() -> None:
    """A session copies its options; setting the flag of those that it was given must reach it."""
    options = SessionOptions()
    cancellation = options.copy().load_cancellation()
    cancellation.check()
    options.set_load_cancellation_flag(True)
    with pytest.raises(ModelLoadCanceled, match="set_load_cancellation_flag"):
        cancellation.check()
    options.set_load_cancellation_flag(False)
    cancellation.check()


def test_a_time_counts_from_when_the_work_begins() -> None:
    """The same options may be given to many runs and loads."""
    run, load = RunOptions(), SessionOptions()
    run.timeout_ms = load.load_timeout_ms = 20
    for _ in range(2):
        run.cancellation().check()
        load.load_cancellation().check()
    running, loading = run.cancellation(), load.load_cancellation()
    time.sleep(0.05)
    with pytest.raises(RunTimedOut, match="20 ms"):
        running.check()
    with pytest.raises(ModelLoadTimedOut, match="20 ms"):
        loading.check()


def test_a_size_beyond_64_bits_is_refused() -> None:
    """The message names the dimension."""
    with pytest.raises(InvalidArgument, match="the size of 'n' is a number of 64 bits"):
        SessionOptions().add_free_dimension_override_by_name("n", 2**63)


def test_an_initializer_gets_one_value() -> None:
    """A second one is an error, also where both come in one call; the same one again is none."""
    options = SessionOptions()
    value = np.zeros(2)
    options.add_initializer("w", value)
    options.add_initializer("w", value)
    with pytest.raises(InvalidArgument, match="already been added: w"):
        options.add_initializer("w", np.ones(2))
    with pytest.raises(InvalidArgument, match="already been added: v"):
        options.add_external_initializers(["v", "v"], [value, np.ones(2)])


def test_a_policy_counts_as_providers() -> None:
    """As does a function that chooses devices, and a provider that was added; copies have it too."""
    chosen, free, added = SessionOptions(), SessionOptions(), SessionOptions()
    assert not chosen.has_providers()
    chosen.set_provider_selection_policy(OrtExecutionProviderDevicePolicy.PREFER_CPU)
    free.set_provider_selection_policy_delegate(lambda devices, model, runtime, most: devices[:1])
    added.add_provider("CPUExecutionProvider")
    assert [options.has_providers() for options in (chosen, chosen.copy(), free, added)] == [True] * 4


def test_a_provider_that_nobody_knows_is_not_added() -> None:
    """One of onnxruntime's builds is, as a session passes it over with a warning."""
    options = SessionOptions()
    options.add_provider("CUDAExecutionProvider")
    with pytest.raises(InvalidArgument, match="Unknown Provider Type: CPUExecutionProvidr.*did you mean 'CPUExecutionProvider'"):
        options.add_provider("CPUExecutionProvidr")
    assert [name for name, _ in options.providers] == ["CUDAExecutionProvider"]


def test_the_load_flag_is_a_flag() -> None:
    """A text is none."""
    with pytest.raises(TypeError, match="is_cancel is a bool, got 'no'"):
        SessionOptions().set_load_cancellation_flag("no")  # type: ignore[arg-type]


def test_options_can_be_referred_to_weakly() -> None:
    """As those of onnxruntime; copies can, too."""
    for options in (SessionOptions(), SessionOptions().copy(), RunOptions()):
        assert weakref.ref(options)() is options


@pytest.mark.parametrize(
    "change",
    [
        lambda options: options.add_session_config_entry("session.intra_op_num_threads", "2"),
        lambda options: options.add_initializer("w", np.zeros(1, np.float32)),
        lambda options: options.place("Conv", "CPUExecutionProvider"),
        lambda options: options.add_free_dimension_override_by_name("n", 2),
        lambda options: setattr(options, "placement_file", "placement.toml"),
        lambda options: setattr(options, "use_per_session_threads", False),
        lambda options: options.set_ep_context_data_read_func(lambda name, buffer: None, 1),
    ],
)
def test_options_with_more_than_numbers_and_texts_are_not_plain(change: Callable[[SessionOptions], object]) -> None:
    """Entries, arrays, placements, files, and what depends on the process have no plain values."""
    options = SessionOptions()
    assert options.plain_values() is not None
    change(options)
    assert options.plain_values() is None


def test_plain_values_are_all_that_plain_options_say() -> None:
    """Options that are made of them have them too."""
    options = SessionOptions()
    options.intra_op_num_threads, options.verify, options.logid = 2, True, "here"
    values = options.plain_values()
    assert values is not None
    made = SessionOptions.of_plain_values(values)
    assert (made.intra_op_num_threads, made.verify, made.logid, made.plain_values()) == (2, True, "here", values)
