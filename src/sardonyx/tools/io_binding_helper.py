"""Types of a session's inputs and outputs as NumPy, torch and onnx have them, and sessions bound to tensors of torch.

The names are those of `onnxruntime.transformers.io_binding_helper`, which packages import beside the runtime. Functions about torch
need it to be installed.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.io_binding import IOBinding
from sardonyx.session.run_options import RunOptions

__all__ = ["CudaSession", "IOBindingHelper", "ShapeDict", "TypeHelper"]

ShapeDict: TypeAlias = Mapping[str, Sequence[int]]
"""Name of an input or output -> its shape."""
Torch: TypeAlias = Any
"""A tensor, a type or a device of torch, which is no dependency and is never imported unless it is asked for."""

_TORCH = {
    **{kind: str(kind) for kind in DataType if str(kind).startswith(("int", "uint", "bool", "bfloat", "complex"))},
    DataType.FLOAT: "float32",
    DataType.FLOAT16: "float16",
    DataType.DOUBLE: "float64",
    DataType.FLOAT8E4M3FN: "float8_e4m3fn",
    DataType.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    DataType.FLOAT8E5M2: "float8_e5m2",
    DataType.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
}
"""Types -> their names in torch."""


class TypeHelper:
    """Types of tensors: as text, as a session's inputs and outputs have it, and as packages know them."""

    @staticmethod
    def get_input_type(ort_session: InferenceSession, name: str) -> str:
        """Return the type of an input, such as "tensor(float)"; raises ValueError where there is none of that name."""
        return _type_of(ort_session.get_inputs(), "input", name)

    @staticmethod
    def get_output_type(ort_session: InferenceSession, name: str) -> str:
        """Return the type of an output; raises ValueError where there is none of that name."""
        return _type_of(ort_session.get_outputs(), "output", name)

    @staticmethod
    def ort_type_to_numpy_type(ort_type: str) -> type:
        """Return NumPy's scalar type, bool for booleans; raises ValueError for what is no tensor, or of a type that NumPy lacks."""
        kind = _data_type(ort_type)
        if kind is DataType.BOOL:
            return bool
        if kind is DataType.STRING or kind not in _NUMPY:
            raise ValueError(f"NumPy has no type for {ort_type}")
        return _NUMPY[kind]

    @staticmethod
    def ort_type_to_torch_type(ort_type: str) -> Torch:
        """Return torch's dtype; raises ValueError for what is no tensor, or of a type that torch lacks."""
        name = _TORCH.get(_data_type(ort_type))
        found = None if name is None else getattr(_torch(), name, None)
        if found is None:
            raise ValueError(f"torch has no type for {ort_type}")
        return found

    @staticmethod
    def ort_type_to_onnx_type(ort_type: str) -> int:
        """Return the number of onnx.TensorProto.DataType; raises ValueError for what is no tensor."""
        return int(_data_type(ort_type))

    @staticmethod
    def numpy_type_to_torch_type(numpy_type: type) -> Torch:
        """Return torch's dtype for a scalar type of NumPy or a dtype; raises ValueError where torch has none."""
        try:
            return TypeHelper.ort_type_to_torch_type(f"tensor({DataType.from_numpy(np.dtype(numpy_type))})")
        except (KeyError, TypeError):
            raise ValueError(f"torch has no type for {numpy_type}") from None

    @staticmethod
    def torch_type_to_numpy_type(torch_type: Torch) -> type:
        """Return NumPy's scalar type for a dtype of torch; raises ValueError where NumPy has none."""
        name = str(torch_type).removeprefix("torch.")
        kind = next((kind for kind, torch_name in _TORCH.items() if torch_name == name), None)
        if kind is None:
            raise ValueError(f"NumPy has no type for {torch_type}")
        return TypeHelper.ort_type_to_numpy_type(f"tensor({kind})")

    @staticmethod
    def get_io_onnx_type_map(ort_session: InferenceSession) -> dict[str, int]:
        """Return `ort_type_to_onnx_type` of all inputs and outputs, by their names."""
        return {name: TypeHelper.ort_type_to_onnx_type(kind) for name, kind in _types(ort_session).items()}

    @staticmethod
    def get_io_numpy_type_map(ort_session: InferenceSession) -> dict[str, type]:
        """Return `ort_type_to_numpy_type` of all inputs and outputs, by their names."""
        return {name: TypeHelper.ort_type_to_numpy_type(kind) for name, kind in _types(ort_session).items()}

    @staticmethod
    def get_io_torch_type_map(ort_session: InferenceSession) -> dict[str, Torch]:
        """Return `ort_type_to_torch_type` of all inputs and outputs, by their names."""
        return {name: TypeHelper.ort_type_to_torch_type(kind) for name, kind in _types(ort_session).items()}


