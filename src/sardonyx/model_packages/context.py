"""Sessions of model packages: which variant suits the providers, and what it says to this runtime.

    executor_info["ort"]    {"model_file": path, "session_options": {key: text}, "provider_options": {key: text}}

The classes have the names and methods of onnxruntime's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.arguments import as_path, as_text, instance
from sardonyx.errors import Fail, InvalidArgument, NotFound
from sardonyx.model_packages.contents import Contents, read_contents
from sardonyx.model_packages.schema import Json, as_object
from sardonyx.provider import Compatibility
from sardonyx.session.context.compatibility import get_model_compatibility_for_ep_devices
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.options import SessionOptions
from sardonyx.session.providers import CPU, get_available_providers

__all__ = ["ModelPackageComponentContext", "ModelPackageContext", "ModelPackageOptions"]

_EXECUTOR = "ort"
_PATH_KEYS = frozenset(
    {"session.model_external_initializers_file_folder_path", "ep.context_file_path", "ep.context_source_model_path"}
)
_SCORES = {
    Compatibility.EP_SUPPORTED_OPTIMAL: 100,
    Compatibility.EP_SUPPORTED_PREFER_RECOMPILATION: 50,
    Compatibility.EP_NOT_APPLICABLE: 0,
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Variant:
    """A variant of a component, as far as a session is made of it."""

    name: str
    folder: Path | None
    provider: str | None
    device: str | None
    compatibility: str
    model: Path | None
    session_options: Mapping[str, str]
    provider_options: Mapping[str, str]


class ModelPackageOptions:
    """The providers that a variant is to suit."""

    def __init__(self, sess_options: SessionOptions) -> None:
        """Take the providers that were added to options; the first of them counts, the CPU provider where there are none."""
        given = instance("sess_options", sess_options, SessionOptions).providers
        self._provider, self._provider_options = given[0] if given else (CPU, {})


class ModelPackageContext:
    """A model package that is read: its components and their variants."""

    def __init__(self, package_root: str | os.PathLike[str]) -> None:
        """Read a package.

        Raises:
            NoSuchFile: there is no such folder, or a file or folder that the package names.
            InvalidArgument: it breaks the schema, or a path leads out of it.
        """
        self._contents = read_contents(Path(as_path("package_root", package_root)))
        self._variants = {
            name: [_variant_of(self._contents, name, variant) for variant in component.variants]
            for name, component in self._contents.components.items()
        }

    def get_schema_version(self) -> int:
        """Return the major number of the schema's version."""
        return self._contents.version[0]

    def get_component_count(self) -> int:
        """Return how many components there are."""
        return len(self._variants)

    def get_component_names(self) -> list[str]:
        """Return the names of components, in the order of the manifest."""
        return list(self._variants)

    def get_variant_count(self, component_name: str) -> int:
        """Return how many variants a component has; raises NotFound where there is none of the name."""
        return len(self._of(component_name))

    def get_variant_names(self, component_name: str) -> list[str]:
        """Return the names of a component's variants; raises NotFound where there is none of the name."""
        return [variant.name for variant in self._of(component_name)]

    def get_variant_ep_name(self, component_name: str, variant_name: str) -> str | None:
        """Return the provider that a variant is for, None where it does not say; raises NotFound for no such variant."""
        for variant in self._of(component_name):
            if variant.name == variant_name:
                return variant.provider
        raise NotFound(f"component {component_name!r} has no variant {variant_name!r}")

    def resolve_string_ref(self, string_ref: str, base_dir: str | os.PathLike[str] | None = None, must_exist: bool = False) -> str:
        """Return what a text of the package refers to; see `ModelPackage.resolve_string_ref`."""
        base = None if base_dir is None else Path(as_path("base_dir", base_dir)).absolute()
        return str(self._contents.place().resolve(as_text("string_ref", string_ref), base, must_exist=must_exist))

    def select_component(self, component_name: str, options: ModelPackageOptions) -> ModelPackageComponentContext:
        """Return the variant of a component that suits a provider best, the first of those that suit it equally.

        Raises:
            NotFound: there is no component of the name, or no variant that suits.
        """
        chosen = instance("options", options, ModelPackageOptions)
        scored = [(_score(variant, chosen), variant) for variant in self._of(component_name)]
        suiting = [(score, variant) for score, variant in scored if score is not None]
        if not suiting:
            told = ", ".join(f"{variant.name!r} for {variant.provider or 'no provider'}" for variant in self._of(component_name))
            raise NotFound(f"no variant of component {component_name!r} suits {chosen._provider}; it has {told or 'none'}")
        best = max(score for score, _ in suiting)
        return ModelPackageComponentContext(component_name, next(found for score, found in suiting if score == best), chosen)

    def _of(self, component: str) -> list[_Variant]:
        if as_text("component_name", component) not in self._variants:
            raise NotFound(f"the model package has no component {component!r}; it has {', '.join(self._variants) or 'none'}")
        return self._variants[component]


