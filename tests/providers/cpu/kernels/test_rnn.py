"""LSTM, GRU and RNN on the CPU provider, against the reference provider in float64."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from support.cancelling import after
from support.cpu_run import LEVELS, assert_same_bits, cpu_session, declined, reference, run_cpu, steps_of

from sardonyx import RunOptions
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument, RunTerminated

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OPS = list(GATES)
OPTIONAL = ("b", "lens", "h", "c", "p")
"""The inputs after R, in order."""


def body_of(
    op_type: str, *, H: int = 5, features: int = 3, D: int = 1, given: str = "b", attributes: str = "", outputs: str = ""
) -> str:
    """One node on inputs of any length and batch; `given` names the optional inputs that are there."""
    rows = GATES[op_type] * H
    layout = "layout = 1" in attributes
    state = f"n, {D}, {H}" if layout else f"{D}, n, {H}"
    shapes = {
        "x": f"float[n, t, {features}]" if layout else f"float[t, n, {features}]",
        "w": f"float[{D}, {rows}, {features}]",
        "r": f"float[{D}, {rows}, {H}]",
        "b": f"float[{D}, {2 * rows}]",
        "lens": "int32[n]",
        "h": f"float[{state}]",
        "c": f"float[{state}]",
        "p": f"float[{D}, {3 * H}]",
    }
    names = given.split()
    last = max((OPTIONAL.index(name) for name in names), default=-1)
    call = ["x", "w", "r", *(name if name in names else "_" for name in OPTIONAL[: last + 1])]
    declared = ", ".join(f"{name}: {shapes[name]}" for name in ("x", "w", "r", *names))
    made = outputs or ("y, yh, yc" if op_type == "LSTM" else "y, yh")
    results = ", ".join(name for name in made.split(", ") if name != "_")
    direction = 'direction = "bidirectional"' if D == 2 and "direction" not in attributes else ""
    settings = ", ".join(part for part in (f"hidden_size = {H}", direction, attributes) if part)
    return f"graph({declared}) -> ({results}) {{ {made} = {op_type}({', '.join(call)}) {{{settings}}} }}"


def feeds_of(
    op_type: str,
    *,
    T: int = 4,
    N: int = 3,
    H: int = 5,
    features: int = 3,
    D: int = 1,
    given: str = "b",
    layout: int = 0,
    seed: int = 0,
) -> dict[str, Array]:
    """Random inputs for `body_of`."""
    rng, rows = np.random.default_rng(seed), GATES[op_type] * H
    state = (N, D, H) if layout else (D, N, H)
    shapes = {
        "x": (N, T, features) if layout else (T, N, features),
        "w": (D, rows, features),
        "r": (D, rows, H),
        "b": (D, 2 * rows),
        "h": state,
        "c": state,
        "p": (D, 3 * H),
    }
    drawn = {
        name: (rng.standard_normal(shape) / np.sqrt(max(H, 1)) ** (name == "r")).astype(np.float32)
        for name, shape in shapes.items()
    }
    lengths = rng.integers(0, T + 1, N).astype(np.int32)
    return {name: lengths if name == "lens" else drawn[name] for name in ("x", "w", "r", *given.split())}


def close(body: str, feeds: dict[str, Array], tolerance: float = 4e-6, **options: Any) -> None:
    """All outputs are near those of the reference provider in float64."""
    found, exact = run_cpu(body, feeds, **options), reference(body, feeds, double=True)
    for ours, theirs in zip(found, exact, strict=True):
        assert ours.dtype == np.float32
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("op_type", OPS)
@pytest.mark.parametrize("H", [1, 7, 15, 16, 17, 33, 64])
@pytest.mark.parametrize("N", [1, 3, 5])
def test_hidden_units_and_batches_around_every_width(op_type: str, H: int, N: int) -> None:
    """Vectors, panels and tiles with their tails."""
    close(body_of(op_type, H=H), feeds_of(op_type, H=H, N=N))


@pytest.mark.parametrize("op_type", [*OPS, "linear"])
@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(("H", "N"), [(5, 1), (20, 6), (40, 17), (150, 8), (300, 2)])
def test_every_level(op_type: str, isa: str, H: int, N: int) -> None:
    """Each instruction set level, with sums of more than one chain, and every height of a tile."""
    linear = op_type == "linear"
    name, attributes = ("GRU", "linear_before_reset = 1") if linear else (op_type, "")
    close(body_of(name, H=H, attributes=attributes), feeds_of(name, H=H, N=N), isa=isa)


@pytest.mark.parametrize("op_type", OPS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("given", ["", "b", "b lens", "lens h", "b h"])
def test_directions_layouts_and_lengths(op_type: str, direction: str, layout: int, given: str) -> None:
    """Each combination, with initial states and without."""
    D = 2 if direction == "bidirectional" else 1
    attributes = f'direction = "{direction}", layout = {layout}'
    feeds = feeds_of(op_type, T=6, N=7, D=D, given=given, layout=layout)
    close(body_of(op_type, D=D, given=given, attributes=attributes), feeds)


@pytest.mark.parametrize("given", ["p", "b c", "b lens h c p", "h p"])
@pytest.mark.parametrize("attributes", ["", "input_forget = 1", "clip = 0.3", "input_forget = 1, clip = 0.5, layout = 1"])
@pytest.mark.parametrize("D", [1, 2])
def test_peepholes_coupled_gates_and_clipping(given: str, attributes: str, D: int) -> None:
    """What only LSTM has."""
    feeds = feeds_of("LSTM", T=5, N=4, H=18, D=D, given=given, layout=int("layout" in attributes))
    close(body_of("LSTM", H=18, D=D, given=given, attributes=attributes), feeds)


@pytest.mark.parametrize("linear", [0, 1])
@pytest.mark.parametrize("given", ["", "b", "b lens h"])
@pytest.mark.parametrize("clip", ["", ", clip = 0.4"])
@pytest.mark.parametrize("D", [1, 2])
def test_a_reset_before_or_after_the_product(linear: int, given: str, clip: str, D: int) -> None:
    """Both forms of GRU: the bias of the inner product is within the reset gate."""
    feeds = feeds_of("GRU", T=5, N=4, H=18, D=D, given=given)
    close(body_of("GRU", H=18, D=D, given=given, attributes=f"linear_before_reset = {linear}{clip}"), feeds)


ACTIVATIONS = {
    "Relu": "",
    "Tanh": "",
    "Sigmoid": "",
    "Softsign": "",
    "Softplus": "",
    "Affine": "activation_alpha = [0.5], activation_beta = [0.1]",
    "LeakyRelu": "activation_alpha = [0.2]",
    "ThresholdedRelu": "activation_alpha = [0.3]",
    "ScaledTanh": "activation_alpha = [0.7], activation_beta = [1.3]",
    "HardSigmoid": "activation_alpha = [0.3], activation_beta = [0.4]",
    "Elu": "activation_alpha = [0.6]",
}


@pytest.mark.parametrize("name", list(ACTIVATIONS))
@pytest.mark.parametrize("numbers", [False, True])
def test_activations(name: str, numbers: bool) -> None:
    """Each of the standard, with its default numbers and with others."""
    more = f", {ACTIVATIONS[name]}" if numbers and ACTIVATIONS[name] else ""
    close(body_of("RNN", attributes=f'activations = ["{name}"]{more}'), feeds_of("RNN"))


def test_a_threshold_itself_is_kept() -> None:
    """ThresholdedRelu as the reference provider has it: what equals alpha stays."""
    body = body_of("RNN", H=1, features=1, given="", attributes='activations = ["ThresholdedRelu"]')
    feeds = {name: np.ones(shape, np.float32) for name, shape in (("x", (1, 1, 1)), ("w", (1, 1, 1)), ("r", (1, 1, 1)))}
    assert run_cpu(body, feeds)[0].item() == reference(body, feeds)[0].item() == 1


@pytest.mark.parametrize("op_type", OPS)
def test_directions_may_have_activations_of_their_own(op_type: str) -> None:
    """Numbers go to the functions that take them, in order; each direction is then a step of its own."""
    each = {"RNN": ["Affine"], "GRU": ["HardSigmoid", "Elu"], "LSTM": ["HardSigmoid", "ScaledTanh", "Tanh"]}[op_type]
    other = {"RNN": ["Elu"], "GRU": ["Sigmoid", "Affine"], "LSTM": ["Sigmoid", "Softsign", "Affine"]}[op_type]
    names = ", ".join(f'"{name}"' for name in (*each, *other))
    attributes = f"activations = [{names}], activation_alpha = [0.3, 0.5], activation_beta = [0.25]"
    body = body_of(op_type, D=2, given="b lens h", attributes=attributes)
    close(body, feeds_of(op_type, D=2, N=5, given="b lens h"))
    assert steps_of(body).count(op_type) == 3


@pytest.mark.parametrize("op_type", OPS)
def test_a_bidirectional_network_with_equal_activations_is_one_step(op_type: str) -> None:
    """After the product for the input of all steps."""
    assert steps_of(body_of(op_type, D=2)).count(op_type) == 2


@pytest.mark.parametrize("op_type", OPS)
@pytest.mark.parametrize("outputs", ["y", "_, yh", "y, yh"])
@pytest.mark.parametrize("given", ["b", "b lens"])
def test_outputs_may_be_left_out(op_type: str, outputs: str, given: str) -> None:
    """Every combination of Y and Y_h."""
    close(body_of(op_type, given=given, outputs=outputs), feeds_of(op_type, given=given))


@pytest.mark.parametrize("outputs", ["_, _, yc", "y, _, yc", "_, yh, yc"])
def test_the_cell_state_alone(outputs: str) -> None:
    """Y_c with others left out."""
    close(body_of("LSTM", given="b lens h c", outputs=outputs), feeds_of("LSTM", given="b lens h c"))


def constant_body(op_type: str, feeds: dict[str, Array], *, attributes: str = "", D: int = 1) -> str:
    """The node with weights in the model."""
    H = feeds["r"].shape[2]
    made = "y, yh, yc" if op_type == "LSTM" else "y, yh"

    def text(array: Array) -> str:
        return f"[{', '.join(repr(float(number)) for number in array.ravel())}]"

    weights = "\n".join(f"{name}: float{list(feeds[name].shape)} = {text(feeds[name])}" for name in ("w", "r", "b"))
    direction = ', direction = "bidirectional"' if D == 2 else ""
    call = f"{made} = {op_type}(x, w, r, b) {{hidden_size = {H}{direction}{attributes}}}"
    return f"graph(x: float[t, n, {feeds['x'].shape[2]}]) -> ({made}) {{ {weights} {call} }}"


@pytest.mark.parametrize("op_type", OPS)
@pytest.mark.parametrize("D", [1, 2])
def test_constant_weights_give_the_bits_of_computed_ones(op_type: str, D: int) -> None:
    """They are packed once, by the same places."""
    feeds = feeds_of(op_type, H=21, D=D, N=4)
    found = run_cpu(constant_body(op_type, feeds, D=D), {"x": feeds["x"]})
    for ours, computed in zip(found, run_cpu(body_of(op_type, H=21, D=D), feeds), strict=True):
        assert_same_bits(ours, computed)


def test_constant_weights_are_two_steps() -> None:
    """The product for the input of all steps, and the steps."""
    assert steps_of(constant_body("LSTM", feeds_of("LSTM"))) == ["LSTM", "LSTM"]


@pytest.mark.parametrize("op_type", [*OPS, "linear"])
@pytest.mark.parametrize("D", [1, 2])
@pytest.mark.parametrize(("N", "H"), [(1, 40), (13, 40), (1, 420), (7, 420)])
def test_threads_change_no_bits(op_type: str, D: int, N: int, H: int) -> None:
    """One, two and three of them, which share the rows of the batch, or the panels of large weights."""
    attributes = "linear_before_reset = 1" if op_type == "linear" else ""
    name = "GRU" if op_type == "linear" else op_type
    body = body_of(name, H=H, D=D, given="b lens", attributes=attributes)
    feeds = feeds_of(name, T=9, N=N, H=H, D=D, given="b lens")
    alone = run_cpu(body, feeds)
    for threads in (2, 3):
        for one, other in zip(alone, run_cpu(body, feeds, threads=threads), strict=True):
            assert_same_bits(one, other)


@pytest.mark.parametrize("op_type", OPS)
def test_a_row_has_the_same_bits_in_a_batch_as_alone(op_type: str) -> None:
    """Whatever tile it is in."""
    body, feeds = body_of(op_type, H=140), feeds_of(op_type, H=140, N=11)
    session = cpu_session(body)
    together = session.run(None, feeds)
    for n in range(11):
        one = session.run(None, feeds | {"x": np.ascontiguousarray(feeds["x"][:, n : n + 1])})
        for whole, part in zip(together, one, strict=True):
            assert_same_bits(np.ascontiguousarray(whole[..., n : n + 1, :]), part)


@pytest.mark.parametrize("op_type", OPS)
def test_shapes_change(op_type: str) -> None:
    """One session runs with any steps and batch, none of them included."""
    body = body_of(op_type, given="b lens h")
    session = cpu_session(body)
    for T, N in ((4, 3), (1, 1), (0, 2), (3, 0), (0, 0), (50, 2)):
        feeds = feeds_of(op_type, T=T, N=N, given="b lens h")
        for ours, theirs in zip(session.run(None, feeds), reference(body, feeds, double=True), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("op_type", OPS)
@pytest.mark.parametrize("bad", [-1, 5, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_length_outside_the_steps_is_refused(op_type: str, bad: int, place: int, threads: int) -> None:
    """The message says which one, and what is allowed."""
    feeds = feeds_of(op_type, given="lens")
    feeds["lens"][place] = bad
    with pytest.raises(InvalidArgument, match=rf"element {place} of sequence_lens .*between 0 and the number of steps"):
        run_cpu(body_of(op_type, given="lens"), feeds, threads=threads)


@pytest.mark.parametrize("op_type", OPS)
def test_lengths_of_another_number_are_refused(op_type: str) -> None:
    """There is one for each row of the batch."""
    body = body_of(op_type, given="lens").replace("int32[n]", "int32[k]")
    feeds = feeds_of(op_type, given="lens")
    feeds["lens"] = np.ones(4, np.int32)
    with pytest.raises(InvalidArgument, match=r"sequence_lens has a dimension 4 .* make it 3"):
        run_cpu(body, feeds)


def test_inputs_that_do_not_fit_are_refused() -> None:
    """The message names the input and both sizes."""
    body = body_of("LSTM", given="b h").replace("h: float[1, n, 5]", "h: float[1, m, 5]")
    feeds = feeds_of("LSTM", given="b h")
    feeds["h"] = np.zeros((1, 2, 5), np.float32)
    with pytest.raises(InvalidArgument, match=r"initial_h has a dimension 2 .* make it 3"):
        run_cpu(body, feeds)


@pytest.mark.parametrize("op_type", OPS)
def test_not_a_number_stays_in_its_row(op_type: str) -> None:
    """Other rows of the batch do not change."""
    body, feeds = body_of(op_type, H=20), feeds_of(op_type, H=20, N=8)
    clean = run_cpu(body, feeds)[0]
    feeds["x"][1, 3, 0] = np.nan
    found = run_cpu(body, feeds)[0]
    assert np.isnan(found[1:, :, 3]).all()
    assert_same_bits(np.delete(found, 3, axis=2), np.delete(clean, 3, axis=2))


def test_other_types_are_left_to_others() -> None:
    """The reason names the type."""
    assert declined(body_of("LSTM").replace("float[", "float16[")) == ["elements of type float16"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_sequence_is_cancelled_within_100_ms(threads: int) -> None:
    """The steps are cut into tasks of about a millisecond; the best of some tries, since others may use the machine."""
    feeds = feeds_of("LSTM", T=8000, N=1, H=512, features=8)
    session = cpu_session(body_of("LSTM", H=512, features=8, outputs="_, yh"), threads=threads)

    def milliseconds() -> float:
        options, causes = RunOptions(), []

        def end() -> None:
            causes.append(time.monotonic())
            options.terminate = True

        with after(0.15, end), pytest.raises(RunTerminated):
            session.run(None, feeds, options)
        return (time.monotonic() - causes[0]) * 1000

    assert min(milliseconds() for _ in range(4)) < 100


def _wide(body: str, feeds: dict[str, Array]) -> tuple[str, dict[str, Array]]:
    """The model and its feeds in float64."""
    wide = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in feeds.items()}
    return body.replace("float[", "double["), wide


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("op_type", [*OPS, "linear"])
@pytest.mark.parametrize(("H", "N"), [(1, 1), (7, 3), (33, 6), (150, 9)])
def test_float64(op_type: str, H: int, N: int, isa: str) -> None:
    """Sums and states are float64, in both directions, with lengths and initial states."""
    attributes, kind = ("linear_before_reset = 1", "GRU") if op_type == "linear" else ("", op_type)
    given = "b lens h c p" if kind == "LSTM" else "b lens h"
    body = body_of(kind, H=H, given=given, D=2, attributes=attributes)
    wide, feeds = _wide(body, feeds_of(kind, H=H, N=N, given=given, D=2))
    found, exact = run_cpu(wide, feeds, isa=isa), reference(wide, feeds)
    for ours, theirs in zip(found, exact, strict=True):
        assert ours.dtype == np.float64
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)
    for ours, theirs in zip(run_cpu(wide, feeds, isa=isa, threads=2), found, strict=True):
        assert_same_bits(ours, theirs)


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_activations_in_float64(name: str) -> None:
    """Each function of the standard."""
    body = body_of("RNN", attributes=f'activations = ["{name}"]')
    wide, feeds = _wide(body, feeds_of("RNN"))
    for ours, theirs in zip(run_cpu(wide, feeds), reference(wide, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)
