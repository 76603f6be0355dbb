"""Tests of settings."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.generate.settings import Settings, settings_of


def test_a_temperature_draws_tokens() -> None:
    """Without do_sample it would have no effect."""
    assert settings_of(Settings(), {"temperature": 0.7}).draws


def test_a_temperature_of_0_takes_the_best_token() -> None:
    """As its limit does."""
    assert not settings_of(Settings(), {"temperature": 0}).draws


def test_one_number_stands_for_a_list_of_one() -> None:
    """Configurations write eos_token_id either way."""
    assert settings_of(Settings(), {"eos_token_id": 2}).eos_token_id == (2,)
    assert settings_of(Settings(), {"eos_token_id": [2, 3]}).eos_token_id == (2, 3)


def test_a_misspelt_setting_is_an_error_with_the_nearest() -> None:
    """A typing error does not pass unnoticed."""
    with pytest.raises(InvalidArgument, match="did you mean 'top_k'"):
        settings_of(Settings(), {"topk": 3})


@pytest.mark.parametrize(
    "changes",
    [
        {"max_new_tokens": 0},
        {"max_new_tokens": 2.5},
        {"temperature": -1},
        {"top_p": 1.5},
        {"top_p": 0},
        {"min_p": "a"},
        {"repetition_penalty": 0},
        {"num_beams": 0},
        {"early_stopping": "always"},
        {"num_return_sequences": 2},
        {"stop_words": [""]},
        {"processors": [3]},
        {"eos_token_id": "2"},
        {"eos_token_id": 2.0},
        {"suppress_tokens": ["a"]},
        {"stop_sequences": [4, 5]},
        {"stop_sequences": "45"},
        {"stop_words": [5]},
        {"stop_words": b"five"},
        {"seed": -1},
        {"seed": "a"},
        {"forced_bos_token_id": "a"},
        {"repetition_penalty": float("inf")},
        {"temperature": float("inf")},
        {"do_sample": "yes"},
    ],
)
def test_values_that_mean_nothing_are_errors(changes: dict[str, object]) -> None:
    """Each setting checks its range."""
    with pytest.raises(InvalidArgument):
        settings_of(Settings(), changes)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_new_tokens", np.int64(3), 3),
        ("temperature", np.float32(0.5), 0.5),
        ("seed", np.int32(3), 3),
        ("eos_token_id", np.array([2, 3]), (2, 3)),
        ("eos_token_id", range(2, 4), (2, 3)),
        ("suppress_tokens", {2}, (2,)),
        ("forced_eos_token_id", [2, 3], (2, 3)),
        ("stop_sequences", np.array([[4, 5]]), ((4, 5),)),
        ("stop_sequences", None, ()),
        ("stop_words", {"five"}, ("five",)),
    ],
)
def test_numbers_and_collections_of_any_kind_are_taken(name: str, value: object, expected: object) -> None:
    """What computes a setting need not turn it into Python's own types."""
    assert getattr(settings_of(Settings(), {name: value}), name) == expected


def test_none_leaves_a_number_as_it_was() -> None:
    """Programs that hand on settings say None for what their users did not state."""
    base = Settings(temperature=0.5, do_sample=True, top_k=3)
    assert settings_of(base, {"temperature": None, "do_sample": None, "top_k": None}) == base


def test_a_setting_of_another_name_elsewhere_is_named() -> None:
    """Other packages count the prompt too, or call texts that end a row otherwise."""
    with pytest.raises(InvalidArgument, match="give max_new_tokens"):
        settings_of(Settings(), {"max_length": 3})
    with pytest.raises(InvalidArgument, match="give stop_words"):
        settings_of(Settings(), {"stop": "x"})
