"""Mixed precision: float16 but for the nodes that lose too much by it, which are found by running the model.

    mixed = auto_convert_mixed_precision(onnx.load("model.onnx"), {"x": x}, rtol=0.01, atol=0.001, keep_io_types=True)

The name and arguments are those of the package onnxconverter-common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from sardonyx.dtypes import OnnxValue
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.formats.onnx import to_bytes
from sardonyx.formats.protos import Message
from sardonyx.ir import Model
from sardonyx.optimize.edit import Names
from sardonyx.session.inference_session import InferenceSession
from sardonyx.tools.float16 import convert_float_to_float16
from sardonyx.tools.models import Given, read, to_proto

__all__ = ["auto_convert_mixed_precision"]

Validate: TypeAlias = Callable[[Sequence[OnnxValue], Sequence[OnnxValue]], bool]


def auto_convert_mixed_precision(
    model: Given,
    feed_dict: Mapping[str, OnnxValue],
    validate_fn: Validate | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    keep_io_types: bool = False,
) -> Message:
    """Return a copy of a model in float16, in which as many nodes stay in float32 as the results need.

    Blocks of nodes are tried, and halved where results are not good enough. Models are run on the CPU, where nodes in float16
    compute in float32 and round what they store: an upper bound on float16 hardware is not given by it.

    Args:
        model: an onnx.ModelProto, or the path of a model.
        feed_dict: inputs to run on; where inputs become float16 they are converted.
        validate_fn: takes the outputs in float32 and the new ones, and says whether these are good enough.
        rtol: instead of it, the relative tolerance of each element.
        atol: and the absolute one.
        keep_io_types: whether inputs and outputs stay float32.

    Raises:
        InvalidArgument: there is neither a function nor a tolerance, or both; or the feed does not fit the model.
        Fail: not even with all nodes in float32 are the results good enough.
    """
    if (validate_fn is None) == (rtol is None and atol is None):
        raise InvalidArgument("give either validate_fn, or a tolerance: rtol, atol or both")
    named = read(model)
    _name_nodes(named)
    proto = to_proto(named)
    expected = InferenceSession(to_bytes(named)).run(None, feed_dict)
    accepts = _within(rtol or 0.0, atol or 0.0) if validate_fn is None else validate_fn

    def converted(blocked: set[str]) -> Message:
        return convert_float_to_float16(proto, keep_io_types=keep_io_types, node_block_list=blocked)

    def is_good(blocked: set[str]) -> bool:
        session = InferenceSession(converted(blocked))
        return bool(accepts(expected, session.run(None, _fed(session, feed_dict))))

    names = [node.name for node in named.graph if not node.subgraphs]
    blocked = set(names)
    if not is_good(blocked):
        raise Fail(f"{named.label}: results are not good enough even with all nodes in float32: check the tolerance and the feed")
    for block in _tried(names, blocked, is_good):
        blocked -= block
    return converted(blocked)


def _tried(names: Sequence[str], blocked: set[str], is_good: Callable[[set[str]], bool]) -> list[set[str]]:
    """Return blocks of nodes that may become float16, all of them; halves those that may not."""
    narrow: set[str] = set()
    found, stack = [], [list(names)]
    while stack:
        block = stack.pop()
        if is_good(blocked - narrow - set(block)):
            narrow |= set(block)
            found.append(set(block))
        elif len(block) > 1:
            middle = len(block) // 2
            stack += [block[middle:], block[:middle]]
    return found


def _name_nodes(model: Model) -> None:
    """Give each node of the main graph a name of its own, by which it can be blocked."""
    names = Names(node.name for node in model.graph)
    seen: set[str] = set()
    for node in model.graph:
        if not node.name or node.name in seen:
            node.name = names.fresh(f"{node.op_type}_node")
        seen.add(node.name)


def _fed(session: InferenceSession, feed: Mapping[str, OnnxValue]) -> dict[str, OnnxValue]:
    halves = {item.name for item in session.get_inputs() if item.type == "tensor(float16)"}
    return {name: np.asarray(value, np.float16) if name in halves else value for name, value in feed.items()}


def _within(rtol: float, atol: float) -> Validate:
    def accepts(expected: Sequence[OnnxValue], results: Sequence[OnnxValue]) -> bool:
        pairs = zip(expected, results, strict=True)
        return all(np.allclose(np.asarray(new, np.float64), np.asarray(old, np.float64), rtol, atol) for old, new in pairs)

    return accepts
