"""Resize and Upsample, beside the reference provider, for several sizes of one session."""

import numpy as np
import pytest
from support.cpu_run import LEVELS, assert_close, cpu_session, declined, reference, steps_of
from support.moving import filled, same

from sardonyx.errors import InvalidArgument

_COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"]
_ROUNDINGS = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]


def _close(body: str, *shapes: tuple[int, ...], opset: int = 21, isa: str | None = None) -> None:
    for threads in (1, 2):
        session = cpu_session(body, opset=opset, isa=isa, threads=threads)
        for shape in shapes:
            feeds = {"x": filled(shape)}
            (found,), (wanted,) = session.run(None, feeds), reference(body, feeds, opset=opset)
            assert_close(found, wanted, 2e-6)


@pytest.mark.parametrize("coordinates", _COORDINATES)
@pytest.mark.parametrize("rounding", _ROUNDINGS)
def test_nearest(coordinates: str, rounding: str) -> None:
    """Every element is the reference's own, for factors that are and are not whole."""
    for scales in ("[1.0, 1.0, 2.0, 2.0]", "[1.0, 1.0, 3.0, 0.5]"):
        body = f"""graph(x: float[N, C, H, W]) -> (y) {{
            s: float[4] = {scales}
            y = Resize(x, _, s) {{mode = "nearest", coordinate_transformation_mode = "{coordinates}", nearest_mode = "{rounding}"}}
        }}"""
        same(body, (1, 2, 5, 7), (2, 3, 1, 33))
    body = f"""graph(x: float[2, 3, 16, 17]) -> (y) {{
        s: float[4] = [1.0, 1.0, 0.7, 1.3]
        y = Resize(x, _, s) {{mode = "nearest", coordinate_transformation_mode = "{coordinates}", nearest_mode = "{rounding}"}}
    }}"""
    same(body, (2, 3, 16, 17))


@pytest.mark.parametrize("kind", ["uint8", "bool", "float16", "double", "int64"])
def test_nearest_moves_elements_of_any_type(kind: str) -> None:
    """In rows of channels and one by one."""
    same(f"graph(x: {kind}[N, C, H, W]) -> (y) {{ s: float[4] = [1, 1, 2, 2] y = Resize(x, _, s) }}", (1, 3, 5, 20), kind=kind)
    same(f"graph(x: {kind}[N, H, W, C]) -> (y) {{ s: float[4] = [1, 2, 2, 1] y = Resize(x, _, s) }}", (1, 3, 5, 20), kind=kind)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", _COORDINATES)
def test_blending(mode: str, coordinates: str, isa: str) -> None:
    """Images as channels-first and channels-last, one axis, three axes."""
    how = f'{{mode = "{mode}", coordinate_transformation_mode = "{coordinates}"}}'
    first = f"graph(x: float[N, C, H, W]) -> (y) {{ s: float[4] = [1, 1, 2, 3] y = Resize(x, _, s) {how} }}"
    _close(first, (1, 2, 5, 7), (2, 1, 1, 33), isa=isa)
    last = f"graph(x: float[N, H, W, C]) -> (y) {{ s: float[4] = [1, 2, 3, 1] y = Resize(x, _, s) {how} }}"
    _close(last, (1, 5, 7, 3), (2, 1, 3, 33), (1, 4, 4, 1), isa=isa)
    line = f"graph(x: float[N, C, T]) -> (y) {{ s: float[3] = [1, 1, 0.5] y = Resize(x, _, s) {how} }}"
    _close(line, (1, 2, 6), (2, 1, 40), isa=isa)
    space = f"graph(x: float[2, 4, 5, 6, 3]) -> (y) {{ s: float[5] = [1, 2, 0.6, 1.5, 1] y = Resize(x, _, s) {how} }}"
    _close(space, (2, 4, 5, 6, 3), isa=isa)


def test_cubic_attributes() -> None:
    """The coefficient, and elements outside that weigh nothing."""
    how = '{mode = "cubic", cubic_coeff_a = -0.5, exclude_outside = 1}'
    _close(f"graph(x: float[N, 1, H, W]) -> (y) {{ s: float[4] = [1, 1, 2, 0.5] y = Resize(x, _, s) {how} }}", (1, 1, 5, 8))


def test_sizes() -> None:
    """Given as constants, for some axes, and taken from another tensor."""
    body = """graph(x: float[N, C, H, W]) -> (y) {
        s: int64[2] = [7, 9]
        y = Resize(x, _, _, s) {mode = "linear", axes = [2, -1]}
    }"""
    _close(body, (1, 2, 5, 6), (1, 2, 20, 4))
    body = """graph(x: float[N, C, H, W], z: float[N, D, P, Q]) -> (y) {
        a = Shape(x) {end = 2}
        b = Shape(z) {start = 2}
        s = Concat(a, b) {axis = 0}
        y = Resize(x, _, _, s)
    }"""
    same(body, *({"x": filled((1, 2, 5, 6)), "z": filled((1, 1, *wide))} for wide in ((10, 12), (3, 3), (5, 6))))


