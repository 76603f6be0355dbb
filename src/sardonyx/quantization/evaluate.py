"""The accuracy of a model on labelled feeds: what quantization costs, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.session.inference_session import InferenceSession

if TYPE_CHECKING:
    import os

__all__ = ["accuracy", "predicted_classes"]


def accuracy(
    model: str | os.PathLike[str] | bytes,
    feeds: Iterable[Mapping[str, OnnxValue]],
    labels: Array,
    output: str = "",
    providers: Sequence[str] = ("CPUExecutionProvider",),
) -> float:
    """Return the share, from 0 to 1, of examples whose class a model finds.

    Args:
        model: a path, or the bytes of a model.
        feeds: input name -> value, a batch of examples each, or one.
        labels: the class of each example, in the order of the feeds.
        output: the name of the output that tells classes; "" for the first.
        providers: what the model runs on.

    Raises:
        InvalidArgument: the model finds more or fewer classes than there are labels.
        SardonyxError: the model cannot be read, or a feed does not fit.
    """
    session = InferenceSession(model, providers=list(providers))
    name = output or session.get_outputs()[0].name
    classes = [predicted_classes(session.run([name], dict(feed))[0]) for feed in feeds]
    found = np.concatenate(classes) if classes else np.zeros(0, np.int64)
    wanted = np.asarray(labels).reshape(-1)
    if found.shape != wanted.shape or not wanted.size:
        raise InvalidArgument(f"output {name!r} tells {found.size} classes for {wanted.size} labels")
    return float(np.mean(found == wanted))


def predicted_classes(result: Array) -> Array:
    """Return the classes that an output tells: its elements, or where it is floats the greatest score along the last axis."""
    array = np.asarray(result)
    if array.dtype.kind == "f" and array.ndim:
        array = array.argmax(axis=-1)
    return array.reshape(-1)
