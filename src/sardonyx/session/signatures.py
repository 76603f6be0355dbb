"""Signatures of models: names under which a model, or one of several graphs of its file, is run.

session.get_signature_list()                      {"serving_default": {"inputs": ["x"], "outputs": ["y"]}}
runner = session.get_signature_runner("serving_default")
runner(x=array)                                   {"y": array}
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from sardonyx.dtypes import OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.formats.tflite import SIGNATURES
from sardonyx.spelling import nearest

__all__ = ["Runs", "SignatureRunner", "chosen", "graph_of", "signatures_of"]


class Runs(Protocol):
    """A session that computes outputs."""

    def compute_values(self, output_names: list[str], input_feed: Mapping[str, OnnxValue], run_options: None, /) -> list[OnnxValue]:
        """Compute outputs."""


class SignatureRunner:
    """Runs a signature: inputs by its names for them, outputs by its names for these."""

    def __init__(self, key: str, session: Runs, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> None:
        """Take the signature's name, the session of its graph, and its names -> those of the graph."""
        self.key, self._session, self._inputs, self._outputs = key, session, inputs, outputs

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return list(self._inputs)

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return list(self._outputs)

    def __call__(self, **inputs: OnnxValue) -> dict[str, OnnxValue]:
        """Compute the outputs, by name; raises InvalidArgument for a name that the signature lacks."""
        for name in inputs:
            if name not in self._inputs:
                raise InvalidArgument(
                    f"the signature {self.key!r} has no input {name!r}; it has {', '.join(map(repr, self._inputs)) or 'none'}"
                )
        missing = [name for name in self._inputs if name not in inputs]
        if missing:
            raise InvalidArgument(f"the signature {self.key!r} needs the input {missing[0]!r}, which is not given")
        names = list(dict.fromkeys(self._outputs.values()))
        feed = {self._inputs[name]: value for name, value in inputs.items()}
        results = dict(zip(names, self._session.compute_values(names, feed, None), strict=True))
        return {name: results[value] for name, value in self._outputs.items()}


def signatures_of(metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return the signatures in a model's metadata, as JSON has them: Any, by key, with subgraph, inputs and outputs."""
    try:
        found = json.loads(metadata.get(SIGNATURES, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def chosen(signatures: Mapping[str, Any], key: str | None) -> str:
    """Return the signature that is meant, the only one where none is named; raises InvalidArgument where there is no such."""
    if key is None and len(signatures) == 1:
        return next(iter(signatures))
    if key is None or key not in signatures:
        close = nearest(key or "", list(signatures))
        hint = f"; did you mean {close!r}?" if close else ""
        raise InvalidArgument(f"there is no signature {key!r}; the model has {', '.join(map(repr, signatures)) or 'none'}{hint}")
    return key


def graph_of(given: object, index: int) -> Any:
    """Return a graph of a file as a model; Any, since sessions take it as they take anything.

    Raises:
        InvalidArgument: the session has kept neither path nor bytes.
    """
    with without_fork():
        from sardonyx.formats.flat.schema_circle import CIRCLE  # which few sessions need, as the others
        from sardonyx.formats.flat.schema_tflite import TFLITE
        from sardonyx.formats.models import model_file
        from sardonyx.formats.opened import open_model
        from sardonyx.formats.tflite.load import load

    path = Path(os.fsdecode(given)) if isinstance(given, (str, os.PathLike)) else None
    if path is None and not isinstance(given, bytes):
        raise InvalidArgument("the signature has a graph of its own, which is read from the file; give the session a path or bytes")
    file = model_file(open_model(given, path))
    model = load(file, CIRCLE if file.start[4:8] == CIRCLE.identifier else TFLITE, index)
    model.path, model.placed, model.stamps = path, file.placed, dict(file.stamps)
    return model
