"""The report of the optimizer, kept with what it decided."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sardonyx.forks import without_fork
from sardonyx.formats.plain_graph import Plain

if TYPE_CHECKING:
    from sardonyx.optimize.report import Report

__all__ = ["plain_report", "report_of"]


def plain_report(report: Report) -> Plain:
    """Return a report as plain data; None for one that lists changes or problems, which are not kept."""
    if report.changes or report.problems or report.unverified or report.verified:
        return None
    passes = tuple((item.name, item.runs, item.changes, item.seconds) for item in report.passes.values())
    fired = tuple((name, int(count)) for name, count in report.fired.items())
    return int(report.level), report.nodes_before, report.nodes_after, passes, fired, report.seconds


def report_of(plain: Plain) -> Report:
    """Return the report that `plain_report` was given."""
    with without_fork():
        from sardonyx.optimize.contract import Level  # with the optimizer, which runs no more
        from sardonyx.optimize.report import PassRecord, Report

    level, before, after, passes, fired, seconds = plain
    records = {name: PassRecord(name, *rest) for name, *rest in passes}
    return Report(Level(level), before, after, records, Counter(dict(fired)), seconds=seconds)
