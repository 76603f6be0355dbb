"""Options of sessions, with the names and defaults of onnxruntime's."""

from __future__ import annotations

import collections
import functools
import importlib
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from sardonyx.arguments import as_buffer, as_flag, as_index, as_list, as_mapping, as_pairs, as_path, as_text
from sardonyx.cancellation import Cancellation, Flag
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import Fail, InvalidArgument, ModelLoadCanceled, ModelLoadTimedOut
from sardonyx.forks import without_fork
from sardonyx.session.context.data import ContextOutput, ReadData
from sardonyx.session.enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from sardonyx.session.settings.config_entries import ConfigEntries

if TYPE_CHECKING:
    from sardonyx.custom_ops.definition import OperatorSource
    from sardonyx.custom_ops.library import CustomOpsLibrary
    from sardonyx.session.device_choice import ChooseDevices
    from sardonyx.values.hardware import OrtEpDevice, OrtExecutionProviderDevicePolicy

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "SessionOptions", "copied_options"]


class SessionOptions(ConfigEntries):
    """How a session is built and run; `docs/options.md` says what each property does."""

    __slots__ = (
        "_context_reader",
        "_custom_ops",
        "_device_choice",
        "_dimensions_by_denotation",
        "_dimensions_by_name",
        "_external_files",
        "_has_policy",
        "_initializers",
        "_load_flag",
        "_passes",
        "_placements",
        "_providers",
        "_rules",
        "context_output",
        "enable_cpu_mem_arena",
        "enable_mem_pattern",
        "enable_mem_reuse",
        "enable_profiling",
        "execution_mode",
        "execution_order",
        "graph_optimization_level",
        "inter_op_num_threads",
        "intra_op_num_threads",
        "load_timeout_ms",
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "optimized_model_filepath",
        "optimizer_failure",
        "placement",
        "placement_fall_through",
        "placement_file",
        "placement_profile",
        "profile_file_prefix",
        "provider_failure",
        "use_deterministic_compute",
        "use_per_session_threads",
        "verify",
    )

    def __init__(self) -> None:
        """Make options with onnxruntime's defaults."""
        super().__init__()
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.load_timeout_ms: float = 0
        """How many milliseconds making a session may take, 0 for any time; longer raises ModelLoadTimedOut, a TimeoutError."""
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.optimizer_failure = ""
        """What to do when a rule or pass fails: "error" (as where empty) raises, "skip" goes on without it."""
        self.placement = ""
        """How nodes get their providers: "priority" (as where empty) asks them in order, "measured" follows `placement_profile`."""
        self.placement_fall_through = False
        """Whether a placed node that its provider declines goes to the others."""
        self.placement_file = ""
        """A TOML file that says all of it; see `docs/how-to/place-operators.md`."""
        self.placement_profile = ""
        """A file that `sardonyx profile --placement` wrote."""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.provider_failure = ""
        """What to do when a provider fails: "error" (as where empty) raises, "skip" goes on without it."""
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self.verify = False
        """Whether each rewrite is compared on random inputs with what it replaces; one that changes results is left out."""
        self._dimensions_by_name: dict[str, int] = {}
        self._dimensions_by_denotation: dict[str, int] = {}
        self._device_choice: ChooseDevices | None = None
        self._has_policy = False
        self._initializers: dict[str, Any] = {}
        self._external_files: dict[str, Array] = {}
        self._load_flag = Flag()
        self._rules: list[object] = []
        self._passes: list[object] = []
        self._placements: list[str] = []
        self._providers: list[tuple[str, dict[str, str]]] = []
        self._custom_ops: list[OperatorSource] = []
        self._context_reader: tuple[ReadData | None, int] = None, 0
        self.context_output = ContextOutput()
        """Callbacks of a ModelCompiler, which sets it."""

    def copy(self) -> SessionOptions:
        """Return options that begin as these are, and may be changed by themselves."""
        made, assign = SessionOptions.__new__(SessionOptions), object.__setattr__  # checked when it was set
        collections.deque(map(assign, itertools.repeat(made), _FIELDS, _values_of(self)), maxlen=0)
        for name in (*_COLLECTIONS, "_providers"):
            assign(made, name, getattr(self, name).copy())
        return made

    def plain_values(self) -> tuple[object, ...] | None:
        """Return all that these options say of a session's settings, where this is numbers and texts; None where it is more.

        Options with config entries, or with what depends on the process or on a file, say more.
        """
        if any(_collections_of(self)) or self.placement_file or not self.use_per_session_threads:
            return None
        if self.execution_order != ExecutionOrder.DEFAULT or self.context_output != _NO_OUTPUT or self._context_reader != (None, 0):
            return None
        return _plain_values_of(self)

    @classmethod
    def of_plain_values(cls, values: tuple[object, ...]) -> SessionOptions:
        """Return options that say what `plain_values` returned of others."""
        made = cls()
        for name, value in zip(_PLAIN, values, strict=True):
            setattr(made, name, value)
        return made

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set a named text option, which `docs/options.md` lists; warns of one that has no effect.

        Raises:
            InvalidArgument: the key has no or over 1024 characters.
            TypeError: the key or the value is no text.
        """
        with without_fork():
            from sardonyx.session.settings.check import check_session_entry  # with the table of keys, which few need

        self._add(key, value, check_session_entry)

    def get_session_config_entry(self, key: str) -> str:
        """Return the text set under `key`; raises InvalidArgument where none was."""
        return self._get(key)

    @property
    def session_config_entries(self) -> dict[str, str]:
        """A copy of all named text options."""
        return dict(self._entries)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the symbolic dimension `name` to `size` in all inputs; a negative size leaves it open."""
        _override(self._dimensions_by_name, name, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix dimensions with this denotation, such as "DATA_BATCH", to `size` in all inputs; a negative size leaves them open."""
        _override(self._dimensions_by_denotation, denotation, size)

    @property
    def dimension_overrides(self) -> dict[str, int]:
        """Symbol name -> the size that it is fixed to."""
        return dict(self._dimensions_by_name)

    @property
    def denotation_overrides(self) -> dict[str, int]:
        """Denotation -> the size that it is fixed to."""
        return dict(self._dimensions_by_denotation)

    def set_load_cancellation_flag(self, is_cancel: bool) -> None:
        """Set whether sessions that are being made with these options, in any thread, end with ModelLoadCanceled."""
        self._load_flag.set(as_flag("is_cancel", is_cancel))

    def load_cancellation(self) -> Cancellation:
        """Return what may end a load that begins now."""
        timeout_ms = self.load_timeout_ms
        timed_out = functools.partial(_load_timed_out, timeout_ms) if timeout_ms else None
        return Cancellation(self._load_flag, _load_canceled, timeout_ms, timed_out)

    def add_initializer(self, name: str, value: OnnxValue) -> None:
        """Use `value` (an array, or what has a `numpy` method) for the initializer `name`; a second one is an InvalidArgument."""
        if self._initializers.setdefault(as_text("name", name), value) is not value:
            raise InvalidArgument(f"An OrtValue for this name has already been added: {name}; make other options for another value")

    def add_external_initializers(self, names: Iterable[str], values: Iterable[OnnxValue]) -> None:
        """Use `values` for the initializers `names`, one each; where the model has their data in files, these are not needed."""
        for name, value in as_pairs("names", names, "values", values):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(
        self, file_names: Sequence[str], buffers: Sequence[Any], lengths: Sequence[SupportsIndex]
    ) -> None:
        """Use memory in the place of files of external data.

        Args:
            file_names: their locations, as the model has them.
            buffers: their contents, in anything that has a buffer, which typing has no name for; they must not change while
                sessions are made of these options, and live.
            lengths: how many bytes of each buffer count.

        Raises:
            InvalidArgument: there are not as many of each, or a buffer is shorter than its length.
            TypeError: a buffer is none.
        """
        names, views, counts = as_list("file_names", file_names), as_list("buffers", buffers), as_list("lengths", lengths)
        if not len(names) == len(views) == len(counts):
            raise InvalidArgument(f"{len(names)} file_names, {len(views)} buffers and {len(counts)} lengths; give as many of each")
        for name, buffer, length in zip(names, views, counts, strict=True):
            view, count = as_buffer("buffers", buffer), as_index("lengths", length)
            if not view.c_contiguous or not 0 <= count <= view.nbytes:
                raise InvalidArgument(f"the buffer of {name!r} is dense and has at least {count} bytes, got {view.nbytes}")
            self._external_files[as_text("file_names", name)] = np.frombuffer(view.cast("B"), np.uint8, count)

    @property
    def external_files(self) -> dict[str, Array]:
        """Location of external data -> the content of that file, as uint8; the file is not read."""
        return dict(self._external_files)

    @property
    def initializers(self) -> dict[str, Array]:
        """Name -> the array that takes the place of the model's initializer."""
        return {name: value.numpy() if hasattr(value, "numpy") else value for name, value in self._initializers.items()}

    def add_rule(self, rule: object) -> None:
        """Run a rewrite rule of your own with the built-in ones; see `docs/how-to/write-a-rule.md`."""
        if not all(hasattr(rule, name) for name in ("name", "pattern", "replace", "check")):
            raise InvalidArgument(f"add_rule takes a sardonyx.optimize.rule.Rule, got {rule!r}")
        self._rules.append(rule)

    def add_pass(self, graph_pass: object) -> None:
        """Run a pass of your own after the built-in ones."""
        if not all(hasattr(graph_pass, name) for name in ("name", "run")):
            raise InvalidArgument(f"add_pass takes an object with a name and run(model, context), got {graph_pass!r}")
        self._passes.append(graph_pass)

    @property
    def rules(self) -> tuple[object, ...]:
        """The rules added, in order."""
        return tuple(self._rules)

    @property
    def passes(self) -> tuple[object, ...]:
        """The passes added, in order."""
        return tuple(self._passes)

    def add_operator(self, operator: OperatorSource) -> None:
        """Know an operator, such as `@sardonyx.op` makes of a function, in the sessions that get these options.

        Operators of the options come before those that are registered for the process or installed.

        Raises:
            InvalidArgument: it is no operator.
        """
        with without_fork():
            from sardonyx.custom_ops.registered import check_operator  # which few programs need

        check_operator(operator)
        self._custom_ops.append(operator)

    def register_custom_ops_library(self, library_path: str) -> None:
        """Load a compiled library of custom operators, for the sessions that get these options.

        Args:
            library_path: its file, made for ONNX Runtime's C interface.

        Raises:
            Fail: it is not there, cannot be loaded, or is no library of custom operators.
            SardonyxError: what the library says against it.
        """
        path = as_path("library_path", library_path)
        self._add_custom_ops(_library_module().load_library(path, self._entries))

    def register_custom_ops_using_function(self, address: int, name: str = "") -> None:
        """Call a RegisterCustomOps function by its address; `name` is what messages call its library.

        Raises:
            InvalidArgument: no code lies at the address.
            SardonyxError: what the library says against it.
        """
        number = as_index("address", address)
        self._add_custom_ops(_library_module().register_with(number, name or f"function at {number:#x}", self._entries))

    def add_custom_op_domain(self, domain: int, name: str = "") -> None:
        """Add an OrtCustomOpDomain by its handle, made by the OrtApi that `sardonyx.custom_ops.library.api_base` leads to.

        Raises:
            InvalidArgument: there is no such domain.
        """
        number = as_index("domain", domain)
        self._add_custom_ops(_library_module().library_of_domain(number, name or f"domain {number:#x}"))

    def enable_ort_custom_ops(self) -> None:
        """Register the operators of the package onnxruntime-extensions; raises Fail where it is not installed."""
        with without_fork():
            try:
                path = importlib.import_module("onnxruntime_extensions").get_library_path()
            except ImportError as error:
                raise Fail("onnxruntime-extensions is not installed: pip install onnxruntime-extensions") from error
        self.register_custom_ops_library(path)

    def _add_custom_ops(self, library: CustomOpsLibrary) -> None:
        self._entries.update(library.config)
        self._custom_ops.append(library)

    @property
    def custom_ops(self) -> tuple[OperatorSource, ...]:
        """What was registered of custom operators, in order: objects with `definitions`."""
        return tuple(self._custom_ops)

    def place(self, what: str, provider: str) -> None:
        """Place nodes on a provider: `what` is an operator ("Conv"), "node:NAME", an index ("7") or "annotation:TEXT"."""
        self._placements.append(f"{what}={provider}")

    @property
    def placements(self) -> tuple[str, ...]:
        """What `place` was told, as "WHAT=PROVIDER"."""
        return tuple(self._placements)

    def set_ep_context_data_read_func(self, read_func: ReadData, max_data_size: int) -> None:
        """Have a callback read what compiled models have in files beside them.

        Args:
            read_func: is called with a name and a buffer; it calls `allocate(size)` once, and `write(data, offset)`.
            max_data_size: how many bytes it may allocate.

        Raises:
            InvalidArgument: the size is not positive.
        """
        if not callable(read_func):
            raise TypeError(f"read_func is a function, got {read_func!r:.100}")
        if as_index("max_data_size", max_data_size) <= 0:
            raise InvalidArgument(f"max_data_size must be a number of bytes above 0, got {max_data_size!r}")
        self._context_reader = read_func, max_data_size

    def clear_ep_context_data_read_func(self) -> None:
        """Read files again."""
        self._context_reader = None, 0

    @property
    def context_data_reader(self) -> tuple[ReadData | None, int]:
        """The callback that reads in the place of files, None for none, and how many bytes it may give."""
        return self._context_reader

    def add_provider(self, name: str, options: dict[str, str] | None = None) -> None:
        """Add a provider after those added before; used where the session is given none.

        Raises:
            InvalidArgument: no provider of this build or of onnxruntime's has the name.
        """
        with without_fork():
            from sardonyx.session.providers import check_known  # which few sessions need

        check_known([as_text("name", name)])
        given = as_mapping("options", options or {})
        self._providers.append((name, {key: str(value) for key, value in given.items()}))

    def add_provider_for_devices(self, ep_devices: Sequence[OrtEpDevice], options: Mapping[str, object] | None = None) -> None:
        """Add the provider of devices, with its options; raises InvalidArgument where there are none, or they have several."""
        with without_fork():
            from sardonyx.session.device_choice import provider_of  # which few sessions need

        self.add_provider(*provider_of(as_list("ep_devices", ep_devices), as_mapping("options", options or {})))

    def set_provider_selection_policy(self, policy: OrtExecutionProviderDevicePolicy) -> None:
        """Accept a preference among kinds of devices, of which this build uses one; raises TypeError for what is none."""
        with without_fork():
            from sardonyx.values.hardware import OrtExecutionProviderDevicePolicy  # as above

        if not isinstance(policy, OrtExecutionProviderDevicePolicy):
            raise TypeError(f"a policy is an OrtExecutionProviderDevicePolicy, got {policy!r:.100}")
        self._has_policy = True

    def set_provider_selection_policy_delegate(self, delegate: ChooseDevices) -> None:
        """Have f(devices, model_metadata, runtime_metadata, max_selections) choose devices where a session names no providers."""
        if not callable(delegate):
            raise TypeError(f"set_provider_selection_policy_delegate takes a function, got {type(delegate).__name__}")
        self._device_choice = delegate

    @property
    def device_choice(self) -> ChooseDevices | None:
        """The function that chooses devices."""
        return self._device_choice

    def has_providers(self) -> bool:
        """Return whether a provider was added, or a policy or a function was set that chooses among devices."""
        return bool(self._providers) or self._has_policy or self._device_choice is not None

    @property
    def providers(self) -> tuple[tuple[str, dict[str, str]], ...]:
        """The providers added, each with its options, in order."""
        return tuple(self._providers)


def _load_canceled() -> ModelLoadCanceled:
    return ModelLoadCanceled("loading was cancelled: SessionOptions.set_load_cancellation_flag(True) was called")


_NO_OUTPUT = ContextOutput()
_COLLECTIONS = (
    "_custom_ops",
    "_dimensions_by_denotation",
    "_dimensions_by_name",
    "_entries",
    "_external_files",
    "_initializers",
    "_passes",
    "_placements",
    "_rules",
)
_ELSEWHERE = ("_providers", "_device_choice", "_has_policy", "_load_flag", "load_timeout_ms")
"""What providers and the load are asked for by, which is no part of the settings."""
_PLAIN = tuple(
    name
    for name in SessionOptions.__slots__
    if name not in (*_COLLECTIONS, *_ELSEWHERE, "_context_reader", "context_output", "execution_order", "placement_file")
)
"""The options that are numbers and texts."""
_FIELDS = (*SessionOptions.__slots__, "_entries")
_values_of: Callable[[SessionOptions], tuple[object, ...]] = operator.attrgetter(*_FIELDS)
_collections_of: Callable[[SessionOptions], tuple[object, ...]] = operator.attrgetter(*_COLLECTIONS)
_plain_values_of: Callable[[SessionOptions], tuple[object, ...]] = operator.attrgetter(*_PLAIN)


def _load_timed_out(timeout_ms: float) -> ModelLoadTimedOut:
    return ModelLoadTimedOut(f"loading was ended after {timeout_ms:g} ms, which is what SessionOptions.load_timeout_ms allows")


def _library_module() -> ModuleType:
    """Import what loads libraries, which few sessions need, and what makes sessions for them."""
    with without_fork():
        importlib.import_module("sardonyx.session.library_sessions")
        return importlib.import_module("sardonyx.custom_ops.library")


def _override(sizes: dict[str, int], name: str, size: SupportsIndex) -> None:
    number = as_index("size", size)
    if not -(2**63) <= number < 2**63:
        raise InvalidArgument(f"the size of {name!r} is a number of 64 bits, got {number}")
    sizes.pop(as_text("name", name), None)
    if number >= 0:
        sizes[name] = number


def copied_options(options: SessionOptions | None) -> SessionOptions:
    """Return a session's own options; raises TypeError for what are none."""
    if isinstance(options, SessionOptions):
        return options.copy()
    if options is not None:
        raise TypeError(f"sess_options is a SessionOptions or None, got {type(options).__name__}")
    return SessionOptions()
