"""What the options of a session say, parsed once: `read_settings` makes of them the values that the stages take."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.run.processors import available_processors
from sardonyx.config import num_threads
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.formats.external_data import InMemory
from sardonyx.partition.pins import Pins, parse_pins
from sardonyx.process import check_own_threads, global_thread_counts
from sardonyx.session.context.data import ContextOutput, ReadData
from sardonyx.session.enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from sardonyx.session.options import SessionOptions
from sardonyx.session.settings import keys
from sardonyx.session.settings.check import warn_of_order
from sardonyx.session.settings.grammar import Limit
from sardonyx.session.settings.placement_file import MODES, PlacementFile, hint, read_placement_file

__all__ = [
    "ContextSettings",
    "ExecutionSettings",
    "LoadSettings",
    "MemorySettings",
    "OptimizeSettings",
    "PlacementSettings",
    "SaveSettings",
    "Settings",
    "read_settings",
]


_FATAL = 4
"""The highest severity of messages."""


@dataclasses.dataclass(frozen=True, slots=True)
class LoadSettings:
    """How a model is read."""

    external_folder: str | None
    """The folder of external data; None for beside the model."""
    initializers: Mapping[str, Array]
    """Initializer -> the array that takes its place."""
    dimensions: Mapping[str, int]
    """Symbol of inputs -> the size that it is fixed to."""
    denotations: Mapping[str, int]
    """Denotation of dimensions -> the size that they are fixed to."""
    is_strict: bool = False
    """Whether declared shapes that contradict the inferred ones are errors."""
    external_files: Mapping[str, Array] = dataclasses.field(default_factory=dict)
    """Location of external data -> the content of that file, which is not read."""

    def in_memory(self) -> InMemory:
        """Return the external data that the session was given."""
        dense = {name: np.ascontiguousarray(array) for name, array in self.initializers.items()}
        tensors = {name: array.reshape(-1).view(np.uint8).data for name, array in dense.items() if not array.dtype.hasobject}
        return InMemory({name: content.data for name, content in self.external_files.items()}, tensors)


@dataclasses.dataclass(frozen=True, slots=True)
class OptimizeSettings:
    """How a model is optimized."""

    level: int
    """How far: a GraphOptimizationLevel."""
    disabled: frozenset[str]
    """Rules and passes to leave out."""
    loops: int
    """How often levels repeat: 0, 1 or 2, as `optimize` takes it."""
    fold_bytes: int | None
    """The largest constant that folding makes; None for the default."""
    fold_seconds: float | None
    """How long folding may compute; None for the default."""
    verify: bool
    """Whether each rewrite is compared with what it replaces."""
    verify_folder: str
    """Where models that show a problem are saved; "" for nowhere."""
    continue_on_error: bool
    """Whether to go on without a rule or pass that fails."""
    entries: Mapping[str, str]
    """All config entries: rules and passes, those of packages included, name the ones that they ask for."""
    rules: tuple[object, ...]
    """Rules of the user's."""
    passes: tuple[object, ...]
    """Passes of the user's."""
    keeps_calls: bool
    """Whether calls of model-local functions are offered before they are inlined, whoever claims them."""
    keeps_narrow_floats: bool
    """Whether float16 and bfloat16 stay where no provider has a kernel for them."""


@dataclasses.dataclass(frozen=True, slots=True)
class SaveSettings:
    """Where the optimized model goes."""

    path: str = ""
    """Its file; "" for nowhere."""
    format: str = ""
    """The format; "" to decide by the suffix of the path."""
    data_name: str = ""
    """The file beside it for its weights; "" to decide by size."""
    data_least_bytes: int = 0
    """The least size of a weight in that file."""
    notes_providers: bool = False
    """Whether its nodes note which providers can run them."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlacementSettings:
    """How nodes get their providers."""

    measured: bool = False
    """Whether a profile decides what the user leaves open; else the order of the providers does."""
    profile: str = ""
    """The profile's file."""
    order: tuple[str, ...] = ()
    """Providers in the order in which they are asked, with or without "ExecutionProvider"; empty for the session's own."""
    pins: Pins = dataclasses.field(default_factory=Pins)
    """What is placed by hand."""
    layers_by_annotation: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Annotation of nodes -> device; `layer_assignment.py` finds its provider."""
    layers_by_name: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Part of the names of nodes -> device."""
    streams_file: str = ""
    """A file of nodes that are one stream; "" for none."""
    forbids_fallback: bool = False
    """Whether each node must run on a provider that the session names."""
    records_assignment: bool = False
    """Whether `get_provider_graph_assignment_info` may be called."""
    continue_on_error: bool = False
    """Whether the session goes on without a provider that fails."""
    layout_folder: str | None = None
    """Where the steps of layout conversions are written; None for nowhere."""


