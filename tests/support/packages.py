"""NN packages for tests: models in the text form, in a folder or an archive."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from sardonyx.formats.models import save
from sardonyx.ir.text import parse_model

ADD = "graph add(ifm1: float[2], ifm2: float[2]) -> (add: float[2]) {\nadd = Add(ifm1, ifm2)\n}"
SQRT = "graph sqrt(add: float[2]) -> (ofm: float[2]) {\nofm = Sqrt(add)\n}"
NEG = "graph neg(add: float[2]) -> (ofm: float[2]) {\nofm = Neg(add)\n}"

SQRT_AND_NEG: Mapping[str, object] = {
    "major-version": "1",
    "minor-version": "3",
    "patch-version": "0",
    "models": ["add.onnx", "sqrt.onnx", "neg.onnx"],
    "model-types": ["onnx", "onnx", "onnx"],
    "model-connect": [{"from": "0:0:0", "to": ["1:0:0", "2:0:0"]}],
    "pkg-inputs": ["0:0:0", "0:0:1"],
    "pkg-outputs": ["1:0:0", "2:0:0"],
}
"""The example part_add_sqrt of onert's specification (version 1.3.0), with another operator in one branch."""
MODELS: Mapping[str, str] = {"add.onnx": ADD, "sqrt.onnx": SQRT, "neg.onnx": NEG}


def make_package(
    folder: Path, manifest: Mapping[str, object] = SQRT_AND_NEG, models: Mapping[str, str] = MODELS, **texts: str
) -> Path:
    """Write a package; `texts` are files of the folder metadata, by their names with `_` for `.`."""
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "MANIFEST").write_text(json.dumps(manifest))
    for name, text in texts.items():
        (folder / "metadata" / name.replace("_", ".")).write_text(text)
    for name, text in models.items():
        save(parse_model(f"opset 21\n{text}"), folder / name)
    return folder


def archive_of(folder: Path, path: Path, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write the archive of a package that is a folder."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return path
