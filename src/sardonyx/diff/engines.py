"""Engines that run a model: a session of this package, or another package beside it."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from sardonyx import errors
from sardonyx.codegen.run.processors import available_processors
from sardonyx.codegen.target import host_target
from sardonyx.diff.configuration import LEVELS, Configuration
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import Fail, InvalidArgument, SardonyxError, describe
from sardonyx.forks import without_fork
from sardonyx.formats import onnx as onnx_format
from sardonyx.ir import Model
from sardonyx.provider import Provider
from sardonyx.providers.cpu.provider import CpuProvider
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.optimization import check_disabled
from sardonyx.session.options import SessionOptions
from sardonyx.session.providers import CPU, ProviderRequest, get_available_providers
from sardonyx.session.settings.settings import read_settings

__all__ = ["Engine", "Loaded", "engine_for"]

_SMALL_BYTES = 1 << 30
"""Weights up to which a model is handed over as bytes; protobuf ends at two GiB."""


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """A model that an engine has loaded."""

    run: Callable[[Mapping[str, OnnxValue]], Sequence[OnnxValue]]
    """From a feed to the outputs, in the model's order."""
    steps: tuple[tuple[str, str], ...] = ()
    """For each node that is left after optimization its operator and its provider, where the engine says so."""
    rules: tuple[str, ...] = ()
    """The rewrite rules that fired, where the engine says so."""


class Engine(Protocol):
    """What runs models under one configuration."""

    def load(self, model: Model) -> Loaded:
        """Return `model`, which stays as it is, ready to run; raises SardonyxError where it cannot be."""


def engine_for(configuration: Configuration, providers: Sequence[Provider] = (), options: SessionOptions | None = None) -> Engine:
    """Return the engine of a configuration.

    Args:
        configuration: one side of a comparison.
        providers: such as are not installed, which it may name.
        options: of sessions, for what the configuration does not say, such as custom operators.

    Raises:
        InvalidArgument: a provider is not known, or the processor has no such instruction set.
        NotImplemented: the other engine is not installed.
    """
    if configuration.engine == "onnxruntime":
        return _OnnxRuntime(configuration)
    if configuration.engine == "openvino":
        return _OpenVino(configuration)
    return _Sessions(configuration, providers, options)


class _Sessions:
    """Sessions of this package."""

    def __init__(self, configuration: Configuration, providers: Sequence[Provider], options: SessionOptions | None) -> None:
        self._configuration = configuration
        self._options = SessionOptions() if options is None else options.copy()
        self._options.add_session_config_entry("session.graph_optimization_level", str(LEVELS[configuration.level]))
        self._options.intra_op_num_threads = configuration.threads
        for key, text in configuration.entries.items():
            self._options.add_session_config_entry(key, text)
        settings = read_settings(self._options)  # what is wrong with them is no failure of a part
        check_disabled(configuration.disabled, settings.optimize)
        self._requests = _requests(configuration, {item.name: item for item in providers})

    def load(self, model: Model) -> Loaded:
        disabled = self._configuration.disabled
        session = InferenceSession(model, self._options.copy(), self._requests or None, disabled_optimizers=disabled)
        steps = tuple((place.op_type, place.provider) for place in session.explain())
        return Loaded(lambda feed: session.run(None, feed), steps, tuple(session.optimization_report.fired))


def _requests(configuration: Configuration, made: Mapping[str, Provider]) -> list[ProviderRequest]:
    """Return the providers of a session; the CPU provider by itself where only its options are given, none for a session's own."""
    names = configuration.providers or (("CPU",) if configuration.isa or configuration.precision else ())
    known = [*made, *get_available_providers()]
    requests: list[ProviderRequest] = []
    for name in names:
        full = name if name in known else full_name(name)
        if full not in known:
            raise InvalidArgument(f"there is no provider {name!r}; there are {', '.join(known)}")
        is_first = not requests
        requests.append(made[full] if full in made else _request(full, configuration, configuration.precision if is_first else ""))
    return requests


