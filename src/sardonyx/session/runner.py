"""Runs of one model, with what is built again when a run asks for it.

A run may need a variant: one of the values that it wants only, which need not be outputs, or one in which dimensions of one name
may differ. Where the settings allow it, a provider that fails in a run is left out from then on. Both read the model again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx.cancellation import raise_interrupt
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument, SardonyxError, SizesNotInferred, explained
from sardonyx.forks import new_lock
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.executor_memory import ExecutorMemory, joined
from sardonyx.session.build import build
from sardonyx.session.built import Built
from sardonyx.session.feeds import SharedSymbols, unknown_output
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.stages.source import Source
from sardonyx.session.targets import NO_TARGETS, fillable_targets
from sardonyx.session.variant import Variant
from sardonyx.trace import event

if TYPE_CHECKING:
    from sardonyx.session.profiling.profiler import Profiler

__all__ = ["Runner"]

_MOST_VARIANTS = 8
"""How many builds of its model a session keeps, besides the one of all outputs."""


class Runner:
    """A model that is built, and its variants; any number of threads may run it at a time."""

    def __init__(self, source: Source, settings: Settings, providers: ProviderList, profiler: Profiler | None = None) -> None:
        """Build the model; raises SardonyxError where that fails.

        Args:
            source: where the model comes from; it is kept only where it may be needed again.
            settings: of the session.
            providers: of the session.
            profiler: records steps, where the settings ask for it.
        """
        self.built: Built = build(source, settings, providers, profiler=profiler)
        """What is run now; another after a provider was left out."""
        self._settings, self._profiler = settings, profiler
        self._symbols = SharedSymbols(self.built.inputs)
        has_variants = len(self.built.declared) > 1 or self._symbols.are_shared
        again = source.after(self.built.stamps)
        self.source = again.kept(for_variants=has_variants, for_failures=settings.placement.continue_on_error)
        """What the model can be read from again, or None."""
        self._lock = new_lock()
        self._variants: dict[Variant, Built] = {}

    def run(
        self, values: list[OnnxValue], wanted: Sequence[int], *, only_wanted: bool, targets: Mapping[int, OnnxValue] = NO_TARGETS
    ) -> list[OnnxValue]:
        """Compute outputs.

        Args:
            values: checked, one for each input.
            wanted: the numbers of the outputs to return, in this order.
            only_wanted: whether nothing is to be computed but what they need.
            targets: output number -> an array that its result may be computed in.

        Raises:
            SardonyxError: a kernel or a provider failed, or the run was terminated.
        """
        part = self._part_of(wanted) if only_wanted else None
        outputs = range(len(self.built.declared)) if part is None else part
        names = None if part is None else tuple(self.built.declared[index].name for index in part)
        results = self._execute(values, names, [targets.get(index) for index in outputs] if targets else ())
        return [results[index if part is None else part.index(index)] for index in wanted]

    def run_named(self, values: list[OnnxValue], names: Sequence[str]) -> list[OnnxValue]:
        """Compute values of the model by name, also such that are no outputs, by a variant that gives out these only.

        Args:
            values: checked, one for each input.
            names: of values of the model as it was given; its outputs among them are computed by the variant too.

        Raises:
            InvalidArgument: no value is called so, or the model cannot be read again.
            SardonyxError: a kernel or a provider failed, or the run was terminated.
        """
        unique = tuple(dict.fromkeys(names))
        if self.source is None:
            raise InvalidArgument(
                f"{unknown_output(next(iter(self._not_declared(unique))), self._declared_names)}; other values of the model are "
                "computed by name where it can be read again: give the session a path, or bytes of at most a MiB"
            )
        results = dict(zip(unique, self._execute(values, unique, ()), strict=True))
        return [results[name] for name in names]

    def trim(self, *, arenas_only: bool = False) -> int:
        """Give back memory that idle runs hold: arenas, and bindings unless told otherwise; returns the bytes of the arenas."""
        return sum(executor.trim(arenas_only=arenas_only) for executor in self._executors)

    def memory(self) -> ExecutorMemory:
        """Return what is kept between runs, with that of variants."""
        return joined(executor.memory() for executor in self._executors)

    @property
    def _executors(self) -> list[Executor]:
        """All that runs a graph of the model, that of all outputs first."""
        built = [self.built, *list(self._variants.values())]
        return [executor for each in built for executor in (each.executor, *each.bodies)]

    @property
    def _declared_names(self) -> list[str]:
        return [argument.name for argument in self.built.declared]

    def _not_declared(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name not in self._declared_names]

    def _part_of(self, wanted: Sequence[int]) -> tuple[int, ...] | None:
        """Return the outputs that are to be computed; None for all."""
        part = tuple(sorted(set(wanted)))
        return part if len(part) < len(self.built.declared) and self.source is not None else None

    def _execute(self, values: list[OnnxValue], names: tuple[str, ...] | None, targets: Sequence[OnnxValue]) -> list[OnnxValue]:
        """Run the plan of all outputs, or of `names`; where the settings allow it, without a provider that fails, from now on."""
        has_zero_sizes = False
        while True:
            known = self.built.providers.excluded
            try:
                executor = self._executor_for(values, names, has_zero_sizes=has_zero_sizes)
                return executor.run(values, (), fillable_targets(targets, values, executor.shares) if targets else ())
            except SardonyxError as error:
                raise_interrupt(error)
                if isinstance(error, SizesNotInferred) and self.source is not None and not has_zero_sizes:
                    has_zero_sizes = True
                elif error.provider in known or not self._leave_out(error):
                    contradiction = self._symbols.contradiction(values) if isinstance(error, InvalidArgument) else None
                    if contradiction is None:
                        raise
                    raise explained(error, contradiction) from error

    def _leave_out(self, error: SardonyxError) -> bool:
        """Build anew without the provider that failed; whether that is asked for and possible."""
        name, providers = error.provider, self.built.providers
        if not self._settings.placement.continue_on_error or self.source is None or name not in providers.names[:-1]:
            return False
        with self._lock:
            if name not in self.built.providers.excluded:
                fewer = self.built.providers.without(name, str(error))
                self.built = build(self.source, self._settings, fewer, profiler=self._profiler)
                self._variants.clear()
        return True

    def _executor_for(self, values: list[OnnxValue], names: tuple[str, ...] | None, *, has_zero_sizes: bool) -> Executor:
        """Return the executor, or one that is built when first needed.

        There is one for feeds that give one symbol two sizes, which some exporters' models need, one for runs in which sizes are 0
        that nothing was inferred for, and one for each set of values that a run asks for.
        """
        holds = self._symbols.hold(values)
        if holds and names is None and not has_zero_sizes:
            return self.built.executor
        wanted = Variant(holds, names, has_zero_sizes)
        with self._lock:
            built = self._variants.get(wanted)
            if built is None:
                built = self._variants[wanted] = self._built(wanted)
                if len(self._variants) > _MOST_VARIANTS:
                    self._variants.pop(next(iter(self._variants)), None)
            return built.executor

    def _built(self, variant: Variant) -> Built:
        if self.source is None:
            raise InvalidArgument(
                f"model {self.built.label}: the feed gives one symbolic dimension two sizes; give the session a path or bytes, "
                "which it can load again without symbols"
            )
        if not variant.symbols_hold:
            event("session.symbols_differ", model=self.built.label)
        return build(self.source, self._settings, self.built.providers, variant, profiler=self._profiler)
