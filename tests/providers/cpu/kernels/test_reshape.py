"""Views, transposes, blocks, expansion: against the reference provider, for several sizes of one session."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, declined, steps_of
from support.moving import TYPES, same

from sardonyx.provider import Layout


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("perm", [(0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 2, 3), (2, 3, 0, 1), (0, 1, 3, 2)])
def test_transposes_of_any_size(perm: tuple[int, ...], isa: str) -> None:
    """Sizes around tiles and below them, those of a session that has seen others too."""
    body = f"graph(x: float[A, B, C, D]) -> (y) {{ y = Transpose(x) {{perm={list(perm)}}} }}"
    same(body, (2, 3, 5, 7), (1, 16, 15, 17), (2, 33, 1, 64), (1, 1, 1, 1), (3, 0, 4, 5), (1, 3, 30, 31), (2, 70, 3, 67), isa=isa)


@pytest.mark.parametrize("kind", list(TYPES))
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 8, 12])
def test_layouts_with_few_channels(kind: str, channels: int) -> None:
    """Images to channels-last and back, for elements of every size."""
    body = f"graph(x: {kind}[N, {channels}, H, W]) -> (y) {{ y = Transpose(x) {{perm=[0, 2, 3, 1]}} }}"
    same(body, (1, channels, 5, 7), (2, channels, 16, 16), (1, channels, 1, 1), (2, channels, 0, 3), kind=kind)
    body = f"graph(x: {kind}[N, H, W, {channels}]) -> (y) {{ y = Transpose(x) {{perm=[0, 3, 1, 2]}} }}"
    same(body, (1, 5, 7, channels), (2, 16, 16, channels), (1, 1, 1, channels), (2, 0, 3, channels), kind=kind)


def test_a_transpose_without_perm_reverses() -> None:
    """The default order; two and three dimensions."""
    same("graph(x: float[A, B]) -> (y) { y = Transpose(x) }", (1, 5), (40, 33), (512, 17))
    same("graph(x: float[A, B, C]) -> (y) { y = Transpose(x) }", (1, 5, 6), (40, 3, 33))


def test_heads_of_attention() -> None:
    """(N, T, H * D) -> (N, H, T, D) and (N, H, D, T), through views."""
    body = """graph(x: float[N, T, 96]) -> (y, z) {
        s: int64[4] = [0, 0, 3, 32]
        h = Reshape(x, s)
        y = Transpose(h) {perm=[0, 2, 1, 3]}
        z = Transpose(h) {perm=[0, 2, 3, 1]}
    }"""
    same(body, (1, 1, 96), (2, 17, 96), (1, 128, 96))


def test_moving_only_dimensions_of_one_element_copies_nothing() -> None:
    """A transpose that leaves the elements where they are is a view."""
    body = "graph(x: float[N, 1, 8]) -> (y) { a = Neg(x) b = Transpose(a) {perm=[1, 0, 2]} y = Abs(b) }"
    assert "Transpose" not in steps_of(body)
    same(body, (3, 1, 8), (1, 1, 8))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize(("block", "channels"), [(1, 3), (2, 1), (2, 3), (3, 1), (3, 16), (4, 5)])
def test_depth_becomes_space(mode: str, block: int, channels: int) -> None:
    """Blocks of every mode, with few and many channels."""
    depth = channels * block * block
    body = f'graph(x: float[N, {depth}, H, W]) -> (y) {{ y = DepthToSpace(x) {{blocksize={block}, mode="{mode}"}} }}'
    for layout in Layout:
        same(body, (1, depth, 5, 7), (2, depth, 16, 17), (1, depth, 1, 1), (0, depth, 2, 2), layout=layout)


@pytest.mark.parametrize(("block", "channels"), [(1, 3), (2, 1), (2, 3), (3, 16)])
def test_space_becomes_depth(block: int, channels: int) -> None:
    """Axes of a known size that blocks fill."""
    body = f"graph(x: float[N, {channels}, {4 * block}, {5 * block}]) -> (y) {{ y = SpaceToDepth(x) {{blocksize={block}}} }}"
    other = body.replace(f"blocksize={block}", f'blocksize={block}, mode="CRD"')
    for layout in Layout:
        same(body, (1, channels, 4 * block, 5 * block), (3, channels, 4 * block, 5 * block), layout=layout)
        same(other, (3, channels, 4 * block, 5 * block), opset=28, layout=layout)


def test_blocks_of_an_unknown_axis_are_left_alone() -> None:
    """Whether blocks fill it cannot be told."""
    reasons = declined("graph(x: float[N, 3, H, W]) -> (y) { y = SpaceToDepth(x) {blocksize=2} }")
    assert reasons == ["that blocks fill its axes depends on sizes"]


def test_expansion_repeats() -> None:
    """Along the first, a middle and the last dimension, and by leading ones."""
    same("graph(x: float[N, 1, 3]) -> (y) { s: int64[3] = [1, 4, 1] y = Expand(x, s) }", (2, 1, 3), (0, 1, 3))
    same("graph(x: float[N, 3, 1]) -> (y) { s: int64[3] = [1, 1, 5] y = Expand(x, s) }", (2, 3, 1))
    same("graph(x: float[N, 3]) -> (y) { s: int64[4] = [2, 5, 1, 3] y = Expand(x, s) }", (1, 3), (7, 3))
    same("graph(x: bool[1, 1]) -> (y) { s: int64[2] = [70, 70] y = Expand(x, s) }", (1, 1), kind="bool")


def test_an_expansion_that_repeats_nothing_copies_nothing() -> None:
    """Leading ones are a view."""
    body = "graph(x: float[N, 3]) -> (y) { s: int64[3] = [1, 1, 3] a = Neg(x) b = Expand(a, s) y = Abs(b) }"
    assert "Expand" not in steps_of(body)
    same(body, (2, 3))


def test_tiles() -> None:
    """Constant repeats, none and no repetition among them."""
    same("graph(x: float[N, 3]) -> (y) { s: int64[2] = [2, 3] y = Tile(x, s) }", (1, 3), (5, 3), (0, 3))
    same("graph(x: float[N, 3]) -> (y) { s: int64[2] = [1, 0] y = Tile(x, s) }", (5, 3))
    same("graph(x: float[N, 3]) -> (y) { s: int64[2] = [1, 1] a = Neg(x) b = Tile(a, s) y = Abs(b) }", (5, 3))
    same("graph(x: uint8[N, 4, 5]) -> (y) { s: int64[3] = [3, 1, 2] y = Tile(x, s) }", (2, 4, 5), kind="uint8")


def test_old_versions_of_views() -> None:
    """Squeeze, Unsqueeze and Flatten with attributes."""
    body = """graph(x: float[N, 1, 3]) -> (y, z) {
        a = Neg(x)
        b = Squeeze(a) {axes=[1]}
        y = Abs(b)
        c = Unsqueeze(b) {axes=[0, 2]}
        z = Abs(c)
    }"""
    same(body, (2, 1, 3), opset=11)
    same("graph(x: float[N, 2, 3]) -> (y) { a = Neg(x) b = Flatten(a) {axis=2} y = Abs(b) }", (4, 2, 3), opset=9)


def test_bits_under_another_type_stay_where_they_are() -> None:
    """A BitCast is a view; of a bool it is left to others."""
    x = np.array([[0.0, -0.0, np.nan], [1, -1, np.inf]], np.float32)
    same("graph(x: float[A, B]) -> (y) { y = BitCast(x) {to = 6} }", {"x": x}, opset=26)
    body = "graph(x: float[A, B]) -> (y) { n = Neg(x) b = BitCast(n) {to = 6} y = BitwiseNot(b) }"
    assert "BitCast" not in steps_of(body, opset=26)
    same(body, {"x": x}, opset=26)
    assert "read as bool" in declined("graph(x: uint8[A]) -> (y) { y = BitCast(x) {to = 9} }", opset=26)[0]
