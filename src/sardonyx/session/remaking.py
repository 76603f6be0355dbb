"""What a session was made of, by which it is made again: with other providers, or in another process."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arguments import as_list, as_mapping
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import Fail
from sardonyx.forks import without_fork
from sardonyx.session.interface import SessionInterface
from sardonyx.session.options import SessionOptions
from sardonyx.session.providers import ProviderRequest, check_known

if TYPE_CHECKING:
    from sardonyx.session.states import States

__all__ = ["Arguments", "RemadeSession", "model_of", "with_providers"]

_MADE_ATTRIBUTES = frozenset(
    """_arguments _declared _defaults _enable_fallback _input_values _kept_model _label _logs _native_run _native_runs _output_names
    _plain_runs _profiler _provider_options _read_config_from_model _recorder _runner _settings _sparse_outputs _states""".split()
)


@dataclasses.dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a session besides its model."""

    options: SessionOptions
    """The session's own copy."""
    disabled_optimizers: Iterable[str]
    """Names of rules and passes that do not run."""
    providers: Sequence[ProviderRequest] | None
    """The providers that were asked for, None for those of the options."""
    provider_options: tuple[Mapping[str, object], ...] | None
    """Options for each of them."""


class RemadeSession(SessionInterface):
    """A session that can be made again: with other providers, or of a pickle."""

    _arguments: Arguments
    _kept_model: object = None
    """The path, bytes or other model that the session can be made from, None where it has not kept any."""
    _states: States | None = None
    _enable_fallback = True

    @abc.abstractmethod
    def _open(self, given: OnnxValue, arguments: Arguments) -> None:
        """Become the session of a model and arguments; the session stays as it is where that fails."""

    def set_providers(
        self, providers: Sequence[ProviderRequest] | None = None, provider_options: Sequence[Mapping[str, object]] | None = None
    ) -> None:
        """Make the session again with other providers; runs that are under way end with those that they began with.

        Args:
            providers: as for `InferenceSession`.
            provider_options: as for `InferenceSession`.

        Raises:
            InvalidArgument: nobody knows a provider of such a name.
            Fail: the session has not kept the bytes that it was made from, which were more than a MiB.
            SardonyxError: as for `InferenceSession`; the session stays as it is.
        """
        check_known(as_list("providers", providers or ()))
        self._reset_session(providers, provider_options)

    @abc.abstractmethod
    def _reset_session(
        self, providers: Sequence[ProviderRequest] | None, provider_options: Sequence[Mapping[str, object]] | None
    ) -> None:
        """Make the session again, as `set_providers` does."""

    def disable_fallback(self) -> None:
        """Accept the call: runs are never repeated with other providers unless `SessionOptions.provider_failure` says so."""
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        """Accept the call; see `disable_fallback`."""
        self._enable_fallback = True

    def reset_all_variables(self) -> None:
        """Forget what the model keeps from run to run: the next run is as the first one was."""
        if self._states is not None:
            self._states.reset()

    def signature_session(self, index: int) -> RemadeSession:
        """Return a session of another graph of the model's file, with the same options, providers and variables."""
        with without_fork():
            from sardonyx.session.signatures import graph_of  # which few models have

        made = object.__new__(type(self))
        made._open(graph_of(self._model_again("get_signature_runner"), index), self._arguments)
        if made._states is not None and self._states is not None:
            made._states.share(self._states)
        return made

    def __reduce__(self) -> tuple[Callable[..., object], tuple[OnnxValue, ...], object]:
        kind = type(self)
        if getattr(kind, "__getstate__", None) is not object.__getstate__:
            return _bare, (kind,), self.__getstate__()
        own = {name: value for name, value in vars(self).items() if name not in self._made_attributes}
        return _remake, (kind, self._model_again("pickle"), self._arguments), own or None

    @property
    def _made_attributes(self) -> frozenset[str]:
        """The attributes that making and running a session sets; others are its subclass's, and come along in a pickle."""
        return _MADE_ATTRIBUTES

    def _model_again(self, what: str) -> object:
        if self._kept_model is None:
            raise Fail(
                f"{what} reads the model again, which this session has not kept: give the session a path, or bytes of at most a MiB"
            )
        return self._kept_model

    @abc.abstractmethod
    def get_providers(self) -> list[str]:
        """Return the names of the providers."""


def model_of(given: OnnxValue) -> OnnxValue:
    """Return what a session is given, of any kind, where a model can be read from it.

    Raises:
        TypeError: it is nothing that holds a model.
    """
    with without_fork():
        from sardonyx.ir import Model  # `import sardonyx` stays fast without it

    if isinstance(given, (str, bytes, bytearray, memoryview, os.PathLike, Model)):
        return given
    if hasattr(given, "read") or hasattr(given, "SerializeToString"):
        return given
    raise TypeError(
        f"a model cannot be loaded from {type(given).__name__}; expected a path, bytes, an open binary file or an onnx.ModelProto"
    )


def with_providers(
    arguments: Arguments, providers: Sequence[ProviderRequest] | None, options: Iterable[Mapping[str, object]] | None
) -> Arguments:
    """Return arguments with other providers, as `InferenceSession` takes them; raises TypeError for what is no list of them."""
    each = None if options is None else as_list("provider_options", options)
    return dataclasses.replace(
        arguments,
        providers=providers if isinstance(providers, (NoneType, str)) else tuple(as_list("providers", providers)),
        provider_options=None if each is None else tuple(as_mapping("an entry of provider_options", one) for one in each),
    )


def _remake(kind: type[RemadeSession], given: OnnxValue, arguments: Arguments) -> RemadeSession:
    made = kind.__new__(kind)
    made._open(given, arguments)
    return made


def _bare(kind: type[RemadeSession]) -> RemadeSession:
    return kind.__new__(kind)
