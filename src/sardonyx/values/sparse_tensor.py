"""Sparse tensors in COO, CSR(C) and block form, as onnxruntime's SparseTensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from sardonyx import errors
from sardonyx.arguments import as_index, as_list, instance
from sardonyx.config import LIMITS
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.values.device import CPU, OrtDevice
from sardonyx.values.named import NamedEnum

__all__ = ["OrtSparseFormat", "SparseBlockSparseView", "SparseCooView", "SparseCsrView", "SparseTensor"]


class OrtSparseFormat(NamedEnum):
    """How the places of the values are written."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class SparseCooView:
    """Where the values of a COO tensor lie."""

    def __init__(self, indices: Array) -> None:
        """Show `indices`."""
        self._indices = _read_only(indices)

    def indices(self) -> Array:
        """Return the places as int64: (n,) positions in the flat tensor, or (n, rank) coordinates."""
        return self._indices


class SparseCsrView:
    """Where the values of a CSR tensor lie."""

    def __init__(self, inner: Array, outer: Array) -> None:
        """Show column and row indices."""
        self._inner, self._outer = _read_only(inner), _read_only(outer)

    def inner(self) -> Array:
        """Return the columns of the values, int64 of shape (n,)."""
        return self._inner

    def outer(self) -> Array:
        """Return where each row begins among the values, int64 of shape (rows + 1,)."""
        return self._outer


class SparseBlockSparseView:
    """Where the blocks of a block-sparse tensor lie."""

    def __init__(self, indices: Array) -> None:
        """Show `indices`."""
        self._indices = _read_only(indices)

    def indices(self) -> Array:
        """Return the places of the blocks as int32."""
        return self._indices


_View: TypeAlias = SparseCooView | SparseCsrView | SparseBlockSparseView


