"""Writes model packages: in their own folders, or as a whole in another one."""

from __future__ import annotations

import copy
import json
import os
import shutil
from pathlib import Path
from typing import cast

from sardonyx.errors import Fail
from sardonyx.model_packages.contents import Component, Contents
from sardonyx.model_packages.paths import asset_folder
from sardonyx.model_packages.schema import LAYOUTS, Json

__all__ = ["inlined", "write_copy", "write_in_place"]

_VERSION = "1.0"


def write_in_place(contents: Contents, root: Path) -> None:
    """Write a package's JSON files, each at once or not at all, and the assets that were added, which are a part of it then."""
    contents.manifest.setdefault("schema_version", _VERSION)
    while contents.added:
        uri, folder = contents.added.popitem()
        if not asset_folder(root, uri).exists():
            shutil.copytree(folder, asset_folder(root, uri))
    for component in contents.components.values():
        if component.file is not None:
            _write(component.file, component.body)
    _write(root / "manifest.json", _manifest(contents))


def write_copy(contents: Contents, root: Path) -> Contents:
    """Write a package with all that lies in it to an empty folder, and return it as it is there.

    Raises:
        Fail: the folder is not empty.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise Fail(f"a model package is written to an empty folder, which {str(root)!r} is not")
    root.mkdir(parents=True, exist_ok=True)
    root = root.resolve()
    made = Contents(root, dict(contents.manifest), allows_external=contents.allows_external)
    for uri, folder in contents.assets().items():
        shutil.copytree(folder, asset_folder(root, uri))
    made.manifest.pop("shared_assets", None)  # each lies where a package keeps it
    for name, component in contents.components.items():
        made.components[name] = _copied(contents, name, component, root)
    write_in_place(made, root)
    return made


def inlined(contents: Contents) -> Contents:
    """Return a package whose components stand in its manifest.

    Raises:
        Fail: a variant keeps what it says to an executor in a file.
    """
    made = Contents(contents.root, contents.manifest, dict(contents.components), contents.added, contents.allows_external)
    for name, component in contents.components.items():
        for variant, body in component.variants.items():
            texts = [key for key, value in cast("Json", body.get("executor_info", {})).items() if isinstance(value, str)]
            if texts:
                raise Fail(
                    f"executor_info[{texts[0]!r}] of variant {variant!r} of component {name!r} is a file: put it in by "
                    "set_variant_executor_info_inline before components are written into the manifest"
                )
        if component.file is not None and contents.root is not None:
            made.components[name] = Component(_moved(component, component.file.parent, contents.root))
    return made


def _moved(component: Component, old: Path, new: Path) -> Json:
    """Return a component's body with folders of variants as they are named from another folder."""
    body = copy.deepcopy(component.body)
    for name, variant in cast("dict[str, Json]", body["variants"]).items():
        folder = str(variant.get("variant_directory", name))
        if not os.path.isabs(folder):
            variant["variant_directory"] = Path(os.path.relpath(old / folder, new)).as_posix()
    return body


def _copied(contents: Contents, name: str, component: Component, root: Path) -> Component:
    """Return a component as it is in a copy of its package, with its variants' folders copied there."""
    if component.file is None:
        made = Component(component.body)
    else:
        inside = contents.root is not None and component.file.is_relative_to(contents.root)
        place = (
            component.file.relative_to(contents.root) if inside and contents.root is not None else Path(name, component.file.name)
        )
        named = str(place.parent if place.name == "component.json" else place)
        made = Component(component.body, named, root / place)
    for variant, body in component.variants.items():
        source = contents.variant_folder(name, variant)
        target = (root if made.file is None else made.file.parent) / str(body.get("variant_directory", variant))
        if source is not None and source.is_dir() and not target.exists() and Path(os.path.normpath(target)).is_relative_to(root):
            shutil.copytree(source, target)
    return made


def _manifest(contents: Contents) -> Json:
    components = {
        name: component.body if component.path is None else component.path for name, component in contents.components.items()
    }
    rest = {key: value for key, value in contents.manifest.items() if key not in ("schema_version", "layout")}
    layout = {"layout": contents.manifest.get("layout", LAYOUTS[0])}
    return {"schema_version": contents.manifest["schema_version"], **layout, "components": components, **rest}


def _write(path: Path, body: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(body, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    part.replace(path)
