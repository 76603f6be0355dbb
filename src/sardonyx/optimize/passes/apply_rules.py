"""Apply rewrite rules as a pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sardonyx.ir import Model
from sardonyx.optimize.contract import Context
from sardonyx.optimize.rewrite import RuleSet, rewrite
from sardonyx.optimize.rule import Rule
from sardonyx.optimize.watch import Watch

__all__ = ["ApplyRules"]


class ApplyRules:
    """Fire rules until none fires any more, in the main graph and its subgraphs.

    Holds before: functions inlined; shapes inferred, as many checks ask for them. Cost: that of `rewrite`.
    """

    name = "apply_rules"

    def __init__(
        self, rules: Iterable[Rule], fired: Counter[str] | None = None, *, keep_opset: bool = False, watch: Watch | None = None
    ) -> None:
        """Compile the rules.

        Args:
            rules: in the order in which they are tried at one node.
            fired: where firings are counted, beside what `run` returns.
            keep_opset: as `rewrite` takes it.
            watch: as `rewrite` takes it.
        """
        self._rules = RuleSet(rules, None if watch is None else watch.tracer)
        self._keep_opset, self._watch = keep_opset, watch
        self._fired: Counter[str] = Counter() if fired is None else fired

    def only(self, name: str) -> ApplyRules:
        """Return the same with one of its rules, with nobody looking on and nothing counted."""
        return ApplyRules([rule for rule in self._rules.rules if rule.name == name], keep_opset=self._keep_opset)

    def run(self, model: Model, context: Context) -> bool:
        """Rewrite; whether any rule fired."""
        if not self._rules.rules:
            return False
        fired = rewrite(model, self._rules, keep_opset=self._keep_opset, watch=self._watch)
        self._fired.update(fired)
        return bool(fired)