class IOBindingHelper:
    """Sessions of decoders, with tensors of torch."""

    @staticmethod
    def get_output_buffers(ort_session: InferenceSession, output_shapes: ShapeDict, device: Torch) -> dict[str, Torch]:
        """Return a flat tensor of torch for each output, with room for its shape, on a device of torch."""
        buffers = {}
        for name, shape in output_shapes.items():
            kind = TypeHelper.ort_type_to_torch_type(TypeHelper.get_output_type(ort_session, name))
            buffers[name] = _torch().empty(math.prod(shape), dtype=kind, device=device)
        return buffers

    @staticmethod
    def prepare_io_binding(
        ort_session: InferenceSession,
        input_ids: Torch,
        position_ids: Torch | None,
        attention_mask: Torch | None,
        past: Sequence[Torch] | None,
        output_buffers: Mapping[str, Torch],
        output_shapes: ShapeDict,
    ) -> IOBinding:
        """Return a binding of the inputs of those names, `past_0` and so on among them, and of all outputs.

        Args:
            ort_session: the session.
            input_ids: a dense tensor of torch, which must stay as long as the binding is used, like the others.
            position_ids: None where the model has no such input.
            attention_mask: likewise.
            past: likewise; they may be empty.
            output_buffers: output -> a tensor with room for its shape.
            output_shapes: output -> its shape.

        Raises:
            InvalidArgument: a tensor is not dense, or an output has no buffer.
        """
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "position_ids": position_ids}
        given |= {f"past_{index}": tensor for index, tensor in enumerate(past or ())}
        kinds = TypeHelper.get_io_onnx_type_map(ort_session)
        binding = ort_session.io_binding()
        for name, tensor in given.items():
            if tensor is not None:
                address = _dense(name, tensor).data_ptr() or input_ids.data_ptr()
                binding.bind_input(name, tensor.device.type, _index(tensor), kinds[name], list(tensor.shape), address)
        for output in ort_session.get_outputs():
            if output.name not in output_buffers or output.name not in output_shapes:
                raise InvalidArgument(
                    f"output {output.name!r} has no buffer or no shape; there are buffers for {list(output_buffers)}"
                )
            buffer, shape = output_buffers[output.name], list(output_shapes[output.name])
            binding.bind_output(output.name, buffer.device.type, _index(buffer), kinds[output.name], shape, buffer.data_ptr())
        return binding

    @staticmethod
    def get_outputs_from_io_binding_buffer(
        ort_session: InferenceSession, output_buffers: Mapping[str, Torch], output_shapes: ShapeDict, return_numpy: bool = True
    ) -> list[Array] | list[Torch]:
        """Return copies of the outputs that a run left in buffers, as arrays or as tensors of torch."""
        copies = []
        for output in ort_session.get_outputs():
            shape = tuple(output_shapes[output.name])
            copies.append(output_buffers[output.name][: math.prod(shape)].reshape(shape).clone().detach())
        return [copy.cpu().numpy() for copy in copies] if return_numpy else copies


