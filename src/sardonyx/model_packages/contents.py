"""A model package as it was read, or as it is being made: its manifest, and the bodies of its components."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument, NoSuchFile
from sardonyx.model_packages.paths import Place, asset_folder, uri_of_folder
from sardonyx.model_packages.schema import LAYOUTS, Json, as_object, check_component, check_manifest, dump, parse, schema_version

__all__ = ["Component", "Contents", "read_contents"]

T = TypeVar("T")


@dataclasses.dataclass(slots=True)
class Component:
    """One of the models of a package."""

    body: Json
    """What its JSON says."""
    path: str | None = None
    """Where the manifest says that its file or folder lies; None where the body stands in the manifest."""
    file: Path | None = None
    """The file that `path` names."""

    @property
    def variants(self) -> dict[str, Json]:
        """Name -> body of each variant."""
        return cast("dict[str, Json]", self.body["variants"])  # checked against the schema


@dataclasses.dataclass(slots=True)
class Contents:
    """A package in memory."""

    root: Path | None = None
    """Its folder; None until it is written."""
    manifest: Json = dataclasses.field(default_factory=dict)
    """What manifest.json says besides its components."""
    components: dict[str, Component] = dataclasses.field(default_factory=dict)
    """Name -> component, in the order of the manifest."""
    added: dict[str, Path] = dataclasses.field(default_factory=dict)
    """Asset URI -> a folder that is copied into the package when it is written."""
    allows_external: bool = False
    """Whether paths may leave the package whatever its layout."""

    @property
    def layout(self) -> str:
        """Whether the package refers to files outside of it."""
        return str(self.manifest.get("layout", LAYOUTS[0]))

    @property
    def version(self) -> tuple[int, int]:
        """The version of its schema; (0, 0) until it is written."""
        return schema_version(self.manifest) if "schema_version" in self.manifest else (0, 0)

    def place(self) -> Place:
        """Return what paths are resolved by."""
        return Place(self.root, self.allows_external or self.layout == "installed", self.assets())

    def assets(self) -> dict[str, Path]:
        """Return where each shared folder lies: as the manifest says, in `shared_assets`, or where it is copied from.

        Raises:
            InvalidArgument: a path of the manifest leads out of the package.
        """
        bare = Place(self.root, self.allows_external or self.layout == "installed", {})
        named = cast("dict[str, str]", self.manifest.get("shared_assets", {}))  # checked against the schema
        found = {uri: bare.resolve(path) for uri, path in named.items()}
        if self.root is not None and (self.root / "shared_assets").is_dir():
            for folder in sorted((self.root / "shared_assets").iterdir()):
                uri = uri_of_folder(folder.name)
                if uri is not None and folder.is_dir():
                    found.setdefault(uri, asset_folder(self.root, uri))
        return found | {uri: folder for uri, folder in self.added.items() if uri not in found}

    def component(self, name: str) -> Component:
        """Return a component; raises NoSuchFile where there is none of the name."""
        if name not in self.components:
            raise NoSuchFile(
                f"the model package has no component {name!r}; it has {', '.join(map(repr, self.components)) or 'none'}"
            )
        return self.components[name]

    def variant(self, component: str, name: str) -> Json:
        """Return a variant's body; raises NoSuchFile where there is none of the name."""
        variants = self.component(component).variants
        if name not in variants:
            raise NoSuchFile(f"component {component!r} has no variant {name!r}; it has {', '.join(map(repr, variants)) or 'none'}")
        return variants[name]

    def folder(self, component: str) -> Path | None:
        """Return the folder that paths of a component's variants begin in."""
        file = self.component(component).file
        return self.root if file is None else file.parent

    def variant_folder(self, component: str, name: str, *, must_exist: bool = False) -> Path | None:
        """Return a variant's folder, None where it is not there.

        Raises:
            InvalidArgument: its path leads out of the package.
            NoSuchFile: it is not there, `must_exist`, and the variant names it.
        """
        body, place = self.variant(component, name), self.place()
        if self.root is None and not place.is_free:
            return None
        named = "variant_directory" in body
        found = place.resolve(str(body.get("variant_directory", name)), self.folder(component), must_exist=must_exist and named)
        return found if found.exists() else None

    def executor_text(self, component: str, name: str, key: str, *, must_exist: bool = False) -> str:
        """Return what a variant says to an executor, as JSON; "" where its file is not there.

        Raises:
            NoSuchFile: its file is not there, and `must_exist`.
            InvalidArgument: its file is no JSON, or its path leads out of the package.
        """
        value = cast("Json", self.variant(component, name)["executor_info"])[key]
        if isinstance(value, dict):
            return dump(value)
        folder = self.variant_folder(component, name)
        if folder is None and must_exist:
            raise NoSuchFile(f"variant {name!r}: executor_info[{key!r}] is a file in its folder, which does not exist")
        file = None if folder is None else self.place().resolve(str(value), folder, must_exist=must_exist)
        if file is None or not file.is_file():
            return ""
        text = file.read_text(encoding="utf-8")
        parse(f"executor_info[{key!r}] of variant {name!r}, {str(file)!r}", text)
        return text

    def check_paths(self, *, must_exist: bool) -> None:
        """Raise InvalidArgument where a path leads out of the package; where `must_exist`, NoSuchFile for what is not there."""
        for name, component in self.components.items():
            for variant, body in component.variants.items():
                self.variant_folder(name, variant, must_exist=must_exist)
                for key in cast("Json", body.get("executor_info", {})):
                    self.executor_text(name, variant, key, must_exist=must_exist)

    def info(self) -> Json:
        """Return the package as a dictionary; what a path that leads nowhere names is None, or ""."""
        texts = {key: self.manifest.get(key) for key in ("package_name", "package_version", "description")}
        return {
            "schema_version_major": self.version[0],
            "schema_version_minor": self.version[1],
            **texts,
            "layout": self.layout,
            "additional_metadata_json": _metadata(self.manifest),
            "components": [
                {
                    "name": name,
                    "additional_metadata_json": _metadata(component.body),
                    "variants": [self._variant_info(name, variant) for variant in component.variants],
                }
                for name, component in self.components.items()
            ],
            "shared_assets": [{"uri": uri, "resolved_path": str(path)} for uri, path in self.assets().items()],
        }

    def _variant_info(self, component: str, name: str) -> Json:
        body = self.variant(component, name)
        folder = _unless_invalid(lambda: self.variant_folder(component, name))
        keys = cast("Json", body.get("executor_info", {}))  # checked against the schema
        return {
            "name": name,
            "variant_directory": None if folder is None else str(folder),
            **{key: body.get(key) for key in ("ep", "device", "compatibility_string")},
            "additional_metadata_json": _metadata(body),
            "executor_info": {key: self._shown_text(component, name, key) for key in keys},
        }

    def _shown_text(self, component: str, name: str, key: str) -> str:
        return _unless_invalid(lambda: self.executor_text(component, name, key)) or ""


