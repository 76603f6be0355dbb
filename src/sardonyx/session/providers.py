"""Which providers there are: the built-in ones and those of other packages, by entry point."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from sardonyx.errors import EPFail, InvalidArgument, SardonyxError, blamed, describe
from sardonyx.forks import without_fork
from sardonyx.installed import installed_points, search_path
from sardonyx.logs import user_stacklevel
from sardonyx.provider import Layout, Provider
from sardonyx.session.stages.provider_list import warn_left_out
from sardonyx.spelling import nearest
from sardonyx.trace import event

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "CPU",
    "REFERENCE",
    "ProviderRequest",
    "blaming",
    "check_known",
    "check_program",
    "check_provider",
    "describe_providers",
    "get_all_providers",
    "get_available_providers",
    "make_able_providers",
    "make_providers",
    "missing_providers",
    "requested",
    "with_cpu",
    "with_reference",
]

GROUP = "sardonyx.providers"
"""The entry-point group that other packages name their providers in."""
CPU = "CPUExecutionProvider"
"""The provider that compiles to this processor's code; asked before the reference provider."""
REFERENCE = "ReferenceExecutionProvider"
"""The provider that is asked last in every session."""

_BUILT_IN = {
    CPU: "sardonyx.providers.cpu.provider:create",
    REFERENCE: "sardonyx.providers.reference.provider:create",
}
"""Name -> module and function that makes the provider from its options; in the order of priority."""

_OPTIONAL = {"OpenVINOExecutionProvider": ("openvino", "sardonyx.providers.openvino.provider:create")}
"""Name -> the package that it needs, and as above; used where a session names it, never by itself."""

_FOREIGN = tuple(
    f"{name}ExecutionProvider"
    for name in "NvTensorRTRTX Tensorrt CUDA MIGraphX OpenVINO Dnnl VitisAI QNN Nnapi VSINPU Js CoreML ACL Dml Rknpu WebNN WebGpu "
    "Xnnpack CANN Azure".split()
)
"""Providers that builds of onnxruntime may have; programs name them, also where they fall back to the CPU."""

ProviderRequest: TypeAlias = str | tuple[str, Mapping[str, object]] | Provider
"""A provider's name, its name and options, or a provider made by the caller."""
Wanted: TypeAlias = tuple[str, dict[str, str], Provider | None]
"""A provider's name and options, and the provider itself where the caller made it."""


def _installed() -> dict[str, EntryPoint]:
    return _entry_points(search_path())