@dataclasses.dataclass(frozen=True, slots=True)
class MemorySettings:
    """How much memory providers may take."""

    limits: tuple[tuple[str, Limit], ...] = ()
    """Provider and limit; of two for one provider the later counts."""
    cuda: Limit | None = None
    """The limit of CUDAExecutionProvider, where the session has it."""
    shapes: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    """Input -> the shape by which memory is estimated."""
    stats_name: str = ""
    """The file to which runs write what nodes need; "" for none."""


@dataclasses.dataclass(frozen=True, slots=True)
class ExecutionSettings:
    """How a session runs."""

    executor: str = "sequential"
    """One of EXECUTORS, or the name of an installed one."""
    intra_op_threads: int = 0
    """Threads of one provider; 0 leaves the number open."""
    inter_op_threads: int = 0
    """Threads of the parallel executor; 0 leaves the number open."""
    flushes_denormals: bool = False
    """Whether kernels compute with zeros for denormal numbers."""
    float32_precision: str = ""
    """What operands of products may be rounded to: highest, high or medium; "" leaves it open."""
    affinities: tuple[frozenset[int], ...] = ()
    """Processors, from 0 on, of each thread that helps the calling one; empty for any."""
    shares_arenas: bool = False
    """Whether arenas of the host come from the allocator that was registered for the process."""
    profile_prefix: str | None = None
    """What the name of the file begins with in which runs are recorded; None where they are not."""


@dataclasses.dataclass(frozen=True, slots=True)
class ContextSettings:
    """How compiled models are written and loaded."""

    writes: bool = False
    """Whether a compiled model is written."""
    path: str = ""
    """Where it goes; "" for beside the model. Of a compiled model from memory: a path beside which its files are."""
    embeds: bool = False
    """Whether programs go into the model."""
    prefix: str = ""
    """What the names of its nodes begin with."""
    data_name: str = ""
    """The file beside it for the weights of other nodes; "" for the model itself."""
    data_least_bytes: int = 1024
    """The least size of a weight in that file."""
    source: str = ""
    """The model that a compiled one has left its weights in; "" for the one that it names."""
    shares: bool = False
    """Whether sessions share a file of programs."""
    stops_sharing: bool = False
    """Whether later sessions do not share this one's file."""
    leaves_out_weights: bool = False
    """Whether weights stay in the model that is compiled."""
    is_trusted: bool = False
    """Whether machine code that this user's own sessions did not write is loaded."""
    checks_weights: bool = False
    """Whether all elements of weights are copied and compared, not samples of those that stay in a mapped file."""
    forbids_compiling: bool = False
    """Whether every partition must be compiled already."""
    fails_on_suboptimal: bool = False
    """Whether programs that were compiled for a lower processor are refused."""
    read_data: ReadData | None = None
    """A callback that reads in the place of files."""
    most_read_bytes: int = 0
    """How many bytes it may give."""
    output: ContextOutput = dataclasses.field(default_factory=ContextOutput)
    """Callbacks that write in the place of files."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What the options of a session say."""

    load: LoadSettings
    """How its model is read."""
    optimize: OptimizeSettings
    """How it is optimized."""
    save: SaveSettings
    """Where the optimized model goes."""
    placement: PlacementSettings
    """Who runs what."""
    memory: MemorySettings
    """How much memory providers may take."""
    execution: ExecutionSettings
    """How it runs."""
    context: ContextSettings
    """How compiled models are written and loaded."""
    logs: tuple[int, str] = (-1, "")
    """The severity from which on the session writes messages, -1 for the process's, and its logid."""
    custom_ops: tuple[Any, ...] = ()
    """What was registered of custom operators: objects with `definitions`."""
    shares_programs: bool = True
    """Whether sessions of one model in this process share programs and packed weights."""
    keeps_decisions: bool = True
    """Whether what is decided of the model is kept for later sessions, and taken from earlier ones."""

    def without_files(self) -> Settings:
        """Return settings that have no models written."""
        return dataclasses.replace(
            self,
            save=SaveSettings(),
            placement=dataclasses.replace(self.placement, layout_folder=None),
            context=dataclasses.replace(self.context, writes=False),
        )


