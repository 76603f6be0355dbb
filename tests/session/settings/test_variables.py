"""The table of environment variables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sardonyx import config
from sardonyx.session.settings.variables import VARIABLES


def test_the_table_has_what_is_read() -> None:
    """Every name that `config.py` reads is in it, and no other."""
    text = Path(config.__file__).read_text(encoding="utf-8")
    read = set(re.findall(r'(?:_variable|_positive)\("((?:SARDONYX|ORT)_\w+)"', text))
    assert read == {variable.name for variable in VARIABLES}


def test_its_defaults_are_those_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sizes and counts that do not depend on the machine."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)
    defaults = {variable.name: variable.default for variable in VARIABLES}
    assert defaults["SARDONYX_CACHE_BYTES"] == str(config.cache_limit_bytes())
    assert defaults["SARDONYX_MAX_ITERATIONS"] == str(config.Limits().iterations)
