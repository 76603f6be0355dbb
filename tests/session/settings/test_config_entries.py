"""Named texts of options."""

from __future__ import annotations

import pytest

import sardonyx as ort


@pytest.mark.parametrize("key", ["", "k" * 1025])
def test_keys_have_1_to_1024_characters(key: str) -> None:
    """Others are InvalidArgument, for sessions and for runs."""
    with pytest.raises(ort.InvalidArgument, match="1 to 1024 characters"):
        ort.SessionOptions().add_session_config_entry(key, "1")
    with pytest.raises(ort.InvalidArgument, match="1 to 1024 characters"):
        ort.RunOptions().add_run_config_entry(key, "1")


def test_a_key_that_was_not_set_is_named_with_those_that_were() -> None:
    """As InvalidArgument."""
    options = ort.RunOptions()
    options.add_run_config_entry("gpu_graph_id", "1")
    with pytest.raises(ort.InvalidArgument, match="with key: disable.*added so far: gpu_graph_id"):
        options.get_run_config_entry("disable")
    assert options.run_config_entries == {"gpu_graph_id": "1"}


def test_attributes_that_there_are_none_of_cannot_be_set() -> None:
    """A misspelt one is an AttributeError with the nearest."""
    with pytest.raises(AttributeError, match="no attribute 'terminat'; did you mean 'terminate'\\?"):
        ort.RunOptions().terminat = True  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'SessionOptions' object has no attribute 'zzz'$"):
        ort.SessionOptions().zzz = 1  # type: ignore[attr-defined]