def read_settings(options: SessionOptions, disabled: Iterable[str] = (), *, verify: bool = False) -> Settings:
    """Return what options say, with the placement file that they name.

    Args:
        options: of a session.
        disabled: names of rules and passes, ours or onnxruntime's, that are to be left out besides.
        verify: whether to compare each rewrite with what it replaces, whatever the options say.

    Raises:
        InvalidArgument: an option or the placement file is malformed; the message names the key.
        NoSuchFile: there is no such placement file.
    """
    plain = None if disabled or verify else options.plain_values()
    if plain is None:
        return _read(options, disabled, verify=verify)
    check_own_threads()
    return _read_plain(plain)


@functools.lru_cache(maxsize=8)
def _read_plain(values: tuple[object, ...]) -> Settings:
    """Return what options with these `plain_values` say; sessions of equal ones have the same settings."""
    return _read(SessionOptions.of_plain_values(values), (), verify=False)


def _read(options: SessionOptions, disabled: Iterable[str], *, verify: bool) -> Settings:
    """Return what options say, as `read_settings` does."""
    entries = options.session_config_entries
    file = _placement_file(options, entries)
    return Settings(
        load=LoadSettings(
            external_folder=keys.EXTERNAL_FOLDER.read(entries) or None,
            initializers=options.initializers,
            dimensions=options.dimension_overrides,
            denotations=options.denotation_overrides,
            is_strict=keys.STRICT_SHAPES.read(entries),
            external_files=options.external_files,
        ),
        optimize=_optimize(options, entries, disabled, verify=verify),
        save=SaveSettings(
            path=str(options.optimized_model_filepath or keys.SAVED_PATH.read(entries)),
            format=keys.SAVED_FORMAT.read(entries),
            data_name=keys.SAVED_DATA.read(entries),
            data_least_bytes=keys.SAVED_LEAST.read(entries),
            notes_providers=keys.SAVED_ASSIGNMENT.read(entries),
        ),
        placement=_placement(options, entries, file),
        memory=MemorySettings(
            limits=(*file.limits, *keys.MEMORY_LIMITS.read(entries)),
            cuda=keys.CUDA_LIMIT.read(entries),
            shapes=keys.MAX_SHAPES.read(entries),
            stats_name=keys.MEMORY_STATS.read(entries),
        ),
        execution=_execution(options, entries),
        context=_context(options, entries),
        logs=(_severity(options, entries), options.logid or keys.LOG_ID.read(entries)),
        custom_ops=options.custom_ops,
        shares_programs=keys.SHARE_PROGRAMS.read(entries),
        keeps_decisions=keys.KEEP_DECISIONS.read(entries),
    )