def test_old_versions() -> None:
    """Upsample with attributes and with an input, Resize before coordinates were named."""
    body = "graph(x: float[N, C, 3, 4]) -> (y: float[N, C, 6, 12]) { y = Upsample(x) {height_scale = 2.0, width_scale = 3.0} }"
    same(body, (1, 2, 3, 4), opset=6)
    same("graph(x: float[N, C, H, W]) -> (y) { y = Upsample(x) {scales = [1.0, 1.0, 2.0, 2.0]} }", (1, 2, 3, 4), opset=7)
    for mode in ("nearest", "linear"):
        body = f'graph(x: float[1, 2, 5, 4]) -> (y) {{ s: float[4] = [1, 1, 2, 2] y = Upsample(x, s) {{mode = "{mode}"}} }}'
        _close(body, (1, 2, 5, 4), opset=9)
        body = f'graph(x: float[1, 2, 5, 4]) -> (y) {{ s: float[4] = [1, 1, 0.6, 1.4] y = Resize(x, s) {{mode = "{mode}"}} }}'
        _close(body, (1, 2, 5, 4), opset=10)


def test_nothing_to_resize_is_a_view() -> None:
    """Scales of 1."""
    body = "graph(x: float[N, 3]) -> (y) { s: float[2] = [1, 1] a = Neg(x) b = Resize(a, _, s) y = Abs(b) }"
    assert "Resize" not in steps_of(body)
    same(body, (2, 3))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_axes_that_keep_their_length_keep_their_elements(mode: str) -> None:
    """With aligned corners too, where place * (length - 1) / (length - 1) is not the place in float32."""
    how = f'{{mode = "{mode}", coordinate_transformation_mode = "align_corners", nearest_mode = "floor"}}'
    x = filled((1, 5000, 2))
    for given in ("s: float[3] = [1, 1, 2] y = Resize(x, _, s)", "s: int64[3] = [1, 5000, 4] y = Resize(x, _, _, s)"):
        body = f"graph(x: float[N, 5000, 2]) -> (y) {{ {given} {how} }}"
        for found in (cpu_session(body).run(None, {"x": x})[0], reference(body, {"x": x})[0]):
            np.testing.assert_array_equal(found[..., ::3], x)


def test_empty_images() -> None:
    """Nothing becomes nothing; an empty axis cannot grow."""
    same("graph(x: float[N, 3, H]) -> (y) { s: float[3] = [1, 1, 2] y = Resize(x, _, s) }", (0, 3, 4), (1, 3, 0))
    session = cpu_session("graph(x: float[N, H]) -> (y) { s: int64[1] = [4] y = Resize(x, _, _, s) {axes = [1]} }")
    with pytest.raises(InvalidArgument, match="empty and cannot grow to 4"):
        session.run(None, {"x": np.zeros((1, 0), np.float32)})


def test_scales_that_only_the_run_shows_are_left_to_others() -> None:
    """No table can be made of them."""
    body = "graph(x: float[1, 1, 4, 4], s: float[4]) -> (y: float[1, 1, P, Q]) { y = Resize(x, _, s) }"
    assert "scales are computed" in declined(body)[0]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("number", ["0", "1"])
