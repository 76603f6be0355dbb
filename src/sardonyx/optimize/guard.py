"""Run passes one by one: time them, name the one that fails, and where that is asked for prove them and go on without it.

A guarded pass runs on the model with a copy at hand. When it raises, leaves an invalid model or changes results, the copy takes the
model's place; a rule at fault is found by firing the rules again, one by one.
"""

from __future__ import annotations

import functools
import time
import zlib
from collections import Counter
from collections.abc import Callable

import numpy as np

from sardonyx.cancellation import check_cancelled, raise_interrupt
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidGraph, OptimizationError, SardonyxError, describe, located
from sardonyx.ir import Graph, Model, Node
from sardonyx.ir.verify import verify
from sardonyx.ir.walk import all_graphs
from sardonyx.optimize.contract import Context, Pass
from sardonyx.optimize.edit import clone_model, overridable_values
from sardonyx.optimize.passes.apply_rules import ApplyRules
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.report import Change, PassRecord, Problem, labels
from sardonyx.optimize.sample import samples, unsuitable
from sardonyx.optimize.shrink import shrink
from sardonyx.optimize.soundness import check_sound, is_sound
from sardonyx.optimize.watch import Watch, found_by_running
from sardonyx.trace import event, span

__all__ = ["Guard"]

_TOLERANCE = 1e-4
"""Of a whole model, for a pass that states none."""
_RULES = "apply_rules"
"""The pass that records its changes, and has them compared, firing by firing."""


class Guard:
    """Runs the passes of one optimization."""

    def __init__(
        self, model: Model, context: Context, watch: Watch, *, is_guarded: bool, continue_on_error: bool, checks: bool
    ) -> None:
        """Begin.

        Args:
            model: what the passes change.
            context: what they share.
            watch: who is left out, and the report.
            is_guarded: whether to keep copies and check what each pass leaves.
            continue_on_error: whether to go on without a rule or pass that fails, instead of raising.
            checks: whether to verify the model after each pass.
        """
        self._model, self._context, self._watch = model, context, watch
        self._is_guarded, self._continue_on_error, self._checks = is_guarded or continue_on_error, continue_on_error, checks
        self._was_sound = self._is_guarded and is_sound(model)

    def run(self, item: Pass) -> bool:
        """Run a pass, unless it is left out; whether it changed anything.

        Raises:
            OptimizationError: it raised, or left an invalid model; `optimization` names it, or the rule at fault.
            SardonyxError: the model is at fault.
        """
        check_cancelled()
        if item.name in self._watch.disabled:
            return False
        before = set(_nodes(self._model)) if self._watch.records and item.name != _RULES else set()
        record = self._watch.report.passes.setdefault(item.name, PassRecord(item.name))
        start = time.perf_counter()
        with span("optimize.pass", optimization=item.name):
            changed = self._guarded(item) if self._is_guarded and item is not INFER_SHAPES else self._attempt(item)
        record.runs += 1
        record.changes += changed
        record.seconds += time.perf_counter() - start
        check_cancelled()
        if changed and before:
            self._record(item, before)
        if changed and self._watch.tracer is not None:
            self._watch.tracer.after_pass(item.name, self._model)
        return changed

    def _record(self, item: Pass, before: set[Node]) -> None:
        now = list(_nodes(self._model))
        added = [node for node in now if node not in before]
        removed = before.difference(now)
        if added or removed:
            self._watch.report.changes.append(Change(item.name, tuple(sorted(labels(removed), key=str)), labels(added)))

    def _attempt(self, item: Pass, backup: _Backup | None = None) -> bool:
        try:
            changed = _run(item, self._model, self._context)
            if self._checks:
                verify(self._model)
            if backup is not None:
                _check_left(item, functools.partial(self._check, backup))
        except SardonyxError as error:
            check_cancelled()
            raise_interrupt(error)
            raise located(error, f"optimization {item.name}") from error
        return changed

    def _check(self, backup: _Backup) -> None:
        """Raise where the model is not sound; what was wrong before the first pass is the model's own fault."""
        if self._was_sound:
            check_sound(self._model)
        else:
            verify(self._model)
        INFER_SHAPES.run(self._model, self._context)
        backup.check_interface(self._model)

    def _guarded(self, item: Pass) -> bool:
        backup = _Backup(self._model)
        fired = self._watch.report.fired.copy()
        try:
            changed = self._attempt(item, backup)
        except SardonyxError as error:
            name, failure = self._culprit(item, backup, error)
            self._put_back(backup, fired)
            if not self._continue_on_error and isinstance(failure, (InvalidGraph, OptimizationError)):
                raise _named(OptimizationError(str(failure)), name) from error
            if not self._continue_on_error:
                raise failure from error
            alone = item.only(name) if isinstance(item, ApplyRules) else item
            small = shrink(backup.model(), lambda part: self._outcome(alone, part) is None)
            self._watch.leave_out(Problem(name, f"failed: {str(failure).removeprefix(f'optimization {name} failed: ')}", small))
            return self._guarded(item) if isinstance(item, ApplyRules) and name != item.name else False
        if changed and item.name != _RULES and self._watch.verifies_passes and self._changes_results(item, backup):
            self._put_back(backup, fired)
            return False
        return changed

    def _put_back(self, backup: _Backup, fired: Counter[str]) -> None:
        backup.restore(self._model)
        self._watch.report.fired.clear()
        self._watch.report.fired.update(fired)
        self._context.facts.clear()
        INFER_SHAPES.run(self._model, self._context)

    def _culprit(self, item: Pass, backup: _Backup, error: SardonyxError) -> tuple[str, SardonyxError]:
        """Return who is at fault, and the error that says so best."""
        name = self._watch.take_blamed()
        if item.name != _RULES or name:
            return name or item.name, error
        backup.restore(self._model)
        self._watch.after_firing = lambda: self._check(backup)
        try:
            self._attempt(item, backup)
        except SardonyxError as found:
            error = found
        self._watch.after_firing = None
        return self._watch.take_blamed() or item.name, error

    def _changes_results(self, item: Pass, backup: _Backup) -> bool:
        """Return whether a pass changed what the model computes; it is left out then."""
        if self._watch.run is None:
            return False
        event("optimize.compare", optimization=item.name)
        old, after = backup.model(), _Backup(self._model).model()
        found, reason = self._compare(item, old, after)
        if reason is not None:
            self._watch.report.unverified[item.name] = reason
        elif found is None:
            self._watch.report.verified[item.name] += 1
        else:
            small = shrink(old, lambda part: self._differs(item, part))
            self._watch.leave_out(Problem(item.name, f"changes results: it {found}", small, self._outcome(item, small) or after))
        return found is not None

    def _outcome(self, item: Pass, model: Model) -> Model | None:
        """Return what a pass makes of a model, which stays as it is; None where it fails."""
        after = _Backup(model).model()
        context = Context(self._context.evaluate)
        try:
            INFER_SHAPES.run(after, context)
            _run(item, after, context)
            _check_left(item, functools.partial(check_sound, after))
        except SardonyxError:
            return None
        return after

    def _differs(self, item: Pass, before: Model) -> bool:
        """Return whether a pass changes what a model computes."""
        after = self._outcome(item, before)
        return after is not None and self._compare(item, before, after)[0] is not None

    def _compare(self, item: Pass, before: Model, after: Model) -> tuple[str | None, str | None]:
        """Return how `after` differs from `before`, and why that could not be found out."""
        run = self._watch.run
        inputs = [value for value in before.graph.inputs if value.constant is None]
        reason = unsuitable(inputs)
        if reason is not None or run is None:
            return None, reason
        tolerance = getattr(item, "tolerance", _TOLERANCE)
        for feed in samples(inputs, zlib.crc32(item.name.encode()), overridable_values(before)):
            named: dict[str, Array] = {value.name: array for value, array in feed.items()}
            try:
                old: list[OnnxValue] = run(before, named)
            except SardonyxError as error:
                reason = str(error)
                continue
            return found_by_running(run, before, after, named, old, tolerance)
        return None, reason or "no random inputs were small enough"