def _request(name: str, configuration: Configuration, precision: str) -> ProviderRequest:
    if name != CPU or not configuration.isa:
        return (name, {"precision": precision}) if precision else name
    if precision:
        raise InvalidArgument(f"isa={configuration.isa} and precision={precision} are not compared together; give one of them")
    return CpuProvider(host_target(configuration.isa), configuration.threads or available_processors())


def full_name(name: str) -> str:
    """Return a provider's name with "ExecutionProvider", which may be left out."""
    return name if name.endswith("ExecutionProvider") else f"{name}ExecutionProvider"


class _OnnxRuntime:
    """The onnxruntime that is installed."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        try:
            with without_fork():
                import onnxruntime
        except ImportError as error:
            raise errors.NotImplemented("the engine onnxruntime is not installed: pip install onnxruntime") from error
        if not hasattr(onnxruntime, "get_build_info") or "sardonyx" in onnxruntime.get_build_info():
            raise InvalidArgument("`import onnxruntime` finds sardonyx here, so the two cannot be compared: start without it")
        self._package: Any = onnxruntime

    def load(self, model: Model) -> Loaded:
        package, configuration = self._package, self._configuration
        options = package.SessionOptions()
        options.graph_optimization_level = package.GraphOptimizationLevel(LEVELS[configuration.level])
        options.intra_op_num_threads = configuration.threads
        options.log_severity_level = 4
        for key, text in configuration.entries.items():
            options.add_session_config_entry(key, text)
        names = [full_name(name) for name in configuration.providers] or ["CPUExecutionProvider"]
        session = _foreign("onnxruntime", lambda: _opened(model, lambda given: package.InferenceSession(given, options, names)))
        return Loaded(lambda feed: _foreign("onnxruntime", lambda: session.run(None, dict(feed))))


class _OpenVino:
    """The openvino that is installed."""

    def __init__(self, configuration: Configuration) -> None:
        try:
            with without_fork():
                import openvino
        except ImportError as error:
            raise errors.NotImplemented('the engine openvino is not installed: pip install "sardonyx[openvino]"') from error
        self._core: Any = openvino.Core()
        self._properties: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": _HINTS.get(configuration.precision, configuration.precision)
        }
        if configuration.threads:
            self._properties["INFERENCE_NUM_THREADS"] = configuration.threads

    def load(self, model: Model) -> Loaded:
        def compiled(given: bytes | str) -> Any:
            return self._core.compile_model(self._core.read_model(given), "CPU", self._properties)

        held = _foreign("openvino", lambda: _opened(model, compiled))
        outputs = list(held.outputs)

        def run(feed: Mapping[str, OnnxValue]) -> list[OnnxValue]:
            results = held(dict(feed))
            return [results[output] for output in outputs]

        return Loaded(lambda feed: _foreign("openvino", lambda: run(feed)))


_HINTS = {"": "f32", "fp32": "f32", "fp16": "f16"}
_Result: TypeAlias = Any


def _opened(model: Model, opened: Callable[[Any], _Result]) -> _Result:
    """Open a model with another package, by a file where it is large; what opens it reads it at once."""
    weights = sum(value.constant.size_bytes for value in model.graph.initializers.values() if value.constant is not None)
    if weights < _SMALL_BYTES:
        return opened(onnx_format.to_bytes(model))
    with tempfile.TemporaryDirectory(prefix="sardonyx-diff-") as folder:
        path = Path(folder) / "model.onnx"
        onnx_format.save(model, path, data_name="model.data")
        return opened(str(path))


def _foreign(engine: str, call: Callable[[], _Result]) -> _Result:
    """Call another package; what it raises, which may be anything, becomes Fail."""
    try:
        return call()
    except SardonyxError:
        raise
    except Exception as error:
        raise Fail(f"{engine}: {describe(error)}") from error