def test_scales_that_are_no_numbers_are_left_to_others(mode: str, number: str) -> None:
    """NaN and infinity, beside a declared output shape that is as good as any; the reference provider refuses to run them."""
    body = f"""graph(x: float[1, 1, 4, 4]) -> (y: float[1, 1, 4, 4]) {{
        n: float[1] = [{number}] z: float[1] = [0] t = Div(n, z) i: float[3] = [1, 1, 1] s = Concat(i, t) {{axis = 0}}
        y = Resize(x, _, s) {{mode = "{mode}"}} }}"""
    assert any("expected positive numbers" in reason for reason in declined(body))
    with pytest.raises(InvalidArgument, match="expected 4 positive"):
        reference(body, {"x": np.ones((1, 1, 4, 4), np.float32)})


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(
    "more", ["cubic_coeff_a = -0.5", "exclude_outside = 1", 'coordinate_transformation_mode = "align_corners"']
)
def test_stretched_filters(mode: str, more: str, isa: str) -> None:
    """Axes that shrink by small and large factors, grow, and stay; few elements behind the axis, and many."""
    attributes = f'mode = "{mode}", antialias = 1, {more}'
    for scales in ("[1.0, 1.0, 0.6, 0.3]", "[1.0, 0.5, 1.0, 0.13]", "[1.0, 1.0, 2.5, 1.7]"):
        head = f"graph(x: float[2, 3, 17, 40]) -> (y) {{ s: float[4] = {scales} "
        _close(head + f"y = Resize(x, _, s) {{{attributes}}} }}", (2, 3, 17, 40), isa=isa)
    body = f"graph(x: float[N, C, H, W]) -> (y) {{ s: int64[2] = [5, 20] y = Resize(x, _, _, s) {{{attributes}, axes = [2, 3]}} }}"
    _close(body, (1, 2, 17, 40), (1, 1, 3, 7), (1, 2, 5, 301), isa=isa)
    last = f"graph(x: float[N, H, W, 3]) -> (y) {{ s: int64[2] = [5, 20] y = Resize(x, _, _, s) {{{attributes}, axes = [1, 2]}} }}"
    _close(last, (1, 17, 40, 3), isa=isa)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("region", ["0.2, 0.3, 0.8, 0.6", "-0.5, 0.1, 0.5, 1.4", "0.9, 0.0, 0.1, 1.0", "0.0, 0.0, 1.0, 1.0"])
def test_regions(mode: str, region: str, isa: str) -> None:
    """Inside of the image, partly outside, turned round, and all of it."""
    attributes = (
        f'mode = "{mode}", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = -7.0, axes = [2, 3]'
    )
    for sizes in ("5, 20", "1, 33", "17, 40"):
        head = f"graph(x: float[N, C, H, W]) -> (y) {{ r: float[4] = [{region}] s: int64[2] = [{sizes}] "
        _close(head + f"y = Resize(x, r, _, s) {{{attributes}}} }}", (1, 2, 17, 40), (2, 3, 5, 33), isa=isa)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_kept_ratios(policy: str, mode: str) -> None:
    """All axes are resized by one factor."""
    for sizes in ("6, 30", "40, 41", "3, 7"):
        body = f"""graph(x: float[1, 2, 9, 11]) -> (y) {{
            s: int64[2] = [{sizes}]
            y = Resize(x, _, _, s) {{mode = "{mode}", keep_aspect_ratio_policy = "{policy}", axes = [2, 3]}} }}"""
        _close(body, (1, 2, 9, 11))


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(
    ("mode", "kind"), [*(("linear", kind) for kind in ("uint8", "int8", "uint16", "int16")), ("cubic", "uint8"), ("cubic", "int8")]
)
def test_integers_are_blended_as_floats(mode: str, kind: str, isa: str) -> None:
    """And cut off: each the reference's own where floats are exact, with weights of few bits; cubic ones are saturated."""
    limits = np.iinfo(kind)
    x = np.random.default_rng(3).integers(limits.min, limits.max + 1, (2, 3, 9, 17)).astype(kind)
    x[:, 1] = np.where(x[:, 1] > 0, limits.max, limits.min)
    for scales in ("[1, 1, 2, 4]", "[1, 1, 1, 0.5]", "[1, 2, 2, 1]"):
        body = f'graph(x: {kind}[N, C, H, W]) -> (y) {{ s: float[4] = {scales} y = Resize(x, _, s) {{mode = "{mode}"}} }}'
        (found,), (wanted,) = cpu_session(body, isa=isa).run(None, {"x": x}), reference(body, {"x": x})
        assert found.dtype == kind
        np.testing.assert_array_equal(found, wanted)


def test_integers_under_stretched_filters_are_rounded() -> None:
    """To nearest, ties to even, as the reference's."""
    x = np.random.default_rng(3).integers(0, 256, (1, 2, 8, 8), np.uint8)
    body = 'graph(x: uint8[1, 2, 8, 8]) -> (y) { s: float[4] = [1, 1, 0.5, 0.25] y = Resize(x, _, s) {mode = "linear", antialias = 1} }'
    (found,), (wanted,) = cpu_session(body).run(None, {"x": x}), reference(body, {"x": x})
    np.testing.assert_array_equal(found, wanted)


def test_integers_of_an_image_that_keeps_its_size_are_a_view() -> None:
    """Nothing is converted."""
    body = 'graph(x: uint8[1, 2, 8, 8]) -> (y) { s: float[4] = [1, 1, 1, 1] y = Resize(x, _, s) {mode = "linear"} }'
    x = np.arange(128, dtype=np.uint8).reshape(1, 2, 8, 8)
    np.testing.assert_array_equal(cpu_session(body).run(None, {"x": x})[0], x)
