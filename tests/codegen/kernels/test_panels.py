"""Panels that are stored narrow: the products of the same numbers in float32, to the bit."""

import ml_dtypes
import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BF16, F16, F32, U8, Type
from sardonyx.codegen.kernels.gemm import tiling, write_gemm
from sardonyx.codegen.kernels.gemm_params import GemmParams
from sardonyx.codegen.kernels.pack import pack_rows
from sardonyx.codegen.kernels.panels import BlockPanels, NarrowPanels, PanelColumns, TablePanels, WidePanels
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target, host_target
from sardonyx.dtypes import Array

_KINDS = [(F16, np.dtype(np.float16)), (BF16, np.dtype(ml_dtypes.bfloat16))]


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with the plain kernel for each storage."""
    engine = Engine(target)
    module = Module(target)
    write_gemm(module, "wide")
    for element, _ in _KINDS:
        write_gemm(module, f"narrow_{element.kind.value}", None, NarrowPanels(element))
    engine.add(module)
    return engine


def _numbers(*shape: int, dtype: np.dtype | type = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def _product(engine: Engine, symbol: str, a: Array, b: Array, params: GemmParams) -> Array:
    packed = pack_rows(lambda start, stop: b[start:stop], b.shape, tiling(engine.target).panel, is_transposed=False, dtype=b.dtype)
    c = np.full((params.M, params.N), 7, np.float32)
    call(engine, symbol, [a, packed, c], params.words(), 0, params.tasks())
    return c


@pytest.mark.parametrize(
    ("M", "N", "K"),
    [
        (1, 1, 1),
        (1, 64, 128),
        (2, 200, 40),
        (3, 81, 700),
        (4, 127, 129),
        (7, 65, 129),
        (6, 127, 300),
        (300, 40, 257),
        (5, 70, 4200),
        (2, 3, 0),
    ],
)
@pytest.mark.parametrize(("element", "dtype"), _KINDS, ids=["float16", "bfloat16"])
@pytest.mark.parametrize("threads", [1, 2])
def test_bits_are_those_of_wide_panels(
    engine: Engine, element: Type, dtype: np.dtype, M: int, N: int, K: int, threads: int
) -> None:
    """Around tiles, chains and blocks, however the product is cut."""
    a, b = _numbers(M, K), _numbers(K, N, dtype=dtype)
    narrow = GemmParams.blocked(engine.target, M, N, K, threads=threads, is_decoded=True)
    wide = _product(engine, "wide", a, b.astype(np.float32), GemmParams.blocked(engine.target, M, N, K))
    assert _product(engine, f"narrow_{element.kind.value}", a, b, narrow).tobytes() == wide.tobytes()


@pytest.mark.parametrize(("element", "dtype"), _KINDS, ids=["float16", "bfloat16"])
def test_every_number_of_sixteen_bits_is_widened_exactly(engine: Engine, element: Type, dtype: np.dtype) -> None:
    """Denormals and infinities too."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    finite = numbers[np.isfinite(numbers.astype(np.float32))].reshape(1, -1)
    one, params = np.ones((1, 1), np.float32), GemmParams.blocked(engine.target, 1, finite.shape[1], 1, is_decoded=True)
    product = _product(engine, f"narrow_{element.kind.value}", one, finite, params)
    np.testing.assert_array_equal(product, finite.astype(np.float32))
    infinite = numbers[np.isinf(numbers.astype(np.float32))].reshape(1, -1)
    params = GemmParams.blocked(engine.target, 1, infinite.shape[1], 1, is_decoded=True)
    assert np.isinf(_product(engine, f"narrow_{element.kind.value}", one, infinite, params)).all()


_BLOCKS = [
    BlockPanels(bits, size, zero) for bits in (2, 4, 8) for size, zero in ((16, None), (32, U8), (128, F32), (256, None), (512, U8))
]


