"""NN packages, which onert runs: one model, or several that are joined, in a folder or a ZIP archive.

    metadata/MANIFEST        what is in the package (`manifest.py`)
    metadata/model.cfg       where operations run, and options of the session (`config.py`)
    model.tflite             models, each of a format that is recognised by its content

One configuration file is that of all models; of as many as there are models, each is that of one.
"""

from __future__ import annotations

import json
import secrets
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.errors import InvalidArgument, InvalidGraph, NoSuchFile, SardonyxError, located
from sardonyx.formats import onnx
from sardonyx.formats.files import replaced
from sardonyx.formats.model_format import Loss, ModelFile, ModelFormat
from sardonyx.formats.models import load_file
from sardonyx.formats.nnpackage.config import Config, place_nodes, read_config, session_options
from sardonyx.formats.nnpackage.files import PackageFiles, checked_name, package_files
from sardonyx.formats.nnpackage.join import join
from sardonyx.formats.nnpackage.manifest import PLACE, Connection, End, Manifest, read_connections, read_manifest
from sardonyx.ir import Model
from sardonyx.trace import event

__all__ = ["NN_PACKAGE"]

_MARK = b"PK\x03\x04"
_MODEL = "model.onnx"


def _recognizes(file: ModelFile) -> bool:
    if file.is_folder and file.path is not None:
        return (file.path / PLACE).is_file()
    if not file.start.startswith(_MARK):
        return False
    try:
        package_files(file).read(PLACE)
    except NoSuchFile:
        return False
    except SardonyxError:
        return True  # a package that is damaged; whoever loads it says how
    return True


def _load(file: ModelFile) -> Model:
    files = package_files(file)
    manifest = read_manifest(files.read(PLACE))
    if not manifest.inputs and not manifest.connected_by:
        manifest = _of_first(manifest)
    configs = _configs(files, manifest)
    models: list[Model] = []
    try:
        for name, config in zip(manifest.models, configs, strict=True):
            models.append(_model(files, name))
            place_nodes(models[-1], config)
        model = _joined(files, manifest, models)
    except BaseException:
        for item in models:
            item.dismantle()
        raise
    file.stamps.update(files.stamps)
    return model


def _of_first(manifest: Manifest) -> Manifest:
    """Return the manifest of a package that is run by its first model."""
    return dataclasses.replace(manifest, models=manifest.models[:1], types=manifest.types[:1], connections=())


def _configs(files: PackageFiles, manifest: Manifest) -> list[Config]:
    found = [_config(files, name) for name in manifest.configs]
    if len(found) == len(manifest.models):
        return found
    entries: dict[str, str] = {}
    for config in found[:1]:
        entries.update(config.entries)
    return [Config(entries)] * len(manifest.models)


def _config(files: PackageFiles, name: str) -> Config:
    """Return what a configuration file says; nothing where it is not there, as in onert, whose own examples name such."""
    try:
        return read_config(files.read(_metadata(name)))
    except NoSuchFile:
        event("nnpackage.no_config", file=_metadata(name))
        return Config({})


def _model(files: PackageFiles, name: str) -> Model:
    inner = files.model_file(name)
    if inner.start.startswith(_MARK):
        raise InvalidGraph(f"model {name!r} of the package is an archive itself; expected a model")
    try:
        model = load_file(inner)
    except SardonyxError as error:
        raise located(error, f"model {name!r} of the package") from error
    model.path = Path(name)
    files.stamps.update(inner.stamps if inner.path is not None else {})
    return model


def _joined(files: PackageFiles, manifest: Manifest, models: list[Model]) -> Model:
    if manifest.inputs:
        return join(models, manifest.inputs, manifest.outputs, manifest.connections)
    if manifest.connected_by:
        return join(models, *_by_name(files, manifest, models))
    return models[0]


def _by_name(files: PackageFiles, manifest: Manifest, models: Sequence[Model]) -> tuple[list[End], list[End], list[Connection]]:
    """Return inputs, outputs and connections of a package whose tensors are joined by name."""
    place = _metadata(manifest.connected_by)
    whole, parts = read_connections(files.read(place), place)
    numbers = {checked_name(name): index for index, name in enumerate(manifest.models)}
    made: dict[str, End] = {}
    reads: list[tuple[str, End]] = []
    for part in parts:
        number = numbers.get(checked_name(part.file))
        if number is None:
            raise InvalidGraph(f"{place}: the manifest has no model {part.file!r}; it has {', '.join(manifest.models[:20])}")
        made.update({name: End(number, index) for index, name in enumerate(part.outputs)})
        reads += [(name, End(number, index)) for index, name in enumerate(part.inputs)]
    inputs = [end for name in whole.inputs for text, end in reads if text == name and name not in made]
    missing = [name for name in whole.outputs if name not in made]
    if missing:
        raise InvalidGraph(f"{place}: no part makes the output {missing[0]!r}")
    shared = [name for name in whole.inputs if sum(text == name for text, _ in reads) > 1]
    if shared:
        raise InvalidGraph(f"{place}: the input {shared[0]!r} is read by several parts; expected one")
    return inputs, [made[name] for name in whole.outputs], [Connection(made[name], end) for name, end in reads if name in made]


def _metadata(name: str) -> str:
    return f"metadata/{checked_name(name)}"


def _options(file: ModelFile) -> Mapping[str, str]:
    files = package_files(file)
    manifest = read_manifest(files.read(PLACE))
    found: dict[str, str] = {}
    for name in reversed(manifest.configs):
        found.update(session_options(_config(files, name)))
    return found


def _save(model: Model, path: Path) -> Sequence[Loss]:
    """Write a package around a model in ONNX's format: an archive where the path ends in .zip, else a folder."""
    manifest = {
        "major-version": "1",
        "minor-version": "3",
        "patch-version": "0",
        "configs": [],
        "models": [_MODEL],
        "model-types": ["onnx"],
    }
    text = json.dumps(manifest, indent=2) + "\n"
    if path.suffix.lower() == ".zip":
        with replaced(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(PLACE, text)
            archive.writestr(_MODEL, onnx.to_bytes(model))
        return ()
    folder = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        (folder / PLACE).parent.mkdir(parents=True)
        (folder / PLACE).write_text(text, encoding="utf-8")
        onnx.save(model, folder / _MODEL)
        if path.is_dir() and not (path / PLACE).is_file():
            raise InvalidArgument(f"{str(path)!r} is a folder that holds no package; it is not replaced, choose another name")
        if path.is_dir():
            shutil.rmtree(path)
        folder.replace(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ()


NN_PACKAGE = ModelFormat("NNPackage", (".nnpackage", ".zip"), _recognizes, _load, _save, options=_options)
"""NN packages, folders and archives."""