class ModelPackageComponentContext:
    """The variant of a component that was chosen."""

    def __init__(self, component: str, variant: _Variant, options: ModelPackageOptions) -> None:
        """Made by `ModelPackageContext.select_component`."""
        self._component, self._variant, self._options = component, variant, options

    def get_selected_variant_name(self) -> str:
        """Return the variant's name."""
        return self._variant.name

    def get_selected_variant_folder_path(self) -> str:
        """Return the variant's folder, "" where it has none."""
        return "" if self._variant.folder is None else str(self._variant.folder)

    def create_session(self, sess_options: SessionOptions | None = None) -> InferenceSession:
        """Make a session of the variant's model.

        Args:
            sess_options: options; where None, those of the variant. Paths that the variant says are added where the options
                have none.

        Raises:
            Fail: the variant names no model.
            SardonyxError: as for `InferenceSession`.
        """
        variant = self._variant
        if variant.model is None:
            raise Fail(f'variant {variant.name!r} of component {self._component!r} has no executor_info["ort"]["model_file"]')
        options = SessionOptions() if sess_options is None else instance("sess_options", sess_options, SessionOptions).copy()
        said = options.session_config_entries
        for key, text in variant.session_options.items():
            if sess_options is None or (key in _PATH_KEYS and key not in said):
                options.add_session_config_entry(key, text)
        if sess_options is not None and options.has_providers():
            return InferenceSession(variant.model, options)
        name, given = self._options._provider, self._options._provider_options
        own = dict(given) if sess_options is not None else {**given, **variant.provider_options}
        return InferenceSession(variant.model, options, [(name, own)])


def _score(variant: _Variant, options: ModelPackageOptions) -> int | None:
    """Return how well a variant suits a provider, None where it does not."""
    name = options._provider
    if variant.provider != name or (variant.device is not None and variant.device.lower() != "cpu"):
        return None
    if name not in get_available_providers():
        return 0
    return _SCORES.get(get_model_compatibility_for_ep_devices([(name, options._provider_options)], variant.compatibility))


def _variant_of(contents: Contents, component: str, name: str) -> _Variant:
    body, folder = contents.variant(component, name), contents.variant_folder(component, name)
    where = f"executor_info[{_EXECUTOR!r}] of variant {name!r} of component {component!r}"
    says: Json = {}
    if _EXECUTOR in cast("Json", body.get("executor_info", {})):
        says = as_object(where, contents.executor_text(component, name, _EXECUTOR, must_exist=True))
    model = says.get("model_file")
    if model is not None and not isinstance(model, str):
        raise InvalidArgument(f"model_file in {where} is a path, got {model!r:.100}")
    options = _texts(where, says, "session_options")
    for key in options.keys() & _PATH_KEYS:
        options[key] = options[key] and str(contents.place().resolve(options[key], folder))
    return _Variant(
        name,
        folder,
        cast("str | None", body.get("ep")),  # checked against the schema, as is what follows
        cast("str | None", body.get("device")),
        str(body.get("compatibility_string", "")),
        None if model is None else contents.place().resolve(model, folder),
        options,
        _texts(where, says, "provider_options"),
    )


def _texts(where: str, says: Json, name: str) -> dict[str, str]:
    found = says.get(name, {})
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InvalidArgument(f"{name} in {where} is an object of texts, got {found!r:.100}")
    return dict(found)