def _optimize(options: SessionOptions, entries: Mapping[str, str], disabled: Iterable[str], *, verify: bool) -> OptimizeSettings:
    for option in keys.OPTIMIZER_FLAGS.values():
        option.read(entries)  # rules and passes compare texts; one that is neither "0" nor "1" is told here
    level = int(options.graph_optimization_level)
    if level == GraphOptimizationLevel.ORT_ENABLE_ALL:
        level = keys.LEVEL_OF_OPTIMIZATION.read(entries)
    return OptimizeSettings(
        level=level,
        disabled=_own_names(disabled) | _own_names(keys.DISABLED.read(entries)),
        loops=int(keys.LOOPS.read(entries)),
        fold_bytes=keys.FOLD_BYTES.read(entries),
        fold_seconds=keys.FOLD_SECONDS.read(entries),
        verify=verify or options.verify or keys.VERIFY.read(entries),
        verify_folder=keys.VERIFY_FOLDER.read(entries),
        continue_on_error=_skips("optimizer_failure", options.optimizer_failure, keys.OPTIMIZER_FAILURE.read(entries)),
        entries=entries,
        rules=options.rules,
        passes=options.passes,
        keeps_calls=keys.KEEP_CALLS.read(entries),
        keeps_narrow_floats=keys.KEEP_NARROW.read(entries),
    )


def _own_names(names: Iterable[str]) -> frozenset[str]:
    """Return the rules and passes that names stand for; the optimizer, which knows them, is imported only for that."""
    if not names:
        return frozenset()
    with without_fork():
        from sardonyx.optimize.names import own_names

    return own_names(names)


def _skips(name: str, chosen: str, entry: str) -> bool:
    choice = chosen or entry
    if choice not in ("error", "skip"):
        raise InvalidArgument(f'{name} is "error" or "skip", got {choice!r}')
    return choice == "skip"


def _placement_file(options: SessionOptions, entries: Mapping[str, str]) -> PlacementFile:
    path = options.placement_file or keys.PLACEMENT_FILE.read(entries)
    return read_placement_file(path) if path else PlacementFile()


def _placement(options: SessionOptions, entries: Mapping[str, str], file: PlacementFile) -> PlacementSettings:
    mode = options.placement or keys.PLACEMENT.read(entries) or file.mode or "priority"
    if mode not in MODES:
        raise InvalidArgument(f"placement is one of {', '.join(MODES)}, got {mode!r}{hint(mode, MODES)}")
    profile = options.placement_profile or keys.PLACEMENT_PROFILE.read(entries) or file.profile
    if mode == "measured" and not profile:
        raise InvalidArgument(
            'placement = "measured" needs a profile: make one by `sardonyx profile --placement MODEL -o FILE` and name it in '
            "SessionOptions.placement_profile"
        )
    by_annotation, by_name = keys.LAYERS_BY_ANNOTATION.read(entries), keys.LAYERS_BY_NAME.read(entries)
    _check_layers(by_annotation, by_name)
    pins = file.pins.joined(keys.PLACED.read(entries)).joined(parse_pins(options.placements))
    falls = pins.fall_through or options.placement_fall_through or keys.FALL_THROUGH.read(entries)
    layout = keys.LAYOUT_FOLDER.read(entries)
    return PlacementSettings(
        measured=mode == "measured",
        profile=str(profile),
        order=keys.PLACEMENT_ORDER.read(entries) or file.order,
        pins=dataclasses.replace(pins, fall_through=falls or bool(by_annotation or by_name)),
        layers_by_annotation=by_annotation,
        layers_by_name=by_name,
        streams_file=keys.STREAMS.read(entries),
        forbids_fallback=keys.NO_FALLBACK.read(entries),
        records_assignment=keys.RECORD_ASSIGNMENT.read(entries),
        continue_on_error=_skips("provider_failure", options.provider_failure, keys.PROVIDER_FAILURE.read(entries)),
        layout_folder=None if layout == "0" else "" if layout == "1" else layout,
    )


def _check_layers(by_annotation: Mapping[str, str], by_name: Mapping[str, str]) -> None:
    first, second = keys.LAYERS_BY_ANNOTATION.name, keys.LAYERS_BY_NAME.name
    if by_annotation and by_name:
        raise InvalidArgument(f"{first} and {second} exclude each other; give one of them")
    exact = next((text for text in by_name if text.startswith("=")), None)
    if exact is not None:
        raise InvalidArgument(f"{second} has {exact!r}, but compares parts of names; leave out the equals sign")


