"""Every kernel's symbol says all that its code depends on: one with another field has another name."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import sardonyx.providers.cpu.kernels
from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.row_expr import RowFold
from sardonyx.codegen.emit.types import BF16, F16, F32, F64, I8, I32, I64, U8
from sardonyx.codegen.kernels.attention.group_query import Rotation
from sardonyx.codegen.kernels.attention.linear import LinearAttentionCode
from sardonyx.codegen.kernels.attention.scores import AttentionShape, Masking
from sardonyx.codegen.kernels.dot_conv import DotConvCode
from sardonyx.codegen.kernels.dot_depthwise import DotDepthwiseCode
from sardonyx.codegen.kernels.elementwise import Access
from sardonyx.codegen.kernels.images.grid_sample import Sampling
from sardonyx.codegen.kernels.images.plane_conv import PlaneConvCode
from sardonyx.codegen.kernels.images.plane_pool import PlanePoolCode
from sardonyx.codegen.kernels.lines import Along, ExtraOperand
from sardonyx.codegen.kernels.normalize import Norm
from sardonyx.codegen.kernels.panels import BlockPanels, NarrowPanels, NumberPanels, WidePanels
from sardonyx.codegen.kernels.quantized.byte_gemm import ByteStore, Zero
from sardonyx.codegen.kernels.recurrent_params import Cell, Phase, Plane
from sardonyx.codegen.kernels.signal.fourier import Lines
from sardonyx.codegen.kernels.support_vectors import Outcome
from sardonyx.codegen.target import host_target
from sardonyx.dtypes import DataType
from sardonyx.providers.cpu import strided
from sardonyx.providers.cpu.kernels.conv_tail import TailCode
from sardonyx.providers.cpu.kernels.integer_tail import IntegerTailCode
from sardonyx.providers.cpu.kernels.lines import LinesCode

X, Z = argument(0, F32), argument(1, F32)
PHASE = Phase(1, Plane.HIDDEN, (), ((Plane.HIDDEN, X),))
CELL = Cell((PHASE,), 4, 0, (Plane.HIDDEN,), False)
DOT_DEPTHWISE = DotDepthwiseCode(3, 1, 1, False, False, False)
DOT_CONV = DotConvCode(2, (4,), False, False, 0, 0)
PLANE_CONV = PlaneConvCode(F32, 1, 4, False, X)
PLANE_POOL = PlanePoolCode("max", F32, 1, 0, 0, False, False, X)
STORE = ByteStore(U8, I8, False, None, None, X, (F32,), "c")
VALUES: dict[str, list[Any]] = {
    "Along": list(Along),
    "AttentionShape": [AttentionShape(Masking.NONE, False, False, 0.0, False), AttentionShape(Masking.FULL, True, True, 2.0, True)],
    "ByteStore": [
        STORE,
        *(dataclasses.replace(STORE, **change) for change in ({"left": I8}, {"right": U8}, {"is_prepared": True}, {"ways": "s"})),
        *(dataclasses.replace(STORE, left_zero=Zero(kind, way)) for kind, way in ((U8, "s"), (U8, "r"), (I8, "s"))),
        *(dataclasses.replace(STORE, right_zero=Zero(kind, way)) for kind, way in ((U8, "s"), (U8, "c"), (I8, "s"))),
        dataclasses.replace(STORE, expr=X + Z),
        dataclasses.replace(STORE, kinds=(I32,)),
    ],
    "LinearAttentionCode": [LinearAttentionCode(*(place == there for place in range(3))) for there in range(-1, 3)],
    "Cell": [
        CELL,
        *(dataclasses.replace(CELL, **change) for change in ({"units": 2}, {"columns": 1}, {"states": ()}, {"is_ragged": True})),
        dataclasses.replace(CELL, phases=(dataclasses.replace(PHASE, stores=((Plane.HIDDEN, X + Z),)),)),
        dataclasses.replace(CELL, phases=(dataclasses.replace(PHASE, gates=2),)),
        dataclasses.replace(CELL, phases=(dataclasses.replace(PHASE, source=Plane.CELL),)),
        dataclasses.replace(CELL, phases=(dataclasses.replace(PHASE, elements=(Plane.CELL,)),)),
        dataclasses.replace(CELL, phases=(PHASE, PHASE)),
    ],
    "DataType": [DataType.FLOAT, DataType.INT64],
    "DotConvCode": [
        DOT_CONV,
        *(
            dataclasses.replace(DOT_CONV, **change)
            for change in ({"rank": 1}, {"widths": (2, 1)}, {"padded": True}, {"signed": True}, {"rest": 3}, {"factors": 1})
        ),
        dataclasses.replace(DOT_CONV, factors=2),
    ],
    "DotDepthwiseCode": [
        DOT_DEPTHWISE,
        *(
            dataclasses.replace(DOT_DEPTHWISE, **change)
            for change in ({"taps": 5}, {"stride": 2}, {"dilation": 2}, {"signed": True}, {"factors": True}, {"whole": True})
        ),
    ],
    "BlockPanels": [BlockPanels(4, 32, None), BlockPanels(4, 32, U8), BlockPanels(8, 32, U8)],
    "ElementExpr": [X, X + Z],
    "IntegerTailCode": [IntegerTailCode(X, "", ()), IntegerTailCode(X + Z, "c", (F32,)), IntegerTailCode(X + Z, "o", (F32,))],
    "Lines": [Lines(False, False, False, False), Lines(True, False, False, False), Lines(False, True, True, True)],
    "LinesCode": [LinesCode(Along.ROWS, ()), LinesCode(Along.ROWS, (ExtraOperand(F32, True, (True,)),))],
    "Norm": list(Norm)[:2],
    "Panels": [
        WidePanels(),
        NumberPanels(F64),
        NumberPanels(I32),
        NarrowPanels(F16),
        NarrowPanels(BF16),
        BlockPanels(4, 32, None),
        BlockPanels(4, 32, U8),
    ],
    "PlaneConvCode": [
        PLANE_CONV,
        *(
            dataclasses.replace(PLANE_CONV, **change)
            for change in ({"kind": F64}, {"stride": 2}, {"at_once": 1}, {"has_bias": True})
        ),
        dataclasses.replace(PLANE_CONV, after=X + Z),
    ],
    "PlanePoolCode": [
        PLANE_POOL,
        *(
            dataclasses.replace(PLANE_POOL, **change)
            for change in ({"fold": "sum"}, {"kind": F64}, {"rank": 2}, {"stride": 2}, {"taps": 3}, {"counts_padding": True})
        ),
        dataclasses.replace(PLANE_POOL, after=X + Z),
    ],
    "Rotation": list(Rotation),
    "Sampling": [Sampling("linear", "zeros", False, 2), Sampling("cubic", "border", True, 3)],
    "Outcome": list(Outcome),
    "TailCode": [TailCode(X, ""), TailCode(X + Z, "c"), TailCode(X + Z, "w")],
    "Type": [I32, I8, I64],
    "Type | None": [None, F32, BF16],
    "bool": [False, True],
    "int": [2, 3],
    "int | None": [None, 1],
    "str": ["max", "min"],
    "tuple[Access, ...]": [(Access.ORDERED, Access.ORDERED), (Access.FIXED, Access.ORDERED)],
    "tuple[Access, Access]": [(Access.ORDERED, Access.ORDERED), (Access.FIXED, Access.ORDERED)],
    "tuple[ElementExpr, ...]": [(X,), (X + Z,)],
    "tuple[RowFold, ...]": [(RowFold("row_sum", X),), (RowFold("row_max", X),), (RowFold("row_sum", X + Z),)],
    "tuple[Type, ...]": [(F32,)],
    "tuple[int, ...]": [(2, 1), (3, 2, 1)],
    "tuple[int, int]": [(1, 1), (1, 2), (2, 2)],
}
"""The type of a field -> values that it may have, whose kernels all differ."""
FOLLOWS = {
    ("CountKernel", "kind"): "the type of elements",
    ("MapKernel", "kinds"): "what it computes",
    ("ReduceKernel", "kind"): "what is stored",
    ("StoreKernel", "kind"): "the type of elements",
}
"""Fields that follow from another one."""


def _kernels() -> Iterator[type[Any]]:
    package = sardonyx.providers.cpu.kernels
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    for module in (*modules, strided):
        for name, kernel in vars(module).items():
            if name.endswith("Kernel") and getattr(kernel, "__module__", "") == module.__name__:
                yield kernel


KERNELS = list(_kernels())


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_a_kernel_with_another_field_has_another_name(kernel: type[Any]) -> None:
    """And equal ones have equal names."""
    fields = [field for field in dataclasses.fields(kernel) if (kernel.__name__, field.name) not in FOLLOWS]
    base = kernel(**{field.name: VALUES[str(field.type)][0] for field in dataclasses.fields(kernel)})
    variants = [dataclasses.replace(base, **{field.name: value}) for field in fields for value in VALUES[str(field.type)][1:]]
    names = [found.symbol(host_target()) for found in (base, *variants)]
    assert len(set(names)) == len(names)
    assert dataclasses.replace(base).symbol(host_target()) == names[0]


def test_all_kernels_are_among_these() -> None:
    """As many as the lowerings ask for, and more than a few."""
    assert len({kernel.__name__ for kernel in KERNELS}) == len(KERNELS) > 30
