"""`InferenceSession`: a model, built once, run from any number of threads."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from sardonyx.errors import InvalidArgument, SardonyxError, located
from sardonyx.forks import new_lock, without_fork
from sardonyx.provider import reset_cancellation, set_cancellation
from sardonyx.session.feeds import SharedSymbols, check_feeds, own_results, select_outputs
from sardonyx.session.options import RunOptions, SessionOptions
from sardonyx.session.providers import REFERENCE, ProviderRequest, make_providers
from sardonyx.session.values import ModelMetadata, NodeArg, metadata_of, node_arg
from sardonyx.trace import event, span

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sardonyx.optimize.fusion_report import FusionReport
    from sardonyx.optimize.report import Report
    from sardonyx.partition.explain import Placement
    from sardonyx.runtime.executor import Executor
    from sardonyx.session.placement.assignment_info import OrtEpAssignedSubgraph

__all__ = ["InferenceSession"]

Callback: TypeAlias = Callable[[list[Any], Any, str], Any]
"""f(results, user_data, error) of `run_async`; results and user data are Any by their kinds."""
_MOST_VARIANTS = 8
"""How many builds of its model a session keeps, besides the one of all outputs."""


class InferenceSession:
    """A model ready to run; the interface of onnxruntime's InferenceSession."""

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str] | Any,
        sess_options: SessionOptions | None = None,
        providers: Sequence[ProviderRequest] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        disabled_optimizers: Iterable[str] | None = None,
        verify: bool = False,
        **unknown: Any,
    ) -> None:
        """Load, optimize, partition and compile a model.

        Args:
            path_or_bytes: a path, the bytes of a file, a file object, or a ModelProto (Any: `onnx` is not imported here).
            sess_options: how to build and run; defaults where None. They are copied: later changes have no effect.
            providers: names, (name, options) pairs or provider objects, in the order of priority; the built-in ones where None.
            provider_options: options for each of `providers`.
            disabled_optimizers: names of rules and passes that are not to run, ours or onnxruntime's.
            verify: compare each rewrite with what it replaces, as `SessionOptions.verify` does.
            unknown: arguments that this class does not have are refused by name.

        Raises:
            NoSuchFile, InvalidProtobuf, InvalidGraph: the model cannot be loaded.
            NotImplemented: no provider runs a node of it.
            InvalidArgument: an option is wrong.
            EPFail: a provider failed to compile its part.
        """
        # half of the package: `import sardonyx` stays fast without it
        with without_fork():
            from sardonyx.optimize.names import own_names
            from sardonyx.session.build import build, goes_on_without_providers, readable_twice
            from sardonyx.session.execution import thread_count
            from sardonyx.session.placement.cpu_fallback import check_named, check_placed
            from sardonyx.session.placement.options import read_placement, wanted_providers

        for name in unknown:
            if name not in ("enable_fallback", "read_config_from_model"):
                raise InvalidArgument(f"InferenceSession takes no argument {name!r}")
        self._options = SessionOptions() if sess_options is None else sess_options.copy()
        self._options.verify = self._options.verify or verify
        order = read_placement(self._options).order
        requests = wanted_providers(providers, provider_options, self._options)
        threads = thread_count(self._options, "intra_op")
        if threads:
            for name, own, _ in requests:
                if name == "CPUExecutionProvider":
                    own.setdefault("intra_op_num_threads", str(threads))
        is_named = providers is not None or self._options.has_providers() or bool(order)
        explicit = {name for name, _, _ in requests} if is_named else set()
        check_named(self._options, explicit)
        self._goes_on = goes_on_without_providers(self._options)
        failed: dict[str, str] = {}
        made = make_providers(requests, failed if self._goes_on else None)
        disabled = own_names(disabled_optimizers or ())
        source = readable_twice(path_or_bytes) if self._goes_on else path_or_bytes
        with span("session.build"):
            built = build(source, self._options, made, disabled, left_out=failed)
        check_placed(self._options, explicit, built.placements)
        self._label = built.model.label
        self._executor = built.executor
        self._defaults = built.defaults
        self._input_values = built.inputs
        self._symbols = SharedSymbols(built.inputs)
        can_load_again = self._goes_on or isinstance(source, (str, bytes, os.PathLike))
        self._rebuild = (
            functools.partial(build, source, self._options, made, disabled, stamps=built.model.stamps) if can_load_again else None
        )
        self._disabled, self._made, self._stamps = disabled, made, built.model.stamps
        self._source = source if can_load_again else None
        self._left_out = dict(built.left_out)
        self._recorder = built.recorder
        self._lock = new_lock()
        self._variants: dict[tuple[bool, tuple[int, ...] | None], Executor] = {}
        self._output_names = [argument.name for argument in built.declared]
        self._inputs = [node_arg(value) for value in built.inputs if value.name not in built.defaults]
        self._overridable = [node_arg(value) for value in built.inputs if value.name in built.defaults]
        self._outputs = list(built.declared)
        self._metadata = metadata_of(built.model)
        self._placements = built.placements
        self._report = built.report
        options_by_name = {name: options for name, options, _ in requests}
        self._provider_options = {provider.name: options_by_name.get(provider.name, {}) for provider in made}

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Any]:
        """Compute outputs.

        Args:
            output_names: which outputs, in which order; all for None or an empty list.
            input_feed: input name -> array (or list, dict, None by the input's type).
            run_options: `terminate` ends the run from another thread; with `only_execute_path_to_fetches` nothing is computed but
                what is asked for, by a model of its own, which is built when it is first asked for.

        Returns:
            For each output an array (a list for a sequence, a dict for a map, None for an empty optional), the caller's own.

        Raises:
            InvalidArgument: the feed or the names do not fit the model, or a value met on the way is wrong for its operator.
            RuntimeException, EPFail: a kernel or a provider failed.
            Fail: the run was terminated.
        """
        wanted = select_outputs(output_names, self._output_names, self._label)
        values = check_feeds(self._input_values, self._defaults, input_feed, self._label)
        token = set_cancellation(lambda: run_options.terminate) if run_options is not None else None
        try:
            part = self._part_of(wanted) if run_options is not None and run_options.only_execute_path_to_fetches else None
            results = self._execute(values, part)
        except SardonyxError as error:
            raise located(error, f"model {self._label}") from error
        finally:
            if token is not None:
                reset_cancellation(token)
        if self._recorder is not None:
            self._recorder.record(values)
        chosen = wanted if part is None else [part.index(index) for index in wanted]
        return own_results([results[index] for index in chosen], values)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callback,
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Compute outputs on a thread of its own, and return at once.

        Args:
            output_names: as for `run`.
            input_feed: as for `run`; the arrays must not change before `callback` is called.
            callback: f(results, user_data, error), called when all is done: with the outputs and "", or none and what went wrong.
            user_data: handed to `callback`.
            run_options: as for `run`.
        """
        with without_fork():
            from concurrent.futures import ThreadPoolExecutor  # which few need

        pool = ThreadPoolExecutor(1)
        done = pool.submit(self.run, output_names, input_feed, run_options)
        done.add_done_callback(functools.partial(_hand_over, callback, user_data))
        pool.shutdown(wait=False)

    def _part_of(self, wanted: Sequence[int]) -> tuple[int, ...] | None:
        """The outputs that are to be computed; None for all."""
        part = tuple(sorted(set(wanted)))
        return part if len(part) < len(self._output_names) and self._rebuild is not None else None

    def _execute(self, values: list[Any], part: tuple[int, ...] | None) -> list[Any]:
        """Run the plan; where the options allow it, without a provider that fails, now and from now on."""
        while True:
            known = self._left_out
            try:
                return self._executor_for(values, part).run(values)
            except SardonyxError as error:
                if error.provider in known or not self._leave_out(error):
                    raise

    def _leave_out(self, error: SardonyxError) -> bool:
        """Build anew without the provider that failed; whether that is asked for and possible."""
        name = error.provider
        if not self._goes_on or self._rebuild is None or name not in self._provider_options or name == REFERENCE:
            return False
        with self._lock:
            if name not in self._left_out:
                event("provider.left_out", provider=name, error=str(error))
                built = self._rebuild(left_out={**self._left_out, name: str(error)})
                self._left_out = dict(built.left_out)
                self._executor, self._placements = built.executor, built.placements
                self._variants.clear()
        return True

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a feed must have."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in order."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The initializers that a feed may override."""
        return list(self._overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """What the model's file says about itself."""
        return self._metadata

    def get_providers(self) -> list[str]:
        """The session's providers, in the order in which they are asked; those that failed and were left out are not among them."""
        return [name for name in self._provider_options if name not in self._left_out]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Provider -> its options."""
        return {name: dict(options) for name, options in self._provider_options.items()}

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    @property
    def optimization_report(self) -> Report:
        """What the optimizer did: rules and how often they fired, times, and what was left out because it was wrong."""
        return self._report

    def explain(self) -> list[Placement]:
        """For each node of the optimized model who runs it, and why those asked before do not."""
        return list(self._placements)

    def explain_fusions(self, node: str) -> FusionReport:
        """Say of each rewrite rule how far it matched around a node, and why it stopped there; loads and optimizes the model again.

        Args:
            node: the name of a node of the model as it was given, or of a value that a node makes.

        Returns:
            What happened to the node, and the rules that matched it, the furthest first; text by `str`.

        Raises:
            InvalidArgument: nothing is named so, or the session was given neither a path nor bytes.
            Fail: a file of the model was changed since the session was made.
        """
        with without_fork():
            from sardonyx.session.fusions import explain_fusions  # only who asks needs it

        if self._source is None:
            raise InvalidArgument(f"model {self._label}: fusions are explained from a path or bytes; give the session one of these")
        able = [provider for provider in self._made if provider.name not in self._left_out]
        return explain_fusions(self._source, self._options, able, self._disabled, node, self._stamps)

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """The partitions with their providers and nodes; the config entry session.record_ep_graph_assignment_info must be "1"."""
        with without_fork():
            from sardonyx.session.placement.assignment_info import assignment_info  # only who asks needs it

        return assignment_info(self._placements, self._options.session_config_entries)

    def _executor_for(self, values: list[Any], part: tuple[int, ...] | None) -> Executor:
        """The executor, or one that is built when first needed.

        There is one for feeds that give one symbol two sizes, which some exporters' models need, and one for each set of outputs.
        """
        symbols_hold = self._symbols.hold(values)
        if symbols_hold and part is None:
            return self._executor
        with self._lock:
            if (symbols_hold, part) not in self._variants:
                self._variants[symbols_hold, part] = self._variant(symbols_hold, part)
                if len(self._variants) > _MOST_VARIANTS:
                    del self._variants[next(iter(self._variants))]
            return self._variants[symbols_hold, part]

    def _variant(self, symbols_hold: bool, part: tuple[int, ...] | None) -> Executor:
        with without_fork():
            from sardonyx.session.variant import Variant  # with all that building needs

        if self._rebuild is None:
            raise InvalidArgument(
                f"model {self._label}: the feed gives one symbolic dimension two sizes; give the session a path or bytes, "
                "which it can load again without symbols"
            )
        if not symbols_hold:
            event("session.symbols_differ", model=self._label)
        names = None if part is None else [self._output_names[index] for index in part]
        return self._rebuild(variant=Variant(symbols_hold, names), left_out=self._left_out).executor

    def trim(self) -> int:
        """Give back memory that idle runs hold: arenas and bindings; returns the bytes of the arenas."""
        return sum(executor.trim() for executor in (self._executor, *list(self._variants.values())))

    def __repr__(self) -> str:
        return f"<InferenceSession {self._label}: {len(self._placements)} nodes on {', '.join(self.get_providers())}>"


def _hand_over(callback: Callback, user_data: Any, done: Future[list[Any]]) -> None:
    """Call back with what a run that is done gave."""
    error = done.exception()
    callback([] if error is not None else done.result(), user_data, "" if error is None else str(error))
