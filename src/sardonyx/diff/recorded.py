"""Compare a model with values that were computed elsewhere, by their names: of another package, or of another model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.diff.configuration import PLAIN, Configuration, parse_configuration
from sardonyx.diff.engines import engine_for
from sardonyx.diff.prepare import giving_out, prepared
from sardonyx.diff.report import Difference, FoundNode, FoundValue
from sardonyx.diff.slices import Part, Slices
from sardonyx.diff.tensor_error import TensorError
from sardonyx.diff.tolerance import Tolerance
from sardonyx.dtypes import DataType, OnnxValue, is_float
from sardonyx.errors import InvalidArgument, SardonyxError, located
from sardonyx.ir import Value
from sardonyx.provider import Provider
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.named_values import made_values
from sardonyx.session.options import SessionOptions
from sardonyx.spelling import nearest

__all__ = ["Recorded", "diff_recorded", "values_of_model"]

Recorded = Callable[[Sequence[str]], Mapping[str, OnnxValue]]
"""f(names of the values of the model) -> what was computed elsewhere, by name; names that are not there are left out."""


def diff_recorded(
    model: Any,
    a: Mapping[str, OnnxValue] | Recorded,
    b: Configuration | str = "",
    feed: Mapping[str, OnnxValue] | None = None,
    *,
    label: str = "recorded values",
    providers: Sequence[Provider] = (),
    options: SessionOptions | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> Difference:
    """Compare what a model computes with recorded values of the same names, and find the first that differs.

    Nothing is bisected, as the other side cannot run parts: an error is seen with all that comes before it.

    Args:
        model: a path, bytes, a ModelProto or an ir.Model; Any, as for a session.
        a: name -> what is taken to be right, of outputs and of any other values of the model; more names do no harm.
        b: what is compared with it; by default a session without options.
        feed: input name -> value, with which `a` was computed.
        label: what reports call a.
        providers: such as are not installed, which `b` may name.
        options: of the session.
        rtol: how much an element may differ, relative to that of a; with `atol` in the place of automatic limits.
        atol: how much it may differ besides.

    Returns:
        The errors of outputs and of other values, and the first value that differs.

    Raises:
        InvalidArgument: the feed or the configuration does not fit, or no name is one of the model's.
        SardonyxError: the model is invalid, or cannot be run.
    """
    other = parse_configuration(b) if isinstance(b, str) else b
    side = engine_for(other, providers, options)
    whole, values = prepared(model, feed or {}, options, engine_for(PLAIN, providers, options))
    slices = Slices(whole)
    made = {value.name: value for value in (*made_values(whole), *whole.graph.outputs)}
    known = a(list(made)) if callable(a) else a
    wanted = [value for name, value in made.items() if name in known]
    if not wanted:
        raise InvalidArgument(_no_name(label, known, made))
    start = slices.start(values)
    everything = slices.whole(start)
    asked = giving_out(whole, [value.name for value in wanted])
    try:
        results = side.load(asked).run(everything.feed)
    except SardonyxError as error:
        raise located(error, f"model {whole.label}") from error
    right = [_as_type(known[value.name], result) for value, result in zip(wanted, results, strict=True)]
    coarse = [str(item.dtype) for value in wanted if getattr(item := known[value.name], "dtype", None) == np.float16]
    tolerance = Tolerance(rtol, atol, tuple(filter(None, (other.precision, *coarse[:1]))))
    part = Part(asked, everything.nodes, tuple(wanted), everything.feed, everything.depth)
    errors = tolerance.judge(part, right, results, lambda again, fed: side.load(again).run(fed), results)
    outputs = {value.name for value in whole.graph.outputs}
    return Difference(
        model=whole.label,
        a=label,
        b=str(other),
        nodes=len(slices.nodes),
        outputs=tuple(error for error in errors if _base(error) in outputs),
        tensors=tuple(error for error in errors if _base(error) not in outputs),
        failure="",
        found=None,
        compared=1,
        first=_first(slices, errors),
        unknown=tuple(name for name in known if name not in made and name not in values),
    )


def values_of_model(model: Any, feed: Mapping[str, OnnxValue], options: SessionOptions | None = None) -> Recorded:
    """Return what gives the values of another model, run by a session on the same feed; floats get the types of its inputs.

    The model is a path or bytes; Any, as for a session.
    """
    session = InferenceSession(model, options)
    types = {argument.name: argument.type for argument in session.get_inputs()}
    fed = {name: _converted(value, types.get(name, "")) for name, value in feed.items() if name in types}

    def run(names: Sequence[str]) -> Mapping[str, OnnxValue]:
        own = {value.name for value in (*session.get_outputs(), *session.get_intermediates())}
        shared = [name for name in names if name in own]
        return dict(zip(shared, session.run(shared, fed), strict=True)) if shared else {}

    return run


def _converted(value: OnnxValue, kind: str) -> OnnxValue:
    wanted = DataType.parse(kind[len("tensor(") : -1]) if kind.startswith("tensor(") else None
    return value.astype(wanted.numpy) if wanted is not None and is_float(wanted) and _is_real(value) else value


def _as_type(value: OnnxValue, result: OnnxValue) -> OnnxValue:
    """Return a recorded array of floats in the type of the model's."""
    return value.astype(result.dtype) if _is_real(value) and _is_real(result) else value


def _is_real(value: OnnxValue) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind not in "OUSTc" and is_float(DataType.from_numpy(value.dtype))


def _base(error: TensorError) -> str:
    return error.name.partition("[")[0]


def _first(slices: Slices, errors: Sequence[TensorError]) -> FoundValue | None:
    """Return the first value, in the order of the nodes, that differs, and what is known of what it is made of."""
    wrong = {_base(error) for error in errors if not error.agrees}
    right = {_base(error) for error in errors} - wrong
    for index, node in enumerate(slices.nodes):
        name = next((value.name for value in node.outputs if value.name in wrong), None)
        if name is not None:
            reads = [value for value in slices.reads(node) if value.constant is None and value not in slices.model.graph.inputs]
            return FoundValue(
                name, FoundNode.of(node, index), _names(reads, right), _names(reads, {value.name for value in reads} - right)
            )
    return None


def _names(values: Sequence[Value], chosen: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value.name for value in values if value.name in chosen))


def _no_name(label: str, known: Mapping[str, OnnxValue], made: Mapping[str, Value]) -> str:
    shown = [f"{name!r}{f' (near it is {close!r})' if (close := nearest(name, made)) else ''}" for name in list(known)[:8]]
    has = f"it has {', '.join(shown)}, " if shown else ""
    return f"{label}: none of its values has the name of one of the model's; {has}the model makes {', '.join(list(made)[-8:])} …"
