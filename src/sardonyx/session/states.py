"""What a model keeps from run to run: outputs of a run that are inputs of the next.

A model's metadata names them (`sardonyx.states`); the inputs have defaults, which are what they are in the first run. Runs of one
session that has such values wait for one another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.forks import new_lock, without_fork
from sardonyx.formats.tflite import STATES
from sardonyx.session.run_options import RunOptions

if TYPE_CHECKING:
    from sardonyx.session.native.run import KnownRuns

__all__ = ["States"]

Compute = Callable[
    [Sequence[str] | None, Mapping[str, OnnxValue], RunOptions | None, Mapping[str, OnnxValue] | None], list[OnnxValue]
]
"""Computes outputs, as `InferenceSession.compute_values` does."""


_LEARNS_FROM_RUN = 3
"""The first run has no states to feed, so that the third is the second of its kind."""


class Session(Protocol):
    """What the runs of a session with states need of it."""

    def compute_values(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, OnnxValue], run_options: RunOptions | None
    ) -> list[OnnxValue]:
        """Compute outputs with states."""

    def compute_all_values(self, feed: Mapping[str, OnnxValue]) -> list[OnnxValue]:
        """Compute all outputs from what is fed and defaults, without states."""

    def known_runs(self) -> KnownRuns | None:
        """Return what runs known shapes by machine code; None where nothing does."""


def _parsed(text: str) -> Any:
    """Return what JSON means, here lists of texts; of the form that importers write it is taken apart without a parser."""
    rows = [row.split('", "') for row in text[3:-3].split('"], ["')]
    again = "[" + ", ".join(['["' + '", "'.join(row) + '"]' for row in rows]) + "]"
    if again == text and "\\" not in text and not any('"' in name for row in rows for name in row):
        return rows
    with without_fork():
        import json  # which few sessions need

    return json.loads(text)


class States:
    """The values that a session keeps."""

    def __init__(self, triples: Sequence[Sequence[str]], outputs: Sequence[str]) -> None:
        """Take variables with their inputs and outputs, either of which may be "", and all outputs of the model."""
        self._inputs = {key: source for key, source, _ in triples if source}
        self._outputs = {key: target for key, _, target in triples if target}
        self.hidden = frozenset(self._outputs.values())
        """The outputs that are none of the user's."""
        self.visible = [name for name in outputs if name not in self.hidden]
        """The others."""
        places = {name: place for place, name in enumerate(outputs)}
        self._given_out = [places[name] for name in self.visible]
        self._kept = [places[name] for name in self._outputs.values() if name in places]
        self._lock = new_lock()
        self._values: dict[str, OnnxValue] = {}
        self._count = 0
        self._runs: KnownRuns | None = None
        self._native_run: Callable[..., list[OnnxValue]] | None = None

    @classmethod
    def of(cls, metadata: Mapping[str, str], outputs: Sequence[str]) -> Self | None:
        """Return the states that a model's metadata names; None where there are none."""
        text = metadata.get(STATES)
        if text is None:
            return None
        try:
            triples = _parsed(text)
            whole = [[str(name) for name in triple] for triple in triples if len(triple) == 3]
        except (ValueError, TypeError):
            return None
        return cls(whole, outputs) if whole else None

    def around(self, compute: Compute) -> Compute:
        """Return what computes outputs as `compute` does, with the values of the run before, and keeps those of this run."""

        def run(
            output_names: Sequence[str] | None,
            feed: Mapping[str, OnnxValue],
            options: RunOptions | None,
            targets: Mapping[str, OnnxValue] | None,
        ) -> list[OnnxValue]:
            names = list(output_names) if output_names else self.visible
            with self._lock:
                kept = {self._inputs[key]: value for key, value in self._values.items() if key in self._inputs}
                results = compute([*names, *self._outputs.values()], {**kept, **feed}, options, targets)
                self._values.update(zip(self._outputs, results[len(names) :], strict=True))
            return results[: len(names)]

        return run

    def run(
        self,
        session: Session,
        output_names: Sequence[str] | None,
        feed: Mapping[str, OnnxValue],
        options: RunOptions | None,
    ) -> list[OnnxValue]:
        """Compute outputs as `InferenceSession.run` does; by machine code where all are asked for and the shapes are known."""
        if output_names or options is not None:
            return session.compute_values(output_names, feed, options)
        with self._lock:
            whole = {self._inputs[key]: value for key, value in self._values.items() if key in self._inputs}
            whole.update(feed)
            run = self._run_in_python if self._native_run is None else self._native_run
            results = run(session, None, whole, None)
            for key, place in zip(self._outputs, self._kept, strict=True):
                self._values[key] = results[place]
        return [results[place] for place in self._given_out]

    def _run_in_python(
        self, session: Session, output_names: Sequence[str] | None, feed: Mapping[str, OnnxValue], options: RunOptions | None
    ) -> list[OnnxValue]:
        results = session.compute_all_values(feed)
        self._count += 1
        if self._count == _LEARNS_FROM_RUN:
            self._runs = session.known_runs()
        if self._runs is not None:
            self._native_run = self._runs.learn(feed, self._run_in_python)
        return results

    def without(self, defaults: Mapping[str, Array]) -> dict[str, Array]:
        """Return the defaults of inputs that are no states."""
        states = frozenset(self._inputs.values())
        return {name: array for name, array in defaults.items() if name not in states}

    def share(self, other: States) -> None:
        """Keep the values that `other` keeps, in the same place."""
        self._values, self._lock = other._values, other._lock

    def reset(self) -> None:
        """Let the next run begin as the first one did."""
        with self._lock:
            self._values.clear()
