"""Compare two configurations of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sardonyx.diff.configuration import PLAIN, Configuration, parse_configuration
from sardonyx.diff.engines import Engine, engine_for
from sardonyx.diff.exact import distance, exact_outputs
from sardonyx.diff.not_finite import origins
from sardonyx.diff.prepare import giving_out, prepared
from sardonyx.diff.report import Difference, Finding, FoundNode
from sardonyx.diff.search import Compared, Search, Sides
from sardonyx.diff.slices import Part, Slices
from sardonyx.diff.tensor_error import TensorError
from sardonyx.diff.tolerance import Tolerance
from sardonyx.dtypes import OnnxValue
from sardonyx.errors import SardonyxError, located
from sardonyx.ir import Value
from sardonyx.provider import Provider
from sardonyx.session.named_values import find_values, made_values
from sardonyx.session.options import SessionOptions

__all__ = ["diff_model"]

_FARTHER = 2.0
"""How much farther from float64 the wrong side is at least."""


def diff_model(
    model: Any,
    a: Configuration | str = PLAIN,
    b: Configuration | str = "",
    feed: Mapping[str, OnnxValue] | None = None,
    *,
    providers: Sequence[Provider] = (),
    options: SessionOptions | None = None,
    b_options: SessionOptions | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    tensors: Sequence[str] = (),
    searches: bool = True,
    window: int = 16,
    on_step: Callable[[str], None] = lambda label: None,
) -> Difference:
    """Run a model under two configurations, and find the first node that differs.

    Args:
        model: a path, bytes, a ModelProto or an ir.Model; Any, as for a session.
        a: what is taken to be right; by default NumPy's kernels without optimization.
        b: what is compared with it; by default a session without options.
        feed: input name -> value.
        providers: such as are not installed, which a configuration may name.
        options: of both sides' sessions, for what configurations do not say, such as custom operators and fixed dimensions.
        b_options: those of b, where they are others, such as those with an operator that is to be judged.
        rtol: how much an element may differ, relative to that of a; with `atol` in the place of automatic limits.
        atol: how much it may differ besides.
        tensors: values of the model to compare as they are in whole runs; ["all"] for all of them.
        searches: whether the first node that differs is searched for, also where the outputs agree.
        window: how many nodes are tried together where the outputs agree; fewer find errors that are damped away sooner.
        on_step: called before each part of the model that is run, with what it is.

    Returns:
        The errors of outputs and tensors, and the first nodes that differ with a small model that shows it.

    Raises:
        InvalidArgument: a configuration, the feed or a name does not fit.
        SardonyxError: the model is invalid, or a cannot run it.
    """
    one, other = (parse_configuration(item) if isinstance(item, str) else item for item in (a, b))
    side_a, plain = (engine_for(item, providers, options) for item in (one, PLAIN))
    side_b = engine_for(other, providers, options if b_options is None else b_options)
    tolerance = Tolerance(rtol, atol, tuple(filter(None, (one.precision, other.precision))))
    whole, values = prepared(model, feed or {}, options if b_options is None else b_options, plain)
    slices = Slices(whole)
    start = slices.start(values)
    try:
        known = Search(slices, Sides(side_a, side_b, side_a, tolerance, blames_failures=True), window, on_step).compare(
            slices.whole(start)
        )
        asked = _asked(slices, start, tensors, (side_a, side_b), tolerance) if tensors and not known.failure else ()
        search = Search(slices, Sides(side_a, side_b, plain, tolerance, blames_failures=bool(known.failure)), window, on_step)
        found = search.find(start, known) if searches else None
        is_odd = searches and any(error.not_finite for error in known.errors)
        odd = origins(slices, start, (side_a, plain), window, on_step) if is_odd else ()
    except SardonyxError as error:
        raise located(error, f"model {whole.label}") from error
    return Difference(
        model=whole.label,
        a=str(one),
        b=str(other),
        nodes=len(slices.nodes),
        outputs=known.errors,
        tensors=tuple(asked),
        failure=known.failure,
        found=None if found is None else _finding(slices, found),
        compared=search.count + 1,
        not_finite=tuple(odd),
    )


def _asked(
    slices: Slices, values: Mapping[Value, OnnxValue], names: Sequence[str], sides: tuple[Engine, Engine], tolerance: Tolerance
) -> list[TensorError]:
    """Return the errors of values in whole runs, as `names` asks for them."""
    known = list(made_values(slices.model))
    wanted = known if "all" in names else find_values(slices.model, names)
    model = giving_out(slices.model, [value.name for value in wanted])
    whole = slices.whole(values)
    part = Part(model, whole.nodes, tuple(wanted), whole.feed, whole.depth)
    one, other = (side.load(model).run(part.feed) for side in sides)
    return tolerance.judge(part, one, other, lambda again, feed: sides[0].load(again).run(feed))


def _finding(slices: Slices, found: Compared) -> Finding:
    part = found.part
    index = {node: number for number, node in enumerate(slices.nodes)}
    exact = exact_outputs(part.model, part.feed)
    pairs: dict[str, tuple[float | None, float | None]] = {}
    if not isinstance(exact, str):
        a = distance(exact, [found.made[value] for value in part.outputs])
        b = distance(exact, found.others) if found.others else [None] * len(a)
        pairs = {value.name: pair for value, pair in zip(part.outputs, zip(a, b, strict=True), strict=True)}
    return Finding(
        nodes=tuple(FoundNode.of(node, index[node]) for node in part.nodes),
        suspect=None if found.suspect is None else FoundNode.of(found.suspect, index[found.suspect]),
        tensors=found.errors,
        exact=pairs,
        inexact=exact if isinstance(exact, str) else "",
        wrong=_wrong_side(found.errors, pairs),
        failure=found.failure,
        steps=() if found.loaded is None else found.loaded.steps,
        rules=() if found.loaded is None else found.loaded.rules,
        model=part.model,
        feed=part.feed,
    )


def _wrong_side(errors: Sequence[TensorError], pairs: Mapping[str, tuple[float | None, float | None]]) -> str:
    """Return the side that is farther from float64 in the first output that differs."""
    for error in errors:
        a, b = pairs.get(error.name, (None, None))
        if error.agrees or a is None or b is None:
            continue
        if b > _FARTHER * a:
            return "b"
        return "a" if a > _FARTHER * b else ""
    return ""