class SparseTensor:
    """A tensor of which the values other than zero are kept."""

    _shape: tuple[int, ...]
    _values: Array
    _view: _View

    def __init__(self, sparse_tensor: SparseTensor) -> None:
        """Share what another sparse tensor holds."""
        if not isinstance(sparse_tensor, SparseTensor):
            raise InvalidArgument(
                f"SparseTensor takes a SparseTensor, got {type(sparse_tensor).__name__}; make one with sparse_coo_from_numpy"
            )
        self._shape, self._values, self._view = sparse_tensor._shape, sparse_tensor._values, sparse_tensor._view

    @classmethod
    def _made(cls, shape: Sequence[int], values: Array, view: _View, device: OrtDevice) -> SparseTensor:
        if not instance("ort_device", device, OrtDevice).is_cpu:
            raise errors.NotImplemented(f"sparse tensors lie on the CPU; {device} is not supported")
        made = cls.__new__(cls)
        made._shape, made._view = _checked_shape(shape), view
        kept = np.ascontiguousarray(values)
        if kept.ndim != 1:
            raise InvalidArgument(f"the values of a sparse tensor are a list of one dimension, got the shape {kept.shape}")
        made._values = kept.astype(object) if kept.dtype.kind in "UT" else kept
        DataType.from_numpy(made._values.dtype)
        return made

    @classmethod
    def sparse_coo_from_numpy(
        cls, dense_shape: Sequence[int], values: Array, coo_indices: Array, ort_device: OrtDevice = CPU
    ) -> SparseTensor:
        """Make a tensor of values and their places.

        Args:
            dense_shape: the shape of the dense tensor.
            values: (n,) values of any element type; numbers are not copied.
            coo_indices: int64 (n,) positions in the flat tensor, or (n, rank) coordinates, which may also come flat: (n * rank,).
            ort_device: the CPU.

        Raises:
            InvalidArgument: the sizes differ, or an index lies outside.
        """
        indices = np.ascontiguousarray(coo_indices, np.int64)
        shape = _checked_shape(dense_shape)
        count = np.asarray(values).size
        if indices.shape == (count * len(shape),) != (count,):
            indices = indices.reshape(count, len(shape))
        if indices.shape not in ((count,), (count, len(shape))):
            raise InvalidArgument(
                f"coo_indices of {count} values have the shape ({count},) or ({count}, {len(shape)}), got {indices.shape}"
            )
        limits = math.prod(shape) if indices.ndim == 1 else np.array(shape)
        if count and bool(((indices < 0) | (indices >= limits)).any()):
            raise InvalidArgument(f"coo_indices lie outside of the dense shape {shape}")
        return cls._made(shape, values, SparseCooView(indices), ort_device)

    @classmethod
    def sparse_csr_from_numpy(
        cls, dense_shape: Sequence[int], values: Array, inner_indices: Array, outer_indices: Array, ort_device: OrtDevice = CPU
    ) -> SparseTensor:
        """Make a matrix of values, their columns, and where each row begins.

        Args:
            dense_shape: (rows, columns).
            values: (n,) values.
            inner_indices: int64 (n,) columns.
            outer_indices: int64 (rows + 1,): the values of row r are outer[r] to outer[r + 1]; (0,) where there are no values.
            ort_device: the CPU.

        Raises:
            InvalidArgument: the sizes differ, or an index lies outside.
        """
        shape = _checked_shape(dense_shape)
        inner, outer = np.ascontiguousarray(inner_indices, np.int64), np.ascontiguousarray(outer_indices, np.int64)
        count = np.asarray(values).size
        without_values = () if count else ((0,),)
        if len(shape) != 2 or inner.shape != (count,) or outer.shape not in ((shape[0] + 1,), *without_values):
            raise InvalidArgument(
                f"a CSR tensor has 2 dimensions, {count} inner and rows + 1 outer indices; got {shape}, inner {inner.shape}, "
                f"outer {outer.shape}"
            )
        is_within = not count or (inner.min() >= 0 and inner.max() < shape[1])
        if not is_within or (outer.size and (outer[0] != 0 or outer[-1] != count or bool((np.diff(outer) < 0).any()))):
            raise InvalidArgument(f"inner indices are columns below {shape[1]}, outer ones rise from 0 to {count}")
        return cls._made(shape, values, SparseCsrView(inner, outer), ort_device)

    @classmethod
    def blocksparse_from_numpy(
        cls, dense_shape: Sequence[int], values: Array, block_sparse_indices: Array, ort_device: OrtDevice = CPU
    ) -> SparseTensor:
        """Make a tensor of blocks: `values` hold them, the int32 indices their places."""
        return cls._made(
            dense_shape, values, SparseBlockSparseView(np.ascontiguousarray(block_sparse_indices, np.int32)), ort_device
        )

    @staticmethod
    def from_dense(array: Array) -> SparseTensor:
        """Return the values of `array` that are not zero, in COO form with flat positions."""
        places = np.flatnonzero(array)
        return SparseTensor.sparse_coo_from_numpy(array.shape, array.ravel()[places], places)

    def to_dense(self) -> Array:
        """Return a dense array.

        Raises:
            NotImplemented: it is of the block form.
            InvalidArgument: there is not the memory for it.
        """
        if isinstance(self._view, SparseBlockSparseView):
            raise errors.NotImplemented("a block-sparse tensor cannot be made dense: its indices have no meaning of their own")
        try:
            dense: Array = np.zeros(self._shape, self._values.dtype)
        except (ValueError, MemoryError) as error:
            raise InvalidArgument(f"no dense array of the shape {self._shape} can be allocated: {error}") from error
        flat = self._values.ravel()
        if isinstance(self._view, SparseCsrView):
            counts = np.diff(self._view.outer())
            dense[np.repeat(np.arange(len(counts)), counts), self._view.inner()] = flat
        elif self._view.indices().ndim == 1:
            dense.reshape(-1)[self._view.indices()] = flat
        else:
            dense[tuple(self._view.indices().T)] = flat
        return dense

    def values(self) -> Array:
        """Return the values, sharing memory with the tensor; they cannot be written."""
        return _read_only(self._values)

    def format(self) -> OrtSparseFormat:
        """Return how the places are written."""
        if isinstance(self._view, SparseCooView):
            return OrtSparseFormat.ORT_SPARSE_COO
        is_rows = isinstance(self._view, SparseCsrView)
        return OrtSparseFormat.ORT_SPARSE_CSRC if is_rows else OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE

    def as_coo_view(self) -> SparseCooView:
        """Return the places of a COO tensor; raises InvalidArgument for another format."""
        if not isinstance(self._view, SparseCooView):
            raise InvalidArgument(f"this sparse tensor does not contain COO format; it has {self.format()}")
        return self._view

    def as_csrc_view(self) -> SparseCsrView:
        """Return the places of a CSR tensor; raises InvalidArgument for another format."""
        if not isinstance(self._view, SparseCsrView):
            raise InvalidArgument(f"this sparse tensor does not contain CSR(C) format; it has {self.format()}")
        return self._view

    def as_blocksparse_view(self) -> SparseBlockSparseView:
        """Return the places of a block-sparse tensor; raises InvalidArgument for another format."""
        if not isinstance(self._view, SparseBlockSparseView):
            raise InvalidArgument(f"this sparse tensor does not contain block-sparse format; it has {self.format()}")
        return self._view

    get_coo_data = as_coo_view
    get_csrc_data = as_csrc_view
    get_blocksparse_data = as_blocksparse_view

    def dense_shape(self) -> list[int]:
        """Return the shape of the dense tensor."""
        return list(self._shape)

    def data_type(self) -> str:
        """Return the type as ONNX writes it, such as "sparse_tensor(float)"."""
        return f"sparse_tensor({DataType.from_numpy(self._values.dtype)})"

    def device_name(self) -> str:
        """Return "cpu"."""
        return CPU.name

    def to_cuda(self, ort_device: OrtDevice) -> None:
        """Raise NotImplemented: there is no CUDA provider."""
        raise errors.NotImplemented(f"this build has no provider that keeps sparse tensors on {ort_device}")

    def _get_c_tensor(self) -> SparseTensor:
        return self


def _read_only(array: Array) -> Array:
    """Return a view that cannot be written: places and values are checked once."""
    view: Array = array.view()
    view.flags.writeable = False
    return view


def _checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(as_index("dense_shape", size) for size in as_list("dense_shape", shape))
    if any(size < 0 for size in sizes) or len(sizes) > LIMITS.rank:
        raise InvalidArgument(f"a dense shape has at most {LIMITS.rank} sizes, none of them negative, got {sizes}")
    return sizes