class _Backup:
    """A model as it was."""

    def __init__(self, model: Model) -> None:
        self._copy = clone_model(model)

    def model(self) -> Model:
        """Return a model of its own that holds the copy."""
        return clone_model(self._copy)

    def restore(self, model: Model) -> None:
        """Make `model` what it was."""
        copy = self.model()
        model.graph, model.functions, model.opset_imports = copy.graph, copy.functions, copy.opset_imports

    def check_interface(self, model: Model) -> None:
        """Raise InvalidGraph where inputs or outputs are others than before."""
        before, now = _interface(self._copy.graph), _interface(model.graph)
        if now != before:
            raise InvalidGraph(f"inputs and outputs must stay {before}, found {now}")


def _run(item: Pass, model: Model, context: Context) -> bool:
    try:
        changed: object = item.run(model, context)
    except SardonyxError:
        raise
    except Exception as error:
        text = f"optimization {item.name} failed: {describe(error)}; disable it by its name"
        raise _named(OptimizationError(text), item.name) from error
    if not isinstance(changed, (bool, np.bool_)):
        raise _named(OptimizationError(f"run returned {changed!r:.80}, expected whether it changed anything"), item.name)
    return bool(changed)


def _check_left(item: Pass, check: Callable[[], None]) -> None:
    """Check what a pass left, which may be no model at all."""
    try:
        check()
    except SardonyxError:
        raise
    except Exception as error:
        text = f"it left what is no model: {describe(error)}; disable it by its name"
        raise _named(OptimizationError(text), item.name) from error


def _interface(graph: Graph) -> tuple[list[str], list[str]]:
    inputs = [f"{value.name}: {value.type} {value.shape or ''}".rstrip() for value in graph.inputs]
    return inputs, [f"{value.name}: {value.dtype or 'of unknown type'}" for value in graph.outputs]


def _nodes(model: Model) -> list[Node]:
    return [node for graph in all_graphs(model) for node in graph]


def _named(error: OptimizationError, name: str) -> OptimizationError:
    error.optimization = name
    return error
