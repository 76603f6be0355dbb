"""The table of config entries."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from sardonyx import optimize
from sardonyx.session.settings import keys, settings
from sardonyx.session.settings.foreign import IGNORED

OPTIONS = [option for options in keys.KEYS.values() for option in options]


def test_each_key_is_there_once() -> None:
    """Either it means something or it does not."""
    names = [*(option.name for option in OPTIONS), *(item.name for item in IGNORED)]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_each_key_is_read() -> None:
    """By `settings.py`, or as one of the optimizer's."""
    text = Path(settings.__file__).read_text(encoding="utf-8")
    read = {getattr(keys, name).name for name in re.findall(r"keys\.([A-Z_]+)\.read", text)}
    assert {option.name for option in OPTIONS} == read | set(keys.OPTIMIZER_FLAGS)


def test_rules_and_passes_ask_for_keys_that_there_are() -> None:
    """Each of the optimizer's entries is asked for by one of them, and no other is."""
    folder = Path(optimize.__file__ or "").parent
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    asked = {key for text in texts for key in re.findall(r'"((?:session|optimization)\.\w+)"', text)}
    assert asked == set(keys.OPTIMIZER_FLAGS)


def test_each_default_can_be_read() -> None:
    """Given as a text it is the same value."""
    shown = [option for option in OPTIONS if option.default_text]
    assert [option.name for option in shown if option.read({option.name: option.default_text}) != option.default] == []


def test_no_key_is_written_elsewhere() -> None:
    """Readers take settings; what a model's format or package brings is added to the entries, where the user has set none."""
    folder = Path(keys.__file__).parents[2]
    readers = [path.name for path in folder.rglob("*.py") if ".session_config_entries" in path.read_text(encoding="utf-8")]
    assert sorted(readers) == ["context.py", "format_options.py", "settings.py"]
