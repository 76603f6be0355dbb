"""The session as onnxruntime's compiled module has it, which its Python class holds as `_sess`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sardonyx.dtypes import ElementType, OnnxValue
from sardonyx.errors import NoModel
from sardonyx.forks import without_fork
from sardonyx.session.io_binding import IOBinding
from sardonyx.session.opened_session import OpenedSession
from sardonyx.session.options import SessionOptions
from sardonyx.session.run_options import RunOptions
from sardonyx.session.values import ModelMetadata, NodeArg
from sardonyx.values.device import OrtDevice
from sardonyx.values.hardware import OrtEpDevice
from sardonyx.values.memory_info import OrtMemoryInfo
from sardonyx.values.ort_value import OrtValue
from sardonyx.values.ort_value_vector import OrtValueVector

if TYPE_CHECKING:
    from sardonyx.session.inference_session import InferenceSession as Session
    from sardonyx.session.placement.assignment_info import OrtEpAssignedSubgraph

__all__ = ["HoldsBinding", "InferenceSession", "SessionObjectInitializer", "get_default_session_options", "get_session_initializer"]


class HoldsBinding(Protocol):
    """The binding of onnxruntime's compiled module."""

    binding: IOBinding
    """The binding that it stands for."""


class InferenceSession:
    """A session in two steps: made with a model, then initialized with providers."""

    def __init__(self, options: SessionOptions, path_or_bytes: str | bytes, is_path: bool, read_config_from_model: bool) -> None:
        """Keep the model and the options; nothing is loaded yet.

        Args:
            options: as for `sardonyx.InferenceSession`.
            path_or_bytes: the model, which is kept.
            is_path: has no effect: a text is a path.
            read_config_from_model: as for `sardonyx.InferenceSession`.
        """
        self._options, self.model = options, path_or_bytes
        self._reads_config = read_config_from_model
        self._session: Session | None = None
        self._waiting: list[Callable[[Session], None]] = []

    @classmethod
    def of(cls, session: Session) -> InferenceSession:
        """Return the form of a session that is made."""
        made = cls(session.get_session_options(), "", True, False)
        made._session = session
        return made

    def initialize_session(
        self,
        providers: Sequence[str],
        provider_options: Sequence[Mapping[str, str]],
        disabled_optimizers: Collection[str] = frozenset(),
    ) -> None:
        """Load the model and make the session; see `sardonyx.InferenceSession`."""
        with without_fork():
            from sardonyx.session.inference_session import InferenceSession as Session  # which imports this module for `_sess`

        named = list(zip(providers, [dict(options) for options in provider_options] or [{} for _ in providers], strict=True))
        self._session = Session(
            self.model,
            self._options,
            named or None,
            disabled_optimizers=set(disabled_optimizers),
            read_config_from_model=self._reads_config,
        )
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then(self._session)

    def when_initialized(self, then: Callable[[Session], None]) -> None:
        """Call a function with the session: now, or once `initialize_session` has made it."""
        if self._session is None:
            self._waiting.append(then)
        else:
            then(self._session)

    @property
    def session(self) -> Session:
        """The session; raises NoModel where it is not initialized."""
        if self._session is None:
            raise NoModel("the session has no model yet: call initialize_session")
        return self._session

    @property
    def session_options(self) -> SessionOptions:
        """The options."""
        return self._options

    @property
    def inputs_meta(self) -> list[NodeArg]:
        """The inputs that a feed must have."""
        return OpenedSession.get_inputs(self.session)

    @property
    def outputs_meta(self) -> list[NodeArg]:
        """The outputs."""
        return OpenedSession.get_outputs(self.session)

    @property
    def overridable_initializers(self) -> list[NodeArg]:
        """The initializers that a feed may override."""
        return OpenedSession.get_overridable_initializers(self.session)

    @property
    def model_meta(self) -> ModelMetadata:
        """The model's description of itself."""
        return OpenedSession.get_modelmeta(self.session)

    @property
    def input_meminfos(self) -> list[OrtMemoryInfo]:
        """The memory of each input."""
        return OpenedSession.get_input_memory_infos(self.session)

    @property
    def output_meminfos(self) -> list[OrtMemoryInfo]:
        """The memory of each output."""
        return OpenedSession.get_output_memory_infos(self.session)

    @property
    def input_epdevices(self) -> list[OrtEpDevice | None]:
        """The device of each input."""
        return OpenedSession.get_input_epdevices(self.session)

    @property
    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, in nanoseconds."""
        return OpenedSession.get_profiling_start_time_ns(self.session)

    def get_providers(self) -> list[str]:
        """Return the providers."""
        return OpenedSession.get_providers(self.session)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return provider -> its options."""
        return OpenedSession.get_provider_options(self.session)

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Return the partitions with their providers and nodes."""
        return OpenedSession.get_provider_graph_assignment_info(self.session)

    def run(
        self, output_names: Sequence[str], input_feed: Mapping[str, OnnxValue], run_options: RunOptions | None = None
    ) -> list[OnnxValue]:
        """Compute outputs; see `sardonyx.InferenceSession.run`."""
        return OpenedSession.run(self.session, output_names, input_feed, run_options)

    def run_async(
        self,
        output_names: Sequence[str],
        input_feed: Mapping[str, OnnxValue],
        callback: Callable[[list[Any], Any, str], Any],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Compute outputs on another thread; see `sardonyx.InferenceSession.run_async`."""
        OpenedSession.run_async(self.session, output_names, input_feed, callback, user_data, run_options)

    def run_with_ort_values(
        self, input_feed: Mapping[str, OrtValue], output_names: Sequence[str], run_options: RunOptions | None = None
    ) -> OrtValueVector:
        """Compute outputs from OrtValues."""
        return OrtValueVector(OpenedSession.run_with_ort_values(self.session, output_names, input_feed, run_options))

    def run_with_iobinding(self, binding: HoldsBinding | IOBinding, run_options: RunOptions | None = None) -> None:
        """Compute what is bound."""
        OpenedSession.run_with_iobinding(self.session, binding if isinstance(binding, IOBinding) else binding.binding, run_options)

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[OrtDevice],
    ) -> None:
        """Compute outputs and append them to `fetches`."""
        OpenedSession.run_with_ortvaluevector(self.session, run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)

    def end_profiling(self) -> str:
        """Stop profiling and return the file's name."""
        return OpenedSession.end_profiling(self.session)

    def get_tuning_results(self) -> list[OnnxValue]:
        """Return the results of tuning: none."""
        return OpenedSession.get_tuning_results(self.session)

    def set_tuning_results(self, results: Sequence[OnnxValue], error_on_invalid: bool = False) -> None:
        """Take results of tuning; see `sardonyx.InferenceSession.set_tuning_results`."""
        OpenedSession.set_tuning_results(self.session, results, error_on_invalid=error_on_invalid)

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Change options while the session lives."""
        OpenedSession.set_ep_dynamic_options(self.session, options)

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Release a captured graph: there are none."""

    def is_webgpu_graph_capture_enabled(self) -> bool:
        """Return False: there is no WebGPU provider."""
        return False

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: ElementType, device: OrtDevice) -> OrtValue:
        """Make a tensor; see `OrtValue.ortvalue_from_shape_and_type`."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device)

    create_ortvalue_from_shape_and_onnx_type = create_ortvalue_from_shape_and_type


class SessionObjectInitializer:
    """A name that onnxruntime's constructors take; it has no meaning here."""


def get_session_initializer() -> SessionObjectInitializer:
    """Return an object for constructors that ask for one."""
    return SessionObjectInitializer()


def get_default_session_options() -> SessionOptions:
    """Return options with the defaults."""
    return SessionOptions()
