"""`sardonyx doctor`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from sardonyx.cli import doctor as module
from sardonyx.disk_cache import shared_cache
from sardonyx.session import providers


def test_it_says_what_there_is(invoke: Callable[..., Result]) -> None:
    """Versions, machine, threads, compiler, providers and cache."""
    shown = invoke("doctor").output
    for word in ("versions", "numpy", "processor", "instructions", "threads", "compiler", "CPUExecutionProvider", "cache", "slows"):
        assert word in shown


def test_json_has_the_facts(invoke: Callable[..., Result]) -> None:
    """By subject, with the advice as sentences."""
    facts = json.loads(invoke("doctor", "--json").stdout)
    assert facts["compiler"]["is_able"]
    assert facts["versions"]["python"].startswith("CPython") or facts["versions"]["python"]
    assert "ReferenceExecutionProvider" in facts["providers"]
    assert isinstance(facts["slowdowns"], list)
    assert facts["threads"]["threads"] >= 1


def test_a_missing_package_is_told(invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """With how to get it."""
    monkeypatch.setattr(providers, "_OPTIONAL", {"XExecutionProvider": ("no_such_package", "x:y")})
    facts = json.loads(invoke("doctor", "--json").stdout)
    reason = "the package no_such_package is not installed: pip install no_such_package"
    assert facts["missing_providers"] == {"XExecutionProvider": reason}


def test_what_slows_the_machine_down_is_said(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder that others can write is no cache; 80 columns are enough."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(folder))
    shared_cache.cache_clear()
    try:
        shown = invoke("doctor").output
    finally:
        shared_cache.cache_clear()
    assert "the cache of kernels is not used or not written" in shown


def test_lines_fit_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    module._print(module.describe_installation())
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
