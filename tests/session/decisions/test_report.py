"""The optimizer's report as plain data."""

import marshal
from collections import Counter

from sardonyx.optimize.contract import Level
from sardonyx.optimize.report import Change, PassRecord, Problem, Report
from sardonyx.session.decisions.report import plain_report, report_of


def test_a_report_comes_back() -> None:
    """With passes and rules, their numbers and times."""
    report = Report(Level.BASIC, 5, 3, {"p": PassRecord("p", 2, 1, 0.5)}, Counter({"r": 4}), seconds=1.5)
    assert report_of(marshal.loads(marshal.dumps(plain_report(report)))) == report


def test_reports_of_changes_and_problems_are_not_kept() -> None:
    """Such sessions are made to look at what the optimizer does."""
    assert plain_report(Report(Level.BASIC, changes=[Change("r", (), ())])) is None
    assert plain_report(Report(Level.BASIC, problems=[Problem("r", "failed")])) is None
    assert plain_report(Report(Level.BASIC, verified=Counter({"r": 1}))) is None
