"""Types of a session's values, and sessions bound to tensors of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.models import model

import sardonyx as ort
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.formats.onnx import to_proto
from sardonyx.tools.io_binding_helper import CudaSession, IOBindingHelper, TypeHelper

torch = pytest.importorskip("torch")

_DECODER = """graph(input_ids: int64[B, T], attention_mask: int64[B, T], past_0: float[B, P, 2]) -> (logits: float[B, T], present_0: float[B, P, 2]) {
    sum = Mul(input_ids, attention_mask)
    logits = Cast(sum) {to = 1}
    present_0 = Neg(past_0)
}"""
_PLUS = "graph(x: float[n, 2], s: float16[]) -> (y: float[n, 2], z: float16[]) { y = Neg(x) z = Neg(s) }"


def session(text: str) -> ort.InferenceSession:
    """A session of a model in the text form."""
    return ort.InferenceSession(to_proto(model(text)))


@pytest.mark.parametrize("kind", list(DataType)[1:24])
def test_types_are_those_that_onnxruntime_gives(kind: DataType) -> None:
    """Where onnxruntime has none, there is none, or the one that there really is."""
    peer = pytest.importorskip("onnxruntime.transformers.io_binding_helper").TypeHelper
    for name in ("ort_type_to_numpy_type", "ort_type_to_torch_type", "ort_type_to_onnx_type"):
        try:
            wanted = getattr(peer, name)(f"tensor({kind})")
        except (ValueError, AttributeError):
            continue
        assert getattr(TypeHelper, name)(f"tensor({kind})") == wanted


def test_types_of_numpy_and_torch_lead_to_one_another() -> None:
    """A type of NumPy may be given as a dtype."""
    for kind in (np.int64, np.float16, np.uint32, bool, np.complex64):
        assert TypeHelper.torch_type_to_numpy_type(TypeHelper.numpy_type_to_torch_type(kind)) is kind
    assert TypeHelper.numpy_type_to_torch_type(np.dtype("float64")) is torch.float64


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ort_type_to_numpy_type", "tensor(bfloat16)"),
        ("ort_type_to_numpy_type", "tensor(string)"),
        ("ort_type_to_numpy_type", "tensor(undefined)"),
        ("ort_type_to_torch_type", "tensor(string)"),
        ("ort_type_to_onnx_type", "seq(tensor(float))"),
        ("ort_type_to_onnx_type", "tensor(floaty)"),
        ("numpy_type_to_torch_type", np.str_),
        ("numpy_type_to_torch_type", np.datetime64),
        ("numpy_type_to_torch_type", "nothing"),
        ("torch_type_to_numpy_type", torch.bfloat16),
        ("torch_type_to_numpy_type", None),
    ],
)
def test_what_has_no_such_type_is_a_value_error(name: str, given: Any) -> None:
    """As in onnxruntime."""
    with pytest.raises(ValueError, match="no type"):
        getattr(TypeHelper, name)(given)


def test_types_of_a_session() -> None:
    """Of inputs and outputs, by their names."""
    found = session(_PLUS)
    assert TypeHelper.get_input_type(found, "s") == TypeHelper.get_output_type(found, "z") == "tensor(float16)"
    assert TypeHelper.get_io_onnx_type_map(found) == {"x": 1, "s": 10, "y": 1, "z": 10}
    assert TypeHelper.get_io_numpy_type_map(found)["z"] is np.float16
    assert TypeHelper.get_io_torch_type_map(found)["x"] is torch.float32
    with pytest.raises(ValueError, match=r"no output 'x', only \['y', 'z'\]"):
        TypeHelper.get_output_type(found, "x")


@pytest.mark.parametrize("past_length", [3, 0])
def test_a_decoder_is_bound(past_length: int) -> None:
    """Outputs lie in the buffers, also where a cache is empty; those that are longer are cut."""
    decoder = session(_DECODER)
    ids, mask, past = torch.arange(4).reshape(1, 4), torch.ones(1, 4, dtype=torch.int64), torch.ones(1, past_length, 2)
    shapes = {"logits": [1, 4], "present_0": [1, past_length, 2]}
    buffers = IOBindingHelper.get_output_buffers(decoder, {"logits": [2, 4], "present_0": [1, 5, 2]}, torch.device("cpu"))
    binding = IOBindingHelper.prepare_io_binding(decoder, ids, None, mask, [past], buffers, shapes)
    decoder.run_with_iobinding(binding)
    logits, present = IOBindingHelper.get_outputs_from_io_binding_buffer(decoder, buffers, shapes)
    assert logits.tolist() == [[0, 1, 2, 3]]
    assert present.tolist() == (-past).tolist()
    as_torch = IOBindingHelper.get_outputs_from_io_binding_buffer(decoder, buffers, shapes, return_numpy=False)
    assert as_torch[0].data_ptr() != buffers["logits"].data_ptr()


def test_what_cannot_be_bound_is_told() -> None:
    """A tensor with gaps, and an output without a buffer."""
    decoder = session(_DECODER)
    ids = torch.arange(8).reshape(4, 2)
    with pytest.raises(InvalidArgument, match="'input_ids' is not dense"):
        IOBindingHelper.prepare_io_binding(decoder, ids.T, None, None, None, {}, {})
    with pytest.raises(InvalidArgument, match="output 'logits' has no buffer"):
        IOBindingHelper.prepare_io_binding(decoder, ids, None, ids, [torch.ones(4, 1, 2)], {}, {})


def test_a_session_writes_to_tensors_of_torch() -> None:
    """Buffers of the same shape stay, others are made anew, and scalars have no dimension."""
    bound = CudaSession(session(_PLUS), torch.device("cpu"))
    bound.allocate_buffers({"y": (2, 2), "z": (), "x": (9, 9)})
    first = bound.output_tensors["y"]
    feed = {"x": torch.ones(2, 2), "s": torch.tensor(3, dtype=torch.float16), "other": torch.ones(1)}
    results = bound.infer(feed)
    assert results["y"] is first
    assert (first.tolist(), float(results["z"])) == ([[-1, -1], [-1, -1]], -3)
    bound.allocate_buffers({"y": (2, 2)})
    assert bound.output_tensors["y"] is first
    bound.allocate_buffers({"y": (3, 2)})
    assert bound.infer({"x": torch.ones(3, 2)}, synchronize=False)["y"].shape == (3, 2)
    with pytest.raises(InvalidArgument, match="'x' is not dense"):
        bound.infer({"x": torch.ones(2, 3).T})


def test_an_output_may_share_the_memory_of_an_input() -> None:
    """The run writes over what it read."""
    bound = CudaSession(session("graph(x: float[2]) -> (y: float[2]) { y = Neg(x) }"), torch.device("cpu"))
    bound.set_buffer_sharing("x", "y")
    bound.allocate_buffers({"y": (2,)})
    tensor = torch.ones(2)
    assert bound.infer({"x": tensor})["y"] is tensor
    assert tensor.tolist() == [-1, -1]
    with pytest.raises(InvalidArgument, match="'y' and 'x' are no input and output"):
        bound.set_buffer_sharing("y", "x")


def test_options_of_a_cuda_provider() -> None:
    """A stream is its address as text."""
    assert CudaSession.get_cuda_provider_options(1, True, 7) == {
        "device_id": 1,
        "arena_extend_strategy": "kSameAsRequested",
        "enable_cuda_graph": True,
        "user_compute_stream": "7",
    }
    assert "user_compute_stream" not in CudaSession.get_cuda_provider_options(0, False)
