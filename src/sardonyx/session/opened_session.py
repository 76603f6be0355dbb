"""`OpenedSession`: what a model that is opened computes and says, from any number of threads."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx.aside import writing_for_others
from sardonyx.cancellation import check_cancelled, raise_interrupt, reset_cancellation, set_cancellation
from sardonyx.config import runs_natively
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument, SardonyxError, lacks_memory, located
from sardonyx.forks import is_half_imported, without_fork
from sardonyx.logs import is_verbose, logging_as
from sardonyx.providers.cpu import provider as _cpu_provider  # noqa: F401  found by name, but nearly every session has it
from sardonyx.providers.reference import provider as _reference_provider  # noqa: F401  found by name, but the first session of a process imports it
from sardonyx.session.feeds import check_feeds, kept_names, make_sparse, own_results, select_outputs, with_inner_values
from sardonyx.session.format_options import with_options_of_format
from sardonyx.session.interface import SessionInterface
from sardonyx.session.memory.live import remember
from sardonyx.session.options import SessionOptions
from sardonyx.session.placement.cpu_fallback import check_placed
from sardonyx.session.provider_choice import choose_providers
from sardonyx.session.remaking import Arguments, RemadeSession
from sardonyx.session.run_options import RunOptions, asks_for_logs, severity_of
from sardonyx.session.runner import Runner
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.source import Source
from sardonyx.session.states import States
from sardonyx.session.targets import NO_TARGETS, checked_targets, store_result
from sardonyx.session.values import ModelMetadata, NodeArg, node_arg
from sardonyx.trace import observe, span

if TYPE_CHECKING:
    from sardonyx.optimize.fusion_report import FusionReport
    from sardonyx.optimize.report import Report
    from sardonyx.partition.explain import Placement
    from sardonyx.session.memory.report import MemoryReport, MemoryUse
    from sardonyx.session.native.run import KnownRuns
    from sardonyx.session.placement.assignment_info import OrtEpAssignedSubgraph
    from sardonyx.session.profiling.profiler import Profiler

__all__ = ["OpenedSession"]

_LEARNS_FROM_RUN = 2
"""Which run of a session begins to prepare native ones: what runs once only gains nothing by it."""

_AS_IT_IS = contextlib.nullcontext()


class OpenedSession(RemadeSession):
    """A model that is opened: run, described, measured."""

    _plain_runs = 0
    _native_runs: KnownRuns | None = None
    _native_run: Callable[..., list[OnnxValue]] | None = None

    def _open(self, given: OnnxValue, arguments: Arguments) -> None:
        options = with_options_of_format(given, arguments.options)
        settings = read_settings(options, arguments.disabled_optimizers)
        added = options.providers
        if options.device_choice is not None and arguments.providers is None and not added:
            with without_fork():
                from sardonyx.session.device_choice import chosen_by  # which few sessions need

            added = tuple(chosen_by(options.device_choice, given))
        try:
            chosen = choose_providers(arguments.providers, arguments.provider_options, added, settings)
        except SardonyxError as error:
            raise_interrupt(error)
            raise
        if settings.execution.affinities:
            with without_fork():
                from sardonyx.session.thread_affinity import pin_threads  # which few sessions need

            pin_threads(settings.execution.affinities)
        source = Source.of(given)
        profiler = self._begin_profile(source.given, settings.execution.profile_prefix)
        watching = contextlib.nullcontext() if profiler is None else observe(profiler.observe)
        token = set_cancellation(options.load_cancellation())
        try:
            check_cancelled()
            with logging_as(*settings.logs), watching, span("session.build"):
                runner = Runner(source, settings, chosen.providers, profiler)
        except MemoryError as error:
            raise lacks_memory("making a session", error) from error
        finally:
            reset_cancellation(token)
        built = runner.built
        check_placed(chosen.named, built.placements, forbidden=settings.placement.forbids_fallback)
        if self._native_runs is not None:
            self._native_runs.close()
        self._plain_runs, self._native_runs, self._native_run = 0, None, None
        self._arguments, self._settings, self._profiler, self._runner = arguments, settings, profiler, runner
        self._kept_model = None if runner.source is None else runner.source.given
        self._provider_options = chosen.options
        self._logs = settings.logs if is_verbose(settings.logs[0]) or settings.logs[1] else None
        self._label, self._input_values, self._defaults, self._recorder = built.label, built.inputs, built.defaults, built.recorder
        self._output_names = [argument.name for argument in built.declared]
        self._states = States.of(built.metadata.custom_metadata_map, self._output_names)
        self._native_run = None if self._states is None else self._states.run
        self._sparse_outputs = {index for index, argument in enumerate(built.declared) if argument.type.startswith("sparse_tensor")}
        self._declared = frozenset(self._output_names)
        remember(self)

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, OnnxValue], run_options: RunOptions | None = None
    ) -> list[OnnxValue]:
        """Compute outputs.

        Args:
            output_names: which outputs, in which order; all for None or an empty list. Other values of the model, as it was given,
                may be named too, also such that optimization removes: `get_intermediates` lists them. What is named is then
                computed by a model of its own that gives out just this, built when it is first asked for and kept.
            input_feed: input name -> array (or list, dict, None by the input's type).
            run_options: `terminate` ends the run from another thread, `timeout_ms` after a time; with
                `only_execute_path_to_fetches` nothing is computed but what is asked for, by a model of its own, which is built when
                it is first asked for.

        Returns:
            For each output an array (a list for a sequence, a dict for a map, None for an empty optional), the caller's own.

        Raises:
            TypeError: the names are no list, or the options no RunOptions.
            InvalidArgument: the feed or the names do not fit the model, or a value met on the way is wrong for its operator.
            RuntimeException, EPFail: a kernel or a provider failed.
            RunTerminated, RunTimedOut: the run options ended it.
        """
        if self._native_run is not None:
            return self._native_run(self, output_names, input_feed, run_options)
        return self._run_in_python(output_names, input_feed, run_options)

    def _run_in_python(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, OnnxValue], run_options: RunOptions | None
    ) -> list[OnnxValue]:
        """Run, and have later runs like this one made by machine code where they can be."""
        results = self.compute_values(output_names, input_feed, run_options)
        if run_options is None:
            self._learn(input_feed)
        return results

    def _learn(self, feed: Mapping[str, OnnxValue]) -> None:
        if self._states is not None:
            return
        count = self._plain_runs = self._plain_runs + 1
        if count == _LEARNS_FROM_RUN:
            self.known_runs()
        if self._native_runs is not None:
            self._native_run = self._native_runs.learn(feed, OpenedSession._run_in_python)

    def known_runs(self) -> KnownRuns | None:
        """Make what runs known shapes by machine code; None where the session's runs need Python."""
        if (
            not runs_natively()
            or self._sparse_outputs
            or self._logs is not None
            or self._recorder is not None
            or self._settings.placement.continue_on_error
        ):
            return None
        with without_fork():
            if is_half_imported("sardonyx.session.native.tail"):
                self._plain_runs = _LEARNS_FROM_RUN - 1  # a later run tries again
                return None
            from sardonyx.session.native.tail import runs_of  # who runs once does without it

        defaults = self._defaults if self._states is None else self._states.without(self._defaults)
        executor, inputs, is_recorded = self._runner.built.executor, self._input_values, self._profiler is not None
        self._native_runs = runs_of(executor, inputs, defaults, self._output_names, self._label, is_recorded=is_recorded)
        return self._native_runs

    def compute_all_values(self, feed: Mapping[str, OnnxValue]) -> list[OnnxValue]:
        """Compute all outputs from what is fed and defaults, without what the session keeps from run to run."""
        return self._compute(None, feed, None, None)

    def native_binding(self, feed: Mapping[str, OnnxValue], targets: Mapping[str, OnnxValue]) -> Callable[..., None] | None:
        """Return what computes a binding again without Python; None where nothing does."""
        self._learn(feed)
        if self._native_runs is None or self._states is not None:
            return None
        with without_fork():
            from sardonyx.session.native.binding import bind_natively  # loaded with the native runs

        return bind_natively(self._native_runs, self, feed, targets, SessionInterface.run_bound_in_python)

    def compute_values(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, OnnxValue],
        run_options: RunOptions | None,
        targets: Mapping[str, OnnxValue] | None = None,
    ) -> list[OnnxValue]:
        """Compute outputs as `run` does, in arrays of the caller's where `targets` names them.

        Args:
            output_names: as for `run`.
            input_feed: as for `run`.
            run_options: as for `run`.
            targets: output name -> the array that takes the result; it must have the result's type and shape.

        Returns:
            As `run` does; a target where there is one.

        Raises:
            InvalidArgument: a target does not fit, or as for `run`.
        """
        compute = self._compute if self._states is None else self._states.around(self._compute)
        try:
            if self._logs is None and (run_options is None or not asks_for_logs(run_options)):
                return compute(output_names, input_feed, run_options, targets)
            with self._logging(run_options), span("session.run", model=self._label):
                return compute(output_names, input_feed, run_options, targets)
        except MemoryError as error:
            raise lacks_memory(f"model {self._label}: a run", error) from error

    def _logging(self, run_options: RunOptions | None) -> contextlib.AbstractContextManager[None]:
        """Return what writes a run's messages: by its own options, else as its session does."""
        severity, logid = self._logs or (-1, "")
        if run_options is not None:
            severity = severity_of(run_options, severity)
            logid = run_options.logid or logid
        return logging_as(severity, logid)

    def _compute(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, OnnxValue],
        run_options: RunOptions | None,
        targets: Mapping[str, OnnxValue] | None,
    ) -> list[OnnxValue]:
        if run_options is not None and not isinstance(run_options, RunOptions):
            raise TypeError(f"model {self._label}: run_options is a RunOptions or None, got {type(run_options).__name__}")
        output_names = kept_names(output_names)
        start_ns = 0 if self._profiler is None else time.perf_counter_ns()
        inner = () if targets else with_inner_values(output_names, self._declared)
        wanted = [] if inner else select_outputs(output_names, self._output_names, self._label)
        if run_options is not None and run_options.adapters:
            with without_fork():
                from sardonyx.session.adapters import with_adapters  # which few runs need

            input_feed = with_adapters(input_feed, run_options.adapters)
        shrinks = run_options is not None and bool(run_options.run_config_entries) and self._shrinks_arenas(run_options)
        placed = checked_targets(targets, OpenedSession.get_outputs(self), self._label) if targets else NO_TARGETS
        only_wanted = run_options is not None and run_options.only_execute_path_to_fetches
        token = None if run_options is None else set_cancellation(run_options.cancellation())
        try:
            values = check_feeds(self._input_values, self._defaults, input_feed, self._label)
            if inner:
                results = self._runner.run_named(values, inner)
            else:
                with writing_for_others() if placed else _AS_IT_IS:
                    results = self._runner.run(values, wanted, only_wanted=only_wanted, targets=placed)
        except SardonyxError as error:
            raise_interrupt(error)
            raise located(error, f"model {self._label}") from error
        finally:
            if token is not None:
                reset_cancellation(token)
            if shrinks:
                self._trim(arenas_only=True)
            if self._profiler is not None:
                self._profiler.record("Session", "model_run", start_ns, time.perf_counter_ns(), {})
        if self._recorder is not None:
            self._recorder.record(values)
        if placed:
            pairs, names = zip(results, wanted, strict=True), self._output_names
            return [store_result(result, placed.get(index), values, names[index], self._label) for result, index in pairs]
        owned = own_results(results, values)
        if not self._sparse_outputs:
            return owned
        numbers = [self._output_names.index(name) if name in self._declared else -1 for name in inner] if inner else wanted
        return make_sparse(owned, [index in self._sparse_outputs for index in numbers])

    def _shrinks_arenas(self, run_options: RunOptions) -> bool:
        with without_fork():
            from sardonyx.session.memory.arenas import shrinks_arenas  # which few runs need
            from sardonyx.session.settings.keys import SHRINKAGE

        text = run_options.run_config_entries.get(SHRINKAGE.name, "")
        return shrinks_arenas(text, has_arenas=self._arguments.options.enable_cpu_mem_arena)

    def checked_feed(self, output_names: Sequence[str] | None, input_feed: Mapping[str, OnnxValue]) -> Mapping[str, OnnxValue]:
        """Return a feed as `run` takes it; raises InvalidArgument where it, or a name, does not fit the model.

        Names of values that are no outputs are checked by the run.
        """
        if not with_inner_values(output_names, self._declared):
            select_outputs(output_names, self._output_names, self._label)
        values = check_feeds(self._input_values, self._defaults, input_feed, self._label)
        return {value.name: checked for value, checked in zip(self._input_values, values, strict=True) if value.name in input_feed}

    def checked_input(self, name: str, value: OnnxValue) -> OnnxValue:
        """Return what `run` makes of a value fed to the input `name`; raises InvalidArgument where it does not fit."""
        wanted = [item for item in self._input_values if item.name == name]
        return check_feeds(wanted, {}, {name: value}, self._label)[0]

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that a feed must have."""
        return [node_arg(value) for value in self._input_values if value.name not in self._defaults]

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs, in order."""
        hidden = frozenset() if self._states is None else self._states.hidden
        return [argument for argument in self._runner.built.declared if argument.name not in hidden]

    def get_intermediates(self) -> list[NodeArg]:
        """Return the values between inputs and outputs that `run` computes by name, in the order of the nodes that make them.

        They are those of the main graph of the model as it was given; what a call of a model-local function makes inside is named
        after the call, "call/value". Types and shapes are inferred. The model is loaded again.

        Raises:
            InvalidArgument: the session cannot read its model again: it was given neither a path nor bytes, or more than a MiB of
                bytes, which it has not kept.
            Fail: a file of the model was changed since the session was made.
        """
        with without_fork():
            from sardonyx.session.intermediates import list_intermediates  # only who asks needs it

        if self._runner.source is None:
            raise InvalidArgument(f"model {self._label}: its values are listed from a path or bytes; give the session one of these")
        return list_intermediates(self._runner.source, self._settings)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the initializers that a feed may override."""
        return [node_arg(value) for value in self._input_values if value.name in self._defaults]

    def get_modelmeta(self) -> ModelMetadata:
        """Return the metadata of the model's file."""
        return self._runner.built.metadata

    def get_providers(self) -> list[str]:
        """Return the session's providers, in the order in which they are asked.

        Those that failed and were left out are not among them.
        """
        return [provider.name for provider in self._runner.built.providers.able]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the options of each provider, by name."""
        return {name: dict(options) for name, options in self._provider_options.items()}

    def get_session_options(self) -> SessionOptions:
        """Return the options that the session was made with."""
        return self._arguments.options

    @property
    def optimization_report(self) -> Report:
        """What the optimizer did: rules and how often they fired, times, and what was left out because it was wrong."""
        return self._runner.built.report()

    def explain(self) -> list[Placement]:
        """Return for each node of the optimized model who runs it, in which precision products, and why others do not run it."""
        return self._runner.built.explain()

    def explain_fusions(self, node: str) -> FusionReport:
        """Say of each rewrite rule how far it matched around a node, and why it stopped there; loads and optimizes the model again.

        Args:
            node: the name of a node of the model as it was given, or of a value that a node makes.

        Returns:
            What happened to the node, and the rules that matched it, the furthest first; text by `str`.

        Raises:
            InvalidArgument: nothing is named so, or the session cannot read its model again: it was given neither a path nor bytes,
                or more than a MiB of bytes, which it has not kept.
            Fail: a file of the model was changed since the session was made.
        """
        with without_fork():
            from sardonyx.session.fusions import explain_fusions  # only who asks needs it

        if self._runner.source is None:
            raise InvalidArgument(
                f"model {self._label}: fusions are explained from a path or bytes; give the session one of these, and a path where "
                "the model is large"
            )
        return explain_fusions(self._runner.source, self._settings, self._runner.built.providers, node)

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Return the partitions with their providers and nodes.

        The config entry session.record_ep_graph_assignment_info must be "1".
        """
        with without_fork():
            from sardonyx.session.placement.assignment_info import assignment_info  # only who asks needs it

        return assignment_info(self._runner.built.placements, recorded=self._settings.placement.records_assignment)

    def memory_report(self) -> MemoryReport:
        """Return how much memory the session takes: weights, packed weights, arenas, caches of shapes, machine code.

        `sardonyx.memory_report()` is the same for all sessions of the process.
        """
        with without_fork():
            from sardonyx.session.memory.live import memory_report_of  # only who asks needs it

        return memory_report_of(self)

    def memory_use(self) -> MemoryUse:
        """Return what the session keeps between runs, of which `memory_report` is made."""
        with without_fork():
            from sardonyx.session.memory.report import MemoryUse  # only who asks needs it

        source = self._runner.source
        given = None if source is None else source.given
        model_bytes = len(given) if isinstance(given, (bytes, bytearray)) else 0
        scratch_bytes = 0 if self._native_runs is None else self._native_runs.scratch_bytes
        return MemoryUse.of(self._label, self._runner.memory(), self._defaults.values(), model_bytes, scratch_bytes)

    def trim(self) -> int:
        """Give back memory that idle runs hold: arenas, and what is kept for known shapes; returns the bytes of the arenas.

        `sardonyx.trim()` does it for all sessions, and has the process's allocator give back what it keeps of freed memory.
        """
        return self._trim(arenas_only=False)

    def _trim(self, *, arenas_only: bool) -> int:
        return self._runner.trim(arenas_only=arenas_only) + (0 if self._native_runs is None else self._native_runs.trim())

    def end_profiling(self) -> str:
        """Write what was recorded since the session was made, as Chrome's trace events.

        Returns:
            The name of the file, `profile_file_prefix` with the time; "" where `enable_profiling` was not set, or the file is
            written already. A session that ends with nobody having called this writes it by itself.

        Raises:
            OSError: the file cannot be written.
        """
        return "" if self._profiler is None else self._profiler.end()

    def get_profiling_start_time_ns(self) -> int:
        """Return when recording began, in nanoseconds since the epoch; 0 where `enable_profiling` was not set."""
        return 0 if self._profiler is None else self._profiler.start_time_ns

    def _begin_profile(self, given: OnnxValue, prefix: str | None) -> Profiler | None:
        """Return what records the session, where its options ask for it; `given` is what the model comes from, of any kind."""
        if prefix is None:
            return None
        with without_fork():
            from sardonyx.session.profiling.profiler import Profiler  # which few need

        profiler = Profiler(prefix, "uri" if isinstance(given, (str, os.PathLike)) else "array")
        weakref.finalize(self, profiler.end_unasked)
        return profiler

    def __repr__(self) -> str:
        nodes = len(self._runner.built.placements)
        return f"<{type(self).__name__} {self._label}: {nodes} nodes on {', '.join(self.get_providers())}>"