def _execution(options: SessionOptions, entries: Mapping[str, str]) -> ExecutionSettings:
    if options.execution_order != ExecutionOrder.DEFAULT:
        warn_of_order()
    intra_op, inter_op = _thread_counts(options, entries)
    mode = "parallel" if options.execution_mode == ExecutionMode.ORT_PARALLEL else "sequential"
    prefix = str(options.profile_file_prefix) if options.enable_profiling else keys.PROFILING.read(entries) or None
    return ExecutionSettings(
        executor=keys.EXECUTOR.read(entries) or keys.EXECUTION_MODE.read(entries) or mode,
        intra_op_threads=intra_op,
        inter_op_threads=inter_op,
        flushes_denormals=keys.DENORMALS.read(entries),
        float32_precision=keys.PRECISION.read(entries),
        affinities=_affinities(entries, intra_op),
        shares_arenas=keys.SHARED_ARENA.read(entries),
        profile_prefix=prefix,
    )


def _affinities(entries: Mapping[str, str], threads: int) -> tuple[frozenset[int], ...]:
    """Return the processors of the threads; raises InvalidArgument where they are not one list less than there are threads."""
    name = keys.AFFINITIES.name
    if entries.get(name) == "":
        raise InvalidArgument(f"{name} must not be empty: give {keys.AFFINITIES.kind.values}, or leave it out")
    if name not in entries:
        return ()
    found = keys.AFFINITIES.read(entries)
    count = threads or num_threads() or available_processors()
    if count == 1:
        return ()
    if len(found) != count - 1:
        raise InvalidArgument(
            f"{name} has {len(found)} lists of processors, but {count} threads run a step, of which {count - 1} get one: the "
            "calling thread runs where it is; give as many lists, or set intra_op_num_threads"
        )
    return found


def _thread_counts(options: SessionOptions, entries: Mapping[str, str]) -> tuple[int, int]:
    """Return the threads of a step and of a run: the session's own numbers, or those of the process where it is to share these."""
    intra_op = _threads(options.intra_op_num_threads) or keys.INTRA_THREADS.read(entries)
    inter_op = _threads(options.inter_op_num_threads) or keys.INTER_THREADS.read(entries)
    if not options.use_per_session_threads or not keys.OWN_THREADS.read(entries):
        shared = global_thread_counts()
        return shared[0] or intra_op, shared[1] or inter_op
    check_own_threads()
    return intra_op, inter_op


def _severity(options: SessionOptions, entries: Mapping[str, str]) -> int:
    asked = options.log_severity_level
    level = asked if asked != -1 else int(keys.LOG_SEVERITY.read(entries))
    if not -1 <= level <= _FATAL:
        raise InvalidArgument(f"log_severity_level is 0 (verbose) to {_FATAL} (fatal), or -1 for the process's, got {level}")
    return level


def _threads(asked: int) -> int:
    """Return a number of threads; one below 0 leaves it open as 0 does, as in onnxruntime."""
    return max(asked, 0)


def _context(options: SessionOptions, entries: Mapping[str, str]) -> ContextSettings:
    read_data, most_bytes = options.context_data_reader
    stops = keys.CONTEXT_STOP.read(entries)
    return ContextSettings(
        writes=keys.CONTEXT_ENABLE.read(entries),
        path=keys.CONTEXT_PATH.read(entries),
        embeds=keys.CONTEXT_EMBED.read(entries),
        prefix=keys.CONTEXT_PREFIX.read(entries),
        data_name=keys.CONTEXT_DATA.read(entries),
        data_least_bytes=keys.CONTEXT_LEAST.read(entries),
        source=keys.CONTEXT_SOURCE.read(entries),
        shares=keys.CONTEXT_SHARE.read(entries) or stops,
        stops_sharing=stops,
        leaves_out_weights=keys.CONTEXT_WEIGHTLESS.read(entries),
        is_trusted=keys.CONTEXT_TRUST.read(entries),
        checks_weights=keys.CONTEXT_CHECK.read(entries),
        forbids_compiling=keys.NO_COMPILING.read(entries),
        fails_on_suboptimal=keys.FAIL_ON_SUBOPTIMAL.read(entries),
        read_data=read_data,
        most_read_bytes=most_bytes,
        output=options.context_output,
    )