def read_contents(root: Path, *, allows_external: bool = False, is_strict: bool = True) -> Contents:
    """Read a package.

    Args:
        root: its folder.
        allows_external: whether its paths may leave it whatever its layout.
        is_strict: whether fields that nobody knows are refused.

    Raises:
        NoSuchFile: a file or folder of it is not there.
        InvalidArgument: it breaks the schema, or a path of it leads elsewhere.
    """
    if not root.is_dir():
        raise NoSuchFile(f"the model package {str(root)!r} is no folder")
    root = root.resolve()
    if not (root / "manifest.json").is_file():
        raise NoSuchFile(f"the model package {str(root)!r} has no manifest.json")
    manifest = as_object("manifest.json", (root / "manifest.json").read_bytes())
    is_strict = check_manifest(manifest, is_strict=is_strict)
    found = Contents(root, manifest, allows_external=allows_external)
    place = found.place()
    for name, value in cast("Json", manifest.pop("components")).items():
        component = Component(value) if isinstance(value, dict) else _external(name, str(value), place)
        check_component(name, component.body, is_strict=is_strict)
        found.components[name] = component
    found.check_paths(must_exist=True)
    return found


def _unless_invalid(get: Callable[[], T]) -> T | None:
    """Return what a function returns, None where what it reads is wrong in a package that is being made."""
    try:
        return get()
    except InvalidArgument:
        return None


def _external(name: str, path: str, place: Place) -> Component:
    found = place.resolve(path, must_exist=True)
    file = found / "component.json" if found.is_dir() else found
    if not file.is_file():
        raise NoSuchFile(f"component {name!r}: {str(file)!r} does not exist")
    return Component(as_object(f"component {name!r}", file.read_bytes()), path, file)


def _metadata(body: Json) -> str | None:
    return dump(body["additional_metadata"]) if "additional_metadata" in body else None
