"""`ModelPackage`: reads, makes and changes a model package; the interface of onnxruntime's.

    package = ModelPackage()
    package.set_component_inline("decoder", '{"variants": {}}')
    package.set_variant("decoder", "cpu", '{"ep": "CPUExecutionProvider", "variant_directory": "decoder/cpu"}')
    package.set_variant_executor_info_inline("decoder", "cpu", "ort", '{"model_file": "model.onnx"}')
    package.commit("folder")                             then put model.onnx into folder/decoder/cpu

JSON is given and returned as text. Changes are in memory until `commit` writes them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import cast

from sardonyx.arguments import as_path, as_text
from sardonyx.errors import Fail, InvalidArgument, NoSuchFile
from sardonyx.model_packages.contents import Component, Contents, read_contents
from sardonyx.model_packages.paths import asset_folder, directory_uri
from sardonyx.model_packages.schema import LAYOUTS, Json, as_object, check_component, check_variant, dump, parse
from sardonyx.model_packages.writing import inlined, write_copy, write_in_place
from sardonyx.values.named import NamedEnum

__all__ = ["ModelPackage", "ModelPackageWriteMode"]

_SCOPES = ("manifest", "component", "variant")


class ModelPackageWriteMode(NamedEnum):
    """Where components are written: each where it is, or all into the manifest."""

    PRESERVE = 0
    DENSE = 1


class ModelPackage:
    """A folder of models in variants, with a manifest; errors of all methods name the component or the variant."""

    def __init__(self) -> None:
        """Make a package without components, which lies nowhere yet."""
        self._held: Contents | None = Contents()
        self._orphans: list[Path] = []

    @staticmethod
    def open(
        package_root: str | os.PathLike[str],
        allow_external_paths: bool = False,
        follow_symlinks: bool = True,
        strict_unknown_fields: bool = True,
    ) -> ModelPackage:
        """Read a package.

        Args:
            package_root: its folder.
            allow_external_paths: whether paths may leave it although its layout is portable.
            follow_symlinks: no effect: what a link leads to is what counts, in onnxruntime too.
            strict_unknown_fields: whether fields that nobody knows are errors.

        Raises:
            NoSuchFile: there is no such folder, or a file or folder that the package names.
            InvalidArgument: it breaks the schema, or a path leads out of it.
        """
        made = ModelPackage()
        root = Path(as_path("package_root", package_root))
        made._held = read_contents(root, allows_external=allow_external_paths, is_strict=strict_unknown_fields)
        return made

    @staticmethod
    def compute_directory_hash(source_dir: str | os.PathLike[str]) -> str:
        """Return the URI of a folder, by the names and contents of its files; raises as `add_shared_asset` does."""
        return directory_uri(Path(as_path("source_dir", source_dir)))

    def get_info(self) -> Json:
        """Return names, version, layout, components with their variants, and shared folders."""
        return self._contents.info()

    def get_component_json(self, component_name: str) -> str:
        """Return what a component's JSON says; raises NoSuchFile where there is none of the name."""
        return dump(self._contents.component(component_name).body)

    def get_variant_json(self, component_name: str, variant_name: str) -> str:
        """Return what a variant's JSON says; raises NoSuchFile where there is none of the name."""
        return dump(self._contents.variant(component_name, variant_name))

    def set_metadata(self, name: str | None = None, version: str | None = None, description: str | None = None) -> None:
        """Set what the manifest says of the whole package; what is None stays as it is."""
        for key, value in (("package_name", name), ("package_version", version), ("description", description)):
            if value is not None:
                self._contents.manifest[key] = as_text(key.removeprefix("package_"), value)

    def set_layout(self, layout: str) -> None:
        """Set whether paths stay in the package, "portable", or may leave it, "installed"."""
        if layout not in LAYOUTS:
            raise InvalidArgument(f"layout is one of {', '.join(LAYOUTS)}, got {layout!r}")
        self._contents.manifest["layout"] = layout

    def set_additional_metadata_json(
        self, scope: str, component_name: str | None = None, variant_name: str | None = None, json: str | None = None
    ) -> None:
        """Set any JSON beside what the schema has, or take it away where `json` is None.

        Args:
            scope: "manifest", "component" or "variant".
            component_name: the component, but for the first scope.
            variant_name: the variant, for the last.
            json: the text.

        Raises:
            InvalidArgument: another scope, a name that is missing, or no JSON.
            NoSuchFile: nothing of such a name.
        """
        if scope not in _SCOPES:
            raise InvalidArgument(f"scope is one of {', '.join(_SCOPES)}, got {scope!r}")
        if scope == "manifest":
            body = self._contents.manifest
        elif component_name is None or (scope == "variant" and variant_name is None):
            raise InvalidArgument(f"component_name{' and variant_name' * (scope == 'variant')} must be given for scope {scope!r}")
        elif scope == "component" or variant_name is None:
            body = self._contents.component(component_name).body
        else:
            body = self._contents.variant(component_name, variant_name)
        body.pop("additional_metadata", None)
        if json is not None:
            body["additional_metadata"] = parse("json", as_text("json", json))

    def set_component_inline(self, name: str, component_json: str) -> None:
        """Put a component into the manifest, in place of one of the same name; raises InvalidArgument where its JSON is wrong."""
        body = as_object(f"component {name!r}", as_text("component_json", component_json))
        check_component(as_text("name", name), body, is_strict=True)
        self._contents.components[name] = Component(body)

    def set_component_external(self, name: str, path: str) -> None:
        """Keep a component in a file of its own, or in component.json of a folder; its body stays, or is without variants.

        Raises:
            Fail: the package lies nowhere yet.
            InvalidArgument: the path leads out of the package.
        """
        contents = self._contents
        if contents.root is None:
            raise Fail("set_component_external: the package lies nowhere yet; commit it to a folder first")
        found = contents.place().resolve(as_text("path", path))
        file = found if found.suffix == ".json" else found / "component.json"
        before = contents.components.get(as_text("name", name))
        if file.is_file():
            body = as_object(f"component {name!r}", file.read_bytes())
            check_component(name, body, is_strict=True)
        else:
            body = {"variants": {}} if before is None else before.body
        contents.components[name] = Component(body, path, file)

    def remove_component(self, name: str) -> None:
        """Take a component out, if there is one; `prune` deletes its folder."""
        found = self._contents.components.pop(name, None)
        if found is not None and found.file is not None:
            self._orphans.append(found.file.parent if found.file.name == "component.json" else found.file)

    def set_variant(self, component_name: str, variant_name: str, variant_json: str) -> None:
        """Put a variant into a component, in place of one of the same name.

        Raises:
            InvalidArgument: its JSON is wrong.
            NoSuchFile: there is no such component.
        """
        body = as_object(f"variant {variant_name!r}", as_text("variant_json", variant_json))
        check_variant(as_text("variant_name", variant_name), body, is_strict=True)
        self._contents.component(component_name).variants[variant_name] = body

    def remove_variant(self, component_name: str, variant_name: str) -> None:
        """Take a variant out, if there is one; `prune` deletes its folder where no other variant has it."""
        component = self._contents.component(component_name)
        if variant_name in component.variants:
            folder = self._contents.variant_folder(component_name, variant_name)
            del component.variants[variant_name]
            if folder is not None:
                self._orphans.append(folder)

    def set_variant_executor_info_inline(self, component_name: str, variant_name: str, namespace_key: str, info_json: str) -> None:
        """Set what a variant says to an executor, such as "ort".

        Raises:
            InvalidArgument: it is no JSON, or no object.
            NoSuchFile: there is no such component or variant.
        """
        self._executors(component_name, variant_name)[as_text("namespace_key", namespace_key)] = as_object("info_json", info_json)

    def set_variant_executor_info_external(self, component_name: str, variant_name: str, namespace_key: str, path: str) -> None:
        """Have a variant say what a JSON file of its folder says to an executor; raises NoSuchFile for no such variant."""
        self._executors(component_name, variant_name)[as_text("namespace_key", namespace_key)] = as_text("path", path)

    def remove_variant_executor_info(self, component_name: str, variant_name: str, namespace_key: str) -> None:
        """Take out what a variant says to an executor, if anything; raises NoSuchFile where there is no such variant."""
        self._executors(component_name, variant_name).pop(namespace_key, None)

    def add_shared_asset(self, source_dir: str | os.PathLike[str], expected_uri: str | None = None, copy_in: bool = True) -> str:
        """Add a folder that variants refer to by its URI, and return the URI.

        Args:
            source_dir: the folder.
            expected_uri: what the URI has to be.
            copy_in: copy the folder into the package when it is written; otherwise the package refers to it where it is.

        Raises:
            NoSuchFile: there is no such folder.
            InvalidArgument: a link lies in it.
            Fail: its URI is not `expected_uri`; or the package is portable and refers to nothing outside of it.
        """
        folder = Path(as_path("source_dir", source_dir))
        uri = directory_uri(folder)
        if expected_uri is not None and expected_uri != uri:
            raise Fail(f"the hash of {str(folder)!r} is {uri}, not {expected_uri}")
        if copy_in:
            self._contents.added[uri] = folder.resolve()
        elif not self._contents.place().is_free:
            raise Fail("add_shared_asset: copy_in=False refers to a folder outside of the package, which is portable")
        else:
            cast("Json", self._contents.manifest.setdefault("shared_assets", {}))[uri] = str(folder.resolve())
        return uri

    def remove_shared_asset(self, uri: str) -> None:
        """Forget a shared folder, and delete it at once where it lies in `shared_assets` of the package."""
        contents = self._contents
        contents.added.pop(uri, None)
        named = cast("Json", contents.manifest.get("shared_assets", {}))
        named.pop(uri, None)
        if contents.root is not None and uri in contents.assets():
            shutil.rmtree(asset_folder(contents.root, uri))

    def resolve_asset_uri(self, uri: str) -> str:
        """Return the folder of a shared asset; raises NoSuchFile where the package has none of the URI."""
        found = self._contents.assets().get(as_text("uri", uri))
        if found is None:
            raise NoSuchFile(f"the package has no asset {uri!r}")
        return str(found)

    def resolve_string_ref(self, string_ref: str, base_dir: str | os.PathLike[str] | None = None, must_exist: bool = False) -> str:
        """Return what a text of the package refers to, as `Place.resolve` does.

        Args:
            string_ref: a path, or an asset's URI with or without a path in it.
            base_dir: the folder that a path begins in; the package's where None.
            must_exist: refuse what is not there.

        Raises:
            InvalidArgument: it leads out of the package.
            NoSuchFile: there is no such asset, or nothing of the name and `must_exist`.
        """
        base = None if base_dir is None else Path(as_path("base_dir", base_dir)).absolute()
        return str(self._contents.place().resolve(as_text("string_ref", string_ref), base, must_exist=must_exist))

    def commit(
        self, dest_root: str | os.PathLike[str] | None = None, mode: ModelPackageWriteMode = ModelPackageWriteMode.PRESERVE
    ) -> None:
        """Write the package.

        Args:
            dest_root: an empty folder that becomes the package's, to which all files of variants and assets are copied; None for
                its own folder.
            mode: where components are written.

        Raises:
            Fail: the package lies nowhere yet; the folder is not empty; or a variant says to an executor what stands in a file,
                which cannot be put into the manifest.
            InvalidArgument: a path leads out of the package.
        """
        contents = self._contents
        contents.check_paths(must_exist=False)
        if ModelPackageWriteMode(mode) is ModelPackageWriteMode.DENSE:
            contents = inlined(contents)
        if dest_root is not None:
            contents = write_copy(contents, Path(as_path("dest_root", dest_root)))
            self._orphans.clear()
        elif contents.root is None:
            raise Fail("commit: the package lies nowhere yet; give dest_root")
        else:
            write_in_place(contents, contents.root)
        self._held = contents

    def prune(self) -> None:
        """Delete the folders of components and variants that were taken out, which nothing else of the package has."""
        contents = self._contents
        used = {contents.variant_folder(name, variant) for name, held in contents.components.items() for variant in held.variants}
        used |= {component.file for component in contents.components.values()}
        for orphan in self._orphans:
            if contents.root is None or orphan == contents.root or not orphan.is_relative_to(contents.root):
                continue
            if any(path is not None and path.is_relative_to(orphan) for path in used):
                continue
            if orphan.is_dir():
                shutil.rmtree(orphan)
            else:
                orphan.unlink(missing_ok=True)
        self._orphans.clear()

    def close(self) -> None:
        """Forget the package; every other method is an InvalidArgument then."""
        self._held = None

    @property
    def _contents(self) -> Contents:
        if self._held is None:
            raise InvalidArgument("the model package is closed")
        return self._held

    def _executors(self, component: str, variant: str) -> Json:
        body = self._contents.variant(as_text("component_name", component), as_text("variant_name", variant))
        return cast("Json", body.setdefault("executor_info", {}))  # checked against the schema