@pytest.mark.parametrize("panels", _BLOCKS, ids=lambda panels: panels.name)
def test_numbers_of_few_bits_are_scaled_as_their_definition_says(target: Target, panels: BlockPanels) -> None:
    """(number - zero point) x scale, in float32, to the bit; around tiles, chains and blocks, with a last block that is not full."""
    engine, module = Engine(target), Module(target)
    write_gemm(module, "wide")
    write_gemm(module, "blocks", None, panels)
    engine.add(module)
    generator = np.random.default_rng(0)
    for M, N, K in ((1, 3, 1), (7, 65, 129), (2, 64, 300), (3, 130, 515), (4, 17, 1001), (5, 33, 1000)):
        blocks, width = -(-K // panels.block_size), tiling(target).panel
        numbers = generator.integers(0, 1 << panels.bits, (N, blocks, panels.block_size), dtype=np.uint8)
        scales = generator.standard_normal((N, blocks)).astype(np.float32)
        zeros = None if panels.zero is None else generator.integers(0, 1 << panels.bits, (N, blocks)).astype(_ZEROS[panels.zero])
        points = np.float32(1 << (panels.bits - 1)) if zeros is None else zeros[:, :, None].astype(np.float32)
        weights = ((numbers.astype(np.float32) - points) * scales[:, :, None]).reshape(N, -1)[:, :K].T
        a = _numbers(M, K)
        wide = _product(engine, "wide", a, np.ascontiguousarray(weights), GemmParams.blocked(target, M, N, K))
        packed, c = panels.pack(numbers.__getitem__, scales, zeros, width), np.full((M, N), 7, np.float32)
        params = GemmParams.blocked(target, M, N, K, is_decoded=True)
        call(engine, "blocks", [a, packed, c], params.words(), 0, params.tasks())
        assert c.tobytes() == wide.tobytes()


_ZEROS = {U8: np.uint8, F32: np.float32}


def test_memory_to_decode_into_is_demanded() -> None:
    """A kernel that forgets it is refused when it is written."""
    module = Module(host_target())
    for panels in (NarrowPanels(F16), BlockPanels(4, 32, None)):
        with module.kernel(f"k_{panels.name}") as b, pytest.raises(ValueError, match="needs memory"):
            panels.block(b, b.buffer(0, panels.element), b.begin, 16, b.begin, None)


def test_panels_that_are_read_in_place_are_not_decoded_in_registers() -> None:
    """A kernel that wants it is refused when it is written."""
    with Module(host_target()).kernel("k") as b, pytest.raises(TypeError, match="float32 panels are read in place"):
        WidePanels().multiply(b, [b.buffer(0, F32)], PanelColumns(b.buffer(1, F32), b.begin, b.begin, 16), b.begin, [])


def test_panels_with_another_field_have_another_name() -> None:
    """Kernels are known by it."""
    names = [panels.name for panels in (WidePanels(), NarrowPanels(F16), NarrowPanels(BF16), *_BLOCKS)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("size", [16, 64, 512])
def test_numbers_of_a_table_are_scaled_to_the_bit(target: Target, size: int) -> None:
    """Value x scale in float32, around tiles and chains."""
    engine, module, panels = Engine(target), Module(target), TablePanels(4, size, None, tuple(np.linspace(-2, 3, 16)))
    write_gemm(module, "wide")
    write_gemm(module, "table", None, panels)
    engine.add(module)
    generator, width = np.random.default_rng(0), tiling(target).panel
    for M, N, K in ((1, 3, 1), (7, 65, 129), (4, 70, 130), (5, 33, 1000)):
        blocks = -(-K // size)
        numbers = generator.integers(0, 16, (N, blocks, size), dtype=np.uint8)
        scales = generator.standard_normal((N, blocks)).astype(np.float32)
        values = np.array(panels.table, np.float32)[numbers] * scales[:, :, None]
        a, packed = _numbers(M, K), panels.pack(lambda columns, numbers=numbers: numbers[columns], scales, None, width)
        c, params = np.full((M, N), 7, np.float32), GemmParams.blocked(target, M, N, K, is_decoded=True)
        call(engine, "table", [a, packed, c], params.words(), 0, params.tasks())
        wide = _product(engine, "wide", a, values.reshape(N, -1)[:, :K].T, GemmParams.blocked(target, M, N, K))
        assert c.tobytes() == wide.tobytes()


def test_tables_have_names_of_their_own() -> None:
    """Kernels of one name have one code."""
    names = {TablePanels(4, size, None, (value,) * 16).name for size in (16, 32) for value in (0.0, 1.0)}
    assert len(names | {BlockPanels(4, 16, None).name}) == 5
