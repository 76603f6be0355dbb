"""`Session`: onnxruntime's base class of its InferenceSession, with the private names that published packages use."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast, overload

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.session.opened_session import OpenedSession
from sardonyx.session.options import copied_options
from sardonyx.session.providers import CPU, ProviderRequest
from sardonyx.session.remaking import with_providers

if TYPE_CHECKING:
    from sardonyx.session.inference_session import InferenceSession
    from sardonyx.session.native.session import InferenceSession as NativeSession

__all__ = ["Session", "Shown"]

T = TypeVar("T")


class Shown(Generic[T]):
    """An attribute that is computed when it is read, until somebody assigns another value."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        """Take what computes it of its object (Any: of any class)."""
        self._compute = compute

    @overload
    def __get__(self, held: None, kind: type) -> Self: ...
    @overload
    def __get__(self, held: object, kind: type) -> T: ...
    def __get__(self, held: object | None, kind: type) -> Self | T:
        """Return the value; of a class the attribute itself."""
        return self if held is None else self._compute(held)


class Session(OpenedSession):
    """A session with the methods that make onnxruntime's, and its attributes, which subclasses override and assign.

    What a subclass assigns to `_model_path`, `_model_bytes` or `_sess_options` before its model is opened is what is opened. Other
    attributes say what they are given until the session is made again.
    """

    _given_sess: NativeSession | None = None
    _read_config_from_model = False
    _from_model_package: Final = False
    _sess_options = Shown(lambda session: session._arguments.options)
    _sess_options_initial = Shown(lambda session: session._arguments.options)
    _model_path = Shown(lambda session: _path_of(session._kept_model))
    _model_bytes = Shown(lambda session: _bytes_of(session._kept_model))
    _fallback_providers = Shown(lambda session: [CPU])
    _captured_graph_bindings: Shown[dict[int, object]] = Shown(lambda session: {})
    _providers = Shown(OpenedSession.get_providers)
    _inputs_meta = Shown(OpenedSession.get_inputs)
    _outputs_meta = Shown(OpenedSession.get_outputs)
    _overridable_initializers = Shown(OpenedSession.get_overridable_initializers)
    _model_meta = Shown(OpenedSession.get_modelmeta)
    _input_meminfos = Shown(OpenedSession.get_input_memory_infos)
    _output_meminfos = Shown(OpenedSession.get_output_memory_infos)
    _input_epdevices = Shown(OpenedSession.get_input_epdevices)
    _profiling_start_time_ns = Shown(OpenedSession.get_profiling_start_time_ns)

    def __init__(self, enable_fallback: bool = True) -> None:
        """Make a session without a model, which its subclass opens; `enable_fallback` has no effect but on its attribute."""
        self._enable_fallback = enable_fallback

    @property
    def _made_attributes(self) -> frozenset[str]:
        return super()._made_attributes | _ASSIGNED

    def _create_inference_session(
        self,
        providers: Sequence[ProviderRequest] | None,
        provider_options: Sequence[Mapping[str, object]] | None,
        disabled_optimizers: Iterable[str] | None = None,
    ) -> None:
        """Open the model; the constructor and `set_providers` call it, and a subclass may override it.

        Args:
            providers: as for `InferenceSession`.
            provider_options: as for `InferenceSession`.
            disabled_optimizers: as for `InferenceSession`; those of before where None.
        """
        assigned, arguments = vars(self), self._arguments
        if assigned.get("_sess_options") is not None:
            arguments = dataclasses.replace(arguments, options=copied_options(assigned["_sess_options"]))
        if disabled_optimizers is not None:
            names = disabled_optimizers if isinstance(disabled_optimizers, str) else tuple(disabled_optimizers)
            arguments = dataclasses.replace(arguments, disabled_optimizers=names)
        given = self._model_path or self._model_bytes if assigned.keys() & {"_model_path", "_model_bytes"} else None
        self._open(given or self._model_again("set_providers"), with_providers(arguments, providers, provider_options))
        for name in assigned.keys() & _ASSIGNED:
            del assigned[name]

    def _reset_session(
        self, providers: Sequence[ProviderRequest] | None, provider_options: Sequence[Mapping[str, object]] | None
    ) -> None:
        self._create_inference_session(providers, provider_options)

    def _bind_session(self, sess: NativeSession) -> None:
        """Become the session that onnxruntime's compiled module made."""
        self._sess = sess

    @property
    def _sess(self) -> NativeSession:
        if self._given_sess is not None:
            return self._given_sess
        with without_fork():
            from sardonyx.session.native.session import InferenceSession as NativeSession  # which few programs use

        return NativeSession.of(cast("InferenceSession", self))

    @_sess.setter
    def _sess(self, native: NativeSession | None) -> None:
        self._given_sess = native
        if native is not None:
            native.when_initialized(lambda made: self._open(native.model or made._model_again("_sess"), made._arguments))

    def _validate_input(self, feed_input_names: Collection[str]) -> None:
        """Raise InvalidArgument where a feed with these names lacks an input that may not be left out."""
        required = [item.name for item in OpenedSession.get_inputs(self) if not item.type.startswith("optional")]
        missing = [name for name in required if name not in feed_input_names]
        if missing:
            raise InvalidArgument(f"Required inputs ({missing}) are missing from input feed ({list(feed_input_names)}).")

    def _validate_ortvalue_ownership(self, values: Iterable[object]) -> None:
        """Accept the call: no OrtValue belongs to a session."""

    def _validate_graph_capture_run_api(self, run_options: object = None) -> None:
        """Accept the call: no graph is captured on a CPU."""

    def _release_captured_graphs(self) -> None:
        """Accept the call: no graph is captured on a CPU."""

    def _check_session_can_be_recreated(self, method_name: str) -> None:
        """Raise Fail where the session has not kept what it was made from."""
        self._model_again(method_name)

    def _register_ep_custom_ops(
        self, session_options: object, providers: object, provider_options: object, available: object
    ) -> None:
        """Accept the call: no provider here comes with operators of its own."""


_ASSIGNED = frozenset(("_given_sess", *(name for name, value in vars(Session).items() if isinstance(value, Shown))))
"""What subclasses assign, and a session that is made again computes."""


def _path_of(model: object) -> str | None:
    return os.fspath(model) if isinstance(model, (str, os.PathLike)) else None


def _bytes_of(model: object) -> bytes | None:
    return model if isinstance(model, bytes) else None