class CudaSession:
    """A session whose inputs and outputs are tensors of torch, of whatever device the session's provider has memory on."""

    def __init__(self, ort_session: InferenceSession, device: Torch, enable_cuda_graph: bool = False) -> None:
        """Bind nothing yet.

        Args:
            ort_session: the session.
            device: of torch, for outputs.
            enable_cuda_graph: accepted.
        """
        self.ort_session, self.device, self.enable_cuda_graph = ort_session, device, enable_cuda_graph
        self.input_names = [value.name for value in ort_session.get_inputs()]
        self.output_names = [value.name for value in ort_session.get_outputs()]
        self.io_name_to_onnx_type = TypeHelper.get_io_onnx_type_map(ort_session)
        self.io_name_to_torch_type = TypeHelper.get_io_torch_type_map(ort_session)
        self.io_binding = ort_session.io_binding()
        self.input_tensors: dict[str, Torch] = {}
        self.output_tensors: dict[str, Torch] = {}
        self.buffer_sharing: dict[str, str] = {}
        """Input -> the output that is written to its memory, and back."""

    def set_buffer_sharing(self, input_name: str, output_name: str) -> None:
        """Have an output written to the memory of an input; raises InvalidArgument where the model has no such names."""
        if input_name not in self.input_names or output_name not in self.output_names:
            raise InvalidArgument(
                f"{input_name!r} and {output_name!r} are no input and output of {self.input_names}, {self.output_names}"
            )
        self.buffer_sharing |= {input_name: output_name, output_name: input_name}

    def bind_input_and_buffer_sharing(self, name: str, tensor: Torch) -> None:
        """Bind a dense tensor to an input, and to the output that shares its memory."""
        shape, kind = list(tensor.shape), self.io_name_to_onnx_type[name]
        place = tensor.device.type, _index(tensor)
        self.input_tensors[name] = _dense(name, tensor)
        self.io_binding.bind_input(name, *place, kind, shape, tensor.data_ptr())
        if name in self.buffer_sharing:
            output = self.buffer_sharing[name]
            self.io_binding.bind_output(output, *place, kind, shape, tensor.data_ptr())
            self.output_tensors[output] = tensor

    def allocate_buffers(self, shape_dict: ShapeDict) -> None:
        """Bind outputs of these shapes to new tensors, but for those that have one of the shape, or share an input's memory."""
        for name, shape in shape_dict.items():
            known = self.output_tensors.get(name)
            is_kept = known is not None and tuple(known.shape) == tuple(shape)
            if name not in self.output_names or name in self.buffer_sharing or is_kept:
                continue
            tensor = _torch().empty(tuple(shape), dtype=self.io_name_to_torch_type[name], device=self.device)
            self.output_tensors[name] = tensor
            kind = self.io_name_to_onnx_type[name]
            self.io_binding.bind_output(name, tensor.device.type, _index(tensor), kind, list(shape), tensor.data_ptr())

    def infer(
        self, feed_dict: Mapping[str, Torch], run_options: RunOptions | None = None, synchronize: bool = True
    ) -> dict[str, Torch]:
        """Run the session, and return the tensors that outputs are bound to; the next run writes to them again.

        Args:
            feed_dict: name -> a dense tensor of torch; what is no input is passed over.
            run_options: of the run.
            synchronize: whether to wait for copies of a device.

        Raises:
            InvalidArgument: a tensor is not dense, or does not fit the model.
        """
        for name, tensor in feed_dict.items():
            if name in self.input_names:
                self.bind_input_and_buffer_sharing(name, tensor)
        if synchronize:
            self.io_binding.synchronize_inputs()
        self.ort_session.run_with_iobinding(self.io_binding, run_options)
        if synchronize:
            self.io_binding.synchronize_outputs()
        return self.output_tensors

    @staticmethod
    def get_cuda_provider_options(device_id: int, enable_cuda_graph: bool, stream: int = 0) -> dict[str, Any]:
        """Return options for a CUDA provider, of which sardonyx has none of its own; `stream` is an address, 0 for the default."""
        options = {"device_id": device_id, "arena_extend_strategy": "kSameAsRequested", "enable_cuda_graph": enable_cuda_graph}
        return {**options, "user_compute_stream": str(stream)} if stream else options


def _torch() -> Torch:
    with without_fork():
        return importlib.import_module("torch")


def _dense(name: str, tensor: Torch) -> Torch:
    if not tensor.is_contiguous():
        raise InvalidArgument(f"the tensor for {name!r} is not dense: give tensor.contiguous()")
    return tensor


def _index(tensor: Torch) -> int:
    return tensor.device.index or 0


def _types(session: InferenceSession) -> dict[str, str]:
    return {value.name: value.type for value in (*session.get_inputs(), *session.get_outputs())}


def _type_of(values: Sequence[Any], kind: str, name: str) -> str:
    found = next((value.type for value in values if value.name == name), None)
    if found is None:
        raise ValueError(f"the model has no {kind} {name!r}, only {[value.name for value in values]}")
    return str(found)


def _data_type(text: str) -> DataType:
    """Return the element type of "tensor(float)"; raises ValueError for what is no tensor."""
    try:
        if text.startswith("tensor(") and text.endswith(")"):
            return DataType.parse(text[len("tensor(") : -1])
    except KeyError:
        pass
    raise ValueError(f"{text!r} is no type of tensors")


_NUMPY = {kind: kind.numpy.type for kind in DataType if DataType.UNDEFINED < kind <= DataType.COMPLEX128}
