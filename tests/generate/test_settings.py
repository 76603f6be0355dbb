"""Tests of settings."""

from __future__ import annotations

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
    ],
)
def test_values_that_mean_nothing_are_errors(changes: dict[str, object]) -> None:
    """Each setting checks its range."""
    with pytest.raises(InvalidArgument):
        settings_of(Settings(), changes)
