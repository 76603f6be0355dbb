"""Spans and events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sardonyx.trace import Event, add_observer, event, observe, remove_observer, span, watch


def test_an_observer_hears_events_while_it_listens() -> None:
    """Name and details arrive; after the block nothing does."""
    heard: list[Event] = []
    with observe(heard.append):
        event("cache.corrupt", file="f.o", fallback="compile")
    event("cache.corrupt", file="later")
    assert [(item.name, item.details, item.duration_ns) for item in heard] == [
        ("cache.corrupt", {"file": "f.o", "fallback": "compile"}, 0)
    ]


def test_a_span_tells_how_long_it_took() -> None:
    """The event comes at its end, with what the block added."""
    heard: list[Event] = []
    with observe(heard.append), span("load", model="m") as details:
        assert not heard
        details["nodes"] = 3
    (item,) = heard
    assert item.name == "load"
    assert item.details == {"model": "m", "nodes": 3}
    assert item.duration_ns > 0


def test_a_span_that_fails_is_told_too() -> None:
    """The error passes on."""
    heard: list[Event] = []
    with pytest.raises(ValueError, match="broken"), observe(heard.append), span("load"):
        raise ValueError("broken")
    assert [item.name for item in heard] == ["load"]


def test_inner_spans_end_before_outer_ones() -> None:
    """Events come in the order in which things end."""
    heard: list[Event] = []
    with observe(heard.append), span("outer"), span("inner"):
        pass
    inner, outer = heard
    assert (inner.name, outer.name) == ("inner", "outer")
    assert outer.start_ns <= inner.start_ns


def test_several_observers_hear_the_same() -> None:
    """One that listens twice hears twice, and leaving takes away one."""
    heard: list[Event] = []
    with observe(heard.append):
        with observe(heard.append):
            event("twice")
        event("once")
    assert [item.name for item in heard] == ["twice", "twice", "once"]


def test_without_an_observer_a_span_still_gives_its_details() -> None:
    """Code need not ask whether somebody listens."""
    with span("load", model="m") as details:
        details["nodes"] = 3
    assert details == {"model": "m", "nodes": 3}


def test_a_trace_file_that_cannot_be_written_is_warned_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is traced goes on."""
    monkeypatch.setenv("SARDONYX_TRACE", str(tmp_path))
    with pytest.warns(UserWarning, match="SARDONYX_TRACE names .* cannot be written: Is a directory"):
        event("something")


def test_a_trace_file_gets_a_line_of_json_per_event(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What JSON cannot hold is printed."""
    target = tmp_path / "trace.jsonl"
    monkeypatch.setenv("SARDONYX_TRACE", str(target))
    event("first", path=Path("a"))
    with span("second"):
        pass
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [line["name"] for line in lines] == ["first", "second"]
    assert lines[0]["details"] == {"path": "a"}


def test_an_event_may_be_watched_by_its_name() -> None:
    """Without making others, or spans, be told."""
    told: list[str] = []
    watch(["test.watched"], lambda what: told.append(what.name))
    event("test.watched")
    event("test.other")
    assert told == ["test.watched"]


def test_an_observer_is_added_and_removed() -> None:
    """As often as it was added."""
    told: list[str] = []

    def observer(what: Event) -> None:
        told.append(what.name)

    add_observer(observer)
    event("one")
    remove_observer(observer)
    event("two")
    assert told == ["one"]
    with pytest.raises(ValueError, match="not in list"):
        remove_observer(observer)