@functools.lru_cache(maxsize=8)
def _entry_points(path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Return the providers of the packages on `path`, the `search_path`: a change of it is a new search."""
    return {point.name: point for point in installed_points(GROUP, path)}


def get_available_providers() -> list[str]:
    """Return names of the providers that a session can use, in the order of priority; those of other packages come first."""
    own = _own()
    return [*(name for name in sorted(_installed()) if name not in own), *own]


def _own() -> dict[str, str]:
    """Return the providers of this package whose requirements are installed: name -> module and function."""
    optional = {name: place for name, (package, place) in _OPTIONAL.items() if _is_installed(package, search_path())}
    return {CPU: _BUILT_IN[CPU], **optional, REFERENCE: _BUILT_IN[REFERENCE]}


@functools.lru_cache(maxsize=32)
def _is_installed(package: str, path: tuple[str, ...]) -> bool:
    """Return whether `package` is on `path`, the `search_path`: a change of it is a new search."""
    return importlib.util.find_spec(package) is not None


def describe_providers() -> list[tuple[str, str]]:
    """Return for each available provider its name and the package, or module, that it comes from."""
    own = _own()
    return [(name, own.get(name) or _source(_installed()[name])) for name in get_available_providers()]


def missing_providers() -> dict[str, str]:
    """Return providers that a session cannot have, and why: those whose package is not installed, or cannot be imported."""
    absent = {
        name: f"the package {package} is not installed: pip install {package}"
        for name, (package, _) in _OPTIONAL.items()
        if not _is_installed(package, search_path())
    }
    return absent | {name: problem for name in get_available_providers() if (problem := _import_problem(name))}


def _import_problem(name: str) -> str:
    """Return why the code of an available provider cannot be imported; "" where it can."""
    own = _own()
    try:
        if name in own:
            importlib.import_module(own[name].partition(":")[0])
        else:
            _installed()[name].load()
    except Exception as error:  # noqa: BLE001  what a package raises is the answer
        return describe(error)
    return ""


def _source(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}: {point.value}" if point.dist is not None else point.value


def get_all_providers() -> list[str]:
    """Return the names that onnxruntime's own builds and this one give providers; the CPU provider's is the last, as there."""
    known = dict.fromkeys([*get_available_providers(), *_FOREIGN])
    return [*(name for name in known if name != CPU), CPU]


def check_known(requests: Sequence[ProviderRequest]) -> None:
    """Raise InvalidArgument where a request names what is neither available nor a provider of onnxruntime's builds."""
    known = get_all_providers()
    for request in requests:
        name = request[0] if isinstance(request, tuple) and request else request
        if isinstance(name, str) and name not in known:
            close = nearest(name, known)
            hint = f"; did you mean {close!r}?" if close else ""
            raise InvalidArgument(f"Unknown Provider Type: {name}; available are {get_available_providers()}{hint}")


def requested(
    providers: Sequence[ProviderRequest] | None,
    options: Sequence[Mapping[str, object]] | None,
    added: Sequence[tuple[str, Mapping[str, str]]],
) -> list[Wanted]:
    """Put the ways of naming providers into one list.

    Args:
        providers: the session's `providers`; None for those of the options, else all built-in ones.
        options: the session's `provider_options`, one for each of `providers`.
        added: the providers of the session options.

    Raises:
        InvalidArgument: a request is malformed, or the lists differ in length. A provider that is not available is passed over
            with a UserWarning.
    """
    if isinstance(providers, str):
        raise InvalidArgument(f"providers is a list of providers, got the text {providers!r}; write [{providers!r}]")
    if providers is None:
        chosen: Sequence[ProviderRequest] = list(added) or list(_BUILT_IN)
    else:
        chosen = providers
    if options is not None and providers is not None and len(options) != len(providers):
        raise InvalidArgument(f"provider_options has {len(options)} entries for {len(providers)} providers; give one for each")
    result: list[Wanted] = []
    for index, request in enumerate(chosen):
        name, own, made = _split(request)
        if name in (earlier for earlier, _, _ in result):
            if made is not None:
                raise InvalidArgument(f"two of the session's providers are called {name!r}; give each a name of its own")
            continue
        if made is None and name not in _BUILT_IN and name not in _own() and name not in get_available_providers():
            _pass_over(name, [_split(later)[0] for later in chosen[index + 1 :]])
            continue
        extra = options[index] if options is not None and providers is not None else {}
        result.append((name, {key: str(value) for key, value in {**own, **extra}.items()}, made))
    return result


def with_cpu(wanted: Sequence[Wanted]) -> list[Wanted]:
    """Put the CPU provider behind those wanted, unless the list names it, or the reference provider, which comes after it."""
    names = {name for name, _, _ in wanted}
    return list(wanted) if names & {CPU, REFERENCE} else [*wanted, (CPU, {}, None)]


def make_providers(wanted: Sequence[Wanted]) -> list[Provider]:
    """Make the providers, and the reference provider after them where it is not among them.

    Raises:
        EPFail: a provider's package cannot be imported, or its factory raised.
    """
    return [_made(item) for item in with_reference(wanted)]


def make_able_providers(wanted: Sequence[Wanted]) -> tuple[list[Provider], dict[str, str]]:
    """Make those of the providers that can be made, the reference provider among them; why the others cannot, by name."""
    providers: list[Provider] = []
    failed: dict[str, str] = {}
    for item in with_reference(wanted):
        try:
            providers.append(_made(item))
        except EPFail as error:
            if item[0] == REFERENCE:
                raise
            failed[item[0]] = str(error)
            warn_left_out(item[0], str(error))
    return providers, failed


def _made(wanted: Wanted) -> Provider:
    name, options, made = wanted
    return _make(name, options) if made is None else made


def with_reference(wanted: Sequence[Wanted]) -> list[Wanted]:
    """Put the reference provider behind those wanted, unless the list names it."""
    last: list[Wanted] = [] if REFERENCE in (name for name, _, _ in wanted) else [(REFERENCE, {}, None)]
    return [*wanted, *last]


def check_provider(provider: Provider) -> None:
    """Raise EPFail where an object lacks what a provider has, or has it as something else."""
    try:
        problem = _problem_of(provider)
    except Exception as error:
        raise blamed(EPFail(f"{provider.name} raises when its attributes are read: {describe(error)}"), provider.name) from error
    if problem is not None:
        raise blamed(EPFail(f"{provider.name} {problem}; see sardonyx.provider.Provider"), provider.name)


def check_program(program: object, provider: Provider, doing: str) -> None:
    """Raise EPFail where what a provider gave as a program, which may be anything, lacks what one has.

    Args:
        program: what it gave.
        provider: who.
        doing: what it was doing, such as "compiled part_0".
    """
    try:
        missing = [name for name in ("makes_outputs", "bind", "run") if not hasattr(program, name)]
    except Exception as error:
        message = f"{provider.name} {doing} to what raises when its attributes are read: {describe(error)}"
        raise blamed(EPFail(message), provider.name) from error
    if missing:
        message = f"{provider.name} {doing} to {program!r:.200}, no program: it lacks {', '.join(missing)}"
        raise blamed(EPFail(message), provider.name)


def blaming(provider: Provider, doing: str) -> contextlib.AbstractContextManager[None]:
    """Name a provider in what it raises in the block; what is not ours becomes EPFail with what it was `doing`: "save part_0"."""
    return _Blaming(provider, doing)


class _Blaming:
    """The block of `blaming`; no generator, for the reason that `locating` is none."""

    def __init__(self, provider: Provider, doing: str) -> None:
        """Say who does what."""
        self._provider, self._doing = provider, doing

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Name the provider, or raise EPFail."""
        name = self._provider.name
        if isinstance(error, SardonyxError):
            blamed(error, name)
        elif isinstance(error, Exception):
            raise blamed(EPFail(f"{name} failed to {self._doing}: {describe(error)}"), name) from error


def _problem_of(provider: object) -> str | None:
    """Return what is wrong with a provider, which may be anything."""
    if not isinstance(getattr(provider, "preferred_layout", None), Layout):
        return f"prefers the layout {getattr(provider, 'preferred_layout', None)!r}, which is no Layout"
    memory = getattr(provider, "memory", None)
    lacking = [f"memory.{name}" for name in ("allocate", "view", "to_host", "from_host") if not hasattr(memory, name)]
    lacking += [name for name in ("capabilities", "compile") if not callable(getattr(provider, name, None))]
    if lacking or not isinstance(getattr(memory, "name", None), str):
        return f"lacks {', '.join(lacking or ['memory.name'])}"
    preferred: Iterable[object] = getattr(provider, "preferred_operators", frozenset())
    if isinstance(preferred, str) or not all(isinstance(name, str) for name in preferred):
        return f"has the preferred_operators {preferred!r}, which are no names"
    return None


def _split(request: ProviderRequest) -> tuple[str, Mapping[str, object], Provider | None]:
    if isinstance(request, str):
        return request, {}, None
    if isinstance(request, type):
        raise InvalidArgument(f"a provider is an object, got the class {request.__name__}; write {request.__name__}()")
    if not isinstance(request, tuple) and hasattr(request, "capabilities"):
        name = getattr(request, "name", None)
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"the provider {request!r:.200} has the name {name!r}; a provider's name is a text")
        return name, {}, request
    # Settings in JSON have lists where Python has tuples.
    pair: object = request
    if isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], Mapping):
        return pair[0], dict(pair[1]), None
    raise InvalidArgument(f"a provider is a name, a (name, options) pair or a provider object, got {request!r}")


def _pass_over(name: str, later: Sequence[str]) -> None:
    available = get_available_providers()
    heir = next((other for other in later if other in available), CPU)
    close = "" if name in _FOREIGN else nearest(name, available)
    warnings.warn(
        f"provider {name!r} is not available here, {heir} takes its place; available are {available}"
        f"{f'; did you mean {close!r}?' if close else ''}",
        UserWarning,
        stacklevel=user_stacklevel(),
    )


def _make(name: str, options: Mapping[str, str]) -> Provider:
    own = _BUILT_IN if name in _BUILT_IN else _own()
    try:
        if name in own:
            module, function = own[name].split(":")
            if module not in sys.modules:
                with without_fork():
                    importlib.import_module(module)
            factory = getattr(sys.modules[module], function)
        else:
            with without_fork():
                factory = _installed()[name].load()
        provider: Provider = factory(options)
    except SardonyxError:
        raise
    except Exception as error:
        event("provider.failed", provider=name, error=describe(error))
        source = "" if name in own else f" of {_source(_installed()[name])}"
        raise EPFail(f"provider {name}{source} could not be made with options {dict(options)}: {describe(error)}") from error
    if provider.name != name:
        raise EPFail(f"provider {name!r} calls itself {provider.name!r}; its entry point must have its own name")
    return provider
