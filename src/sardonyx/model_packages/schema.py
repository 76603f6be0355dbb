"""What the JSON of a model package may say.

manifest.json   schema_version, components; package_name, package_version, description, layout, shared_assets, additional_metadata
a component     variants; component_name, additional_metadata       an object, or the path of a JSON file or its folder
a variant       variant_directory, ep, device, compatibility_string, executor_info, additional_metadata
executor_info   a name -> an object, or the path of a JSON file in the variant's folder
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from sardonyx.errors import InvalidArgument
from sardonyx.model_packages.paths import is_asset_uri

__all__ = ["LAYOUTS", "Json", "as_object", "check_component", "check_manifest", "check_variant", "dump", "parse", "schema_version"]

Json = dict[str, object]
"""An object of JSON."""
LAYOUTS = ("portable", "installed")
"""Whether what a package refers to lies in it, or anywhere on the machine."""

_MAJOR, _NEWEST_MINOR = 1, 0
_MANIFEST_TEXTS = ("package_name", "package_version", "description", "layout")
_MANIFEST = frozenset({"schema_version", "components", "shared_assets", "additional_metadata", *_MANIFEST_TEXTS})
_COMPONENT = frozenset({"component_name", "variants", "additional_metadata"})
_VARIANT_TEXTS = ("variant_directory", "ep", "device", "compatibility_string")
_VARIANT = frozenset({"executor_info", "additional_metadata", *_VARIANT_TEXTS})


def as_object(what: str, text: str | bytes) -> Json:
    """Return a text's object; raises InvalidArgument, which begins with `what`, where it is no JSON, or no object."""
    return _object(what, parse(what, text))


def parse(what: str, text: str | bytes) -> object:
    """Return a text's value; raises InvalidArgument, which begins with `what`, where it is no JSON."""
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        raise InvalidArgument(f"{what}: this is no JSON: {error}") from None


def dump(value: object) -> str:
    """Return JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def schema_version(manifest: Json) -> tuple[int, int]:
    """Return the version of a manifest; raises InvalidArgument where it has none, or one that is not read here."""
    value = manifest.get("schema_version")
    if value is None:
        raise InvalidArgument("manifest.json has no schema_version")
    found = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,9}))?", str(value)) if isinstance(value, (str, int)) else None
    if found is None or isinstance(value, bool):
        raise InvalidArgument(f'schema_version in manifest.json is a text such as "1.0", got {value!r:.100}')
    major, minor = int(found[1]), int(found[2] or 0)
    if major != _MAJOR:
        raise InvalidArgument(f"schema_version {major}.{minor} of manifest.json is not read here; {_MAJOR}.x is")
    return major, minor


def check_manifest(manifest: Json, *, is_strict: bool) -> bool:
    """Check a manifest but for its components, and return whether fields that nobody knows are refused in these too.

    Raises:
        InvalidArgument: it breaks the schema. Unknown fields do where `is_strict`, and the version is one that is known here.
    """
    is_strict = is_strict and schema_version(manifest)[1] <= _NEWEST_MINOR
    _check_fields("manifest.json", manifest, _MANIFEST, _MANIFEST_TEXTS, is_strict)
    if manifest.get("layout", LAYOUTS[0]) not in LAYOUTS:
        raise InvalidArgument(f"layout in manifest.json is one of {', '.join(LAYOUTS)}, got {manifest['layout']!r}")
    if "components" not in manifest:
        raise InvalidArgument("manifest.json has no components")
    for name, value in _object("components in manifest.json", manifest["components"]).items():
        if not isinstance(value, (str, dict)):
            raise InvalidArgument(f"component {name!r} in manifest.json is an object or a path, got {value!r:.100}")
    for uri, path in _object("shared_assets in manifest.json", manifest.get("shared_assets", {})).items():
        if not is_asset_uri(uri):
            raise InvalidArgument(f"a key of shared_assets in manifest.json is sha256: and 64 digits, got {uri!r:.100}")
        if not isinstance(path, str):
            raise InvalidArgument(f"shared_assets[{uri!r}] in manifest.json is a path, got {path!r:.100}")
    return is_strict


def check_component(name: str, component: Json, *, is_strict: bool) -> None:
    """Raise InvalidArgument where a component, with its variants, breaks the schema."""
    _check_fields(f"component {name!r}", component, _COMPONENT, ("component_name",), is_strict)
    if "variants" not in component:
        raise InvalidArgument(f"component {name!r} has no variants")
    for variant, body in _object(f"variants of component {name!r}", component["variants"]).items():
        check_variant(variant, _object(f"variant {variant!r}", body), is_strict=is_strict)


def check_variant(name: str, variant: Json, *, is_strict: bool) -> None:
    """Raise InvalidArgument where a variant breaks the schema."""
    _check_fields(f"variant {name!r}", variant, _VARIANT, _VARIANT_TEXTS, is_strict)
    for key, value in _object(f"executor_info of variant {name!r}", variant.get("executor_info", {})).items():
        if not isinstance(value, (str, dict)):
            raise InvalidArgument(f"executor_info[{key!r}] of variant {name!r} is an object or a path, got {value!r:.100}")


def _check_fields(what: str, body: Json, known: Iterable[str], texts: Iterable[str], is_strict: bool) -> None:
    for name, value in body.items():
        if is_strict and name not in known:
            raise InvalidArgument(f"{what} has a field {name!r}, which nobody knows")
        if name in texts and not isinstance(value, str):
            raise InvalidArgument(f"{name} of {what} is a text, got {value!r:.100}")


def _object(what: str, value: object) -> Json:
    if not isinstance(value, dict):
        raise InvalidArgument(f"{what}: expected an object, got {value!r:.100}")
    return value
