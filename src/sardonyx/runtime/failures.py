"""Failures of a provider's program, raised as an error that names the provider and the partition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.config import LIMITS
from sardonyx.dtypes import DataType, OnnxValue
from sardonyx.errors import EPFail, Fail, InvalidArgument, SardonyxError, blamed, describe, located
from sardonyx.ir import Expr, Shape, TensorType
from sardonyx.ir.shape import substitute
from sardonyx.provider import HOST, Bound, TensorSpec
from sardonyx.runtime.memory import size_bytes
from sardonyx.runtime.plan import CopyStep, ProgramStep, Step

__all__ = ["blame", "check_bound", "check_copy", "check_sizes", "check_values"]


def blame(error: Exception, step: Step, doing: str) -> None:
    """Name the provider of `step` in what it raised, and what it was doing; returns where it is reported already, or not its fault.

    Raises:
        EPFail: in place of an error that is not ours.
        SardonyxError: in place of one of ours, of its class.
    """
    if not isinstance(error, SardonyxError):
        raise blamed(EPFail(f"{step.provider} failed to {doing}: {describe(error)}"), step.provider) from error
    if not isinstance(error, (InvalidArgument, Fail)) and not error.provider:  # what was fed, and who ends a run, is not its fault
        raise located(blamed(error, step.provider), f"{step.provider} failed to {doing}") from error


def check_bound(bound: object, step: ProgramStep) -> None:
    """Look at what `bind` returned, which may be anything.

    Raises:
        EPFail: it gives no sizes that the outputs of `step` can have.
        InvalidArgument: a size that it gives is beyond the limit, as what is fed may ask for.
    """
    sizes: object = bound.outputs if isinstance(bound, Bound) else None
    if not isinstance(bound, Bound) or not isinstance(sizes, (tuple, list)):
        raise _breach(step, f"binds {step.part} to {bound!r:.200}; it must return Bound with a tuple of outputs")
    if len(sizes) != len(step.outputs):
        raise _breach(step, f"gives {len(sizes)} sizes for {step.part}, expected {len(step.outputs)}")
    scratch: object = bound.scratch_bytes
    if not isinstance(scratch, (int, np.integer)) or not 0 <= scratch <= LIMITS.tensor_bytes:
        limit = f"0 to {LIMITS.tensor_bytes} are possible"
        raise _breach(step, f"asks for {scratch!r} bytes of scratch memory for {step.part}; {limit}")
    latest: tuple[object, object] = None, None
    for index, spec in enumerate(sizes):
        wanted = step.types[index] if step.types else None
        if spec is not None and spec is latest[0] and wanted == latest[1]:  # as the caches of all layers are
            continue
        latest = spec, wanted
        problem = _problem_of_size(spec, wanted, makes=step.program.makes_outputs)
        if problem is not None:
            raise _breach(step, f"gives {_output(step, index)} {problem}")
        if spec is not None and size_bytes(spec) > LIMITS.tensor_bytes:
            message = (
                f"{step.provider} gives output {index} of {step.part} the size {spec.dtype}{list(spec.shape)}, which is "
                f"beyond the limit of {LIMITS.tensor_bytes} bytes: check the inputs that set the shape, or raise "
                "SARDONYX_MAX_TENSOR_BYTES"
            )
            raise blamed(InvalidArgument(message), step.provider)


def check_sizes(step: ProgramStep, read: Sequence[tuple[int, ...] | None], made: Sequence[tuple[int, ...] | None]) -> None:
    """Raise EPFail where an output has another size than follows from the sizes of the inputs, as the graph has it.

    Args:
        step: whose program it is; one of sardonyx's own is not looked at.
        read: the shapes of its inputs.
        made: those of its outputs; None for one that is not known.
    """
    sizes: dict[str, int] = {}
    for shape, found in zip(step.reads, read, strict=False):
        if shape is not None and found is not None and len(shape) == len(found):
            pairs = zip(shape, found, strict=True)
            sizes |= {dim.name: size for dim, size in pairs if isinstance(dim, Expr) and dim.name is not None}
    for index, (wanted, found) in enumerate(zip(step.types, made, strict=False)):
        if wanted is None or wanted.shape is None or found is None:
            continue
        expected = tuple(substitute(dim, sizes) for dim in wanted.shape)
        if not TensorType(wanted.dtype, expected).allows(found):
            known = ", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()) if not name.startswith("?"))
            found_text = f"makes {wanted.dtype}{list(found)} of {_output(step, index)}"
            raise _breach(step, f"{found_text}, but the graph has {_of_graph(wanted)} there, and its inputs have {known}")


def _output(step: ProgramStep, index: int) -> str:
    maker = f", {step.makers[index]}" if step.makers and step.makers[index] else ""
    return f"output {index} of partition {step.name}{maker}"


def _problem_of_size(spec: object, wanted: TensorType | None, *, makes: bool) -> str | None:
    """Return what is wrong with the size of an output, which may be anything."""
    if spec is None:
        return "no size, which only a program that makes its outputs may do" if wanted is not None and not makes else None
    dtype, shape = getattr(spec, "dtype", None), getattr(spec, "shape", None)
    if not isinstance(spec, TensorSpec) or not isinstance(dtype, DataType) or not isinstance(shape, tuple):
        return f"the size {spec!r}; a size is a TensorSpec of a DataType and a tuple, or None"
    if not all(isinstance(dim, (int, np.integer)) and dim >= 0 for dim in shape):
        return f"the shape {shape}; dimensions are integers of at least 0"
    if wanted is not None and (spec.dtype is not wanted.dtype or not wanted.allows(spec.shape)):
        return f"the size {spec.dtype}{list(spec.shape)}, but the graph has {_of_graph(wanted)} there"
    return None


def check_values(values: object, outputs: Sequence[OnnxValue], step: ProgramStep) -> None:
    """Raise EPFail where `run` returned other things than the tensors that it was given, and where it was given None, arrays.

    Args:
        values: what it returned, which may be anything.
        outputs: the tensors that it was given.
        step: whose program it is.
    """
    if not isinstance(values, (tuple, list)):
        raise _breach(step, f"returned {values!r:.200} for {step.part}; it must return a sequence of values")
    if len(values) != len(step.outputs):
        raise _breach(step, f"returned {len(values)} values for {step.part}, expected {len(step.outputs)}")
    for index, given in enumerate(outputs):
        if given is not None and values[index] is not given:
            found = f"returned another tensor for output {index} of {step.part} than the one that it was given"
            raise _breach(step, f"{found}; fill that one, or let bind return None for it")
    is_host = step.memory.name == HOST.name
    for index, (value, wanted) in enumerate(zip(values, step.types, strict=False)):
        if wanted is None or (_is_tensor(value, wanted) if is_host else _is_device_tensor(value, wanted)):
            continue
        shown = _shown(value) if is_host else f"a tensor of shape {getattr(value, 'shape', None)!r:.200}"
        raise _breach(step, f"returned {shown} for {_output(step, index)}, but the graph has {_of_graph(wanted)} there")


def check_copy(value: OnnxValue, shape: Shape | None, step: CopyStep) -> None:
    """Raise EPFail where what a memory's `to_host` returned, which may be anything, is not a tensor as the graph has it."""
    if step.type is not None and not (_is_tensor(value, step.type) and shape in (None, value.shape)):
        found = f"copied a tensor of shape {shape} from {step.source_memory.name} to {_shown(value)}"
        raise _breach(step, f"{found}, but the graph has {_of_graph(step.type)} there")


def _is_tensor(value: OnnxValue, wanted: TensorType) -> bool:
    """Return whether a value, which may be anything, is an array that `wanted` allows."""
    if type(value) is not np.ndarray and not isinstance(value, (np.ndarray, np.generic)):
        return False
    found, dtype = value.dtype, wanted.dtype.numpy
    if found is not dtype and found != dtype and not (wanted.dtype is DataType.STRING and found.kind in "OSTU"):
        return False
    return wanted.allows(value.shape)


def _is_device_tensor(value: OnnxValue, wanted: TensorType) -> bool:
    """Return whether a tensor of a device, of any class, may have the shape that it shows; all that can be asked of it."""
    shape = getattr(value, "shape", None)
    return shape is None or (isinstance(shape, tuple) and wanted.allows(shape))


def _shown(value: OnnxValue) -> str:
    """Return a value, which may be anything, for messages."""
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else f"{value!r:.80}"


def _of_graph(wanted: TensorType) -> str:
    return f"{wanted.dtype}" if wanted.shape is None else f"{wanted.dtype} of shape ({', '.join(map(str, wanted.shape))})"


def _breach(step: Step, what: str) -> SardonyxError:
    return blamed(EPFail(f"{step.provider} {what}"), step.provider)
