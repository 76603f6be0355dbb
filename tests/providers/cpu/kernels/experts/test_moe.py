"""MoE and QMoE against float64 and the reference provider."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.constant_nodes import declined_of, node_model, open_session
from support.cpu_run import LEVELS, assert_same_bits

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

C, E, INNER = 24, 5, 36


def _draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _feeds(tokens: int) -> dict[str, Array]:
    return {"x": _draw(tokens, C, seed=tokens + 1), "r": _draw(tokens, E, seed=tokens + 2)}


def _model(*constants: Array | None, op_type: str = "MoE", mixing: Array | None = None, **attributes: Any) -> bytes:
    fed = _feeds(1)
    inputs: list[Any] = [("x", fed["x"]), ("r", fed["r"]), *constants]
    if mixing is not None:
        inputs += [None] * (14 - len(inputs)) + [("m", mixing)]
    shapes: dict[str, list[str | int]] = {"x": ["T", C], "r": ["T", E], "m": ["T", E]}
    return node_model(op_type, inputs, shapes=shapes, **attributes)


def _plain(*, third: bool = False, doubled: bool = False) -> list[Array | None]:
    rows = 2 * INNER if doubled else INNER
    weights = [_draw(E, rows, C, seed=3) / 4, _draw(E, rows, seed=4), _draw(E, C, INNER, seed=5) / 4, _draw(E, C, seed=6)]
    return [*weights, *([_draw(E, INNER, C, seed=7) / 4, _draw(E, INNER, seed=8)] if third else [])]


def _packed(bits: int, block: int, zeros: bool) -> list[Array | None]:
    """Weights, scales and bias of fc1 and fc2, then zero points."""
    generator, found, points = np.random.default_rng(bits), [], []
    for rows, columns in ((INNER, C), (C, INNER)) if not block else ((64, C), (C, 64)):
        blocks = columns // block if block else 1
        found += [
            generator.integers(0, 256, (E, rows, columns * bits // 8), dtype=np.uint8),
            generator.uniform(0.01, 0.1, (E, rows, blocks) if block else (E, rows)).astype(np.float32),
            generator.standard_normal((E, rows)).astype(np.float32),
        ]
        size = (rows, -(-blocks * bits // 8)) if block else (-(-rows * bits // 8),)
        points.append(generator.integers(0, 256, (E, *size), dtype=np.uint8))
    return [*found, None, None, None, *(points if zeros else [])]


def _check(model: bytes, tokens: int = 13, **more: Array) -> None:
    fed = {**_feeds(tokens), **more}
    found, exact = (open_session(model, provider).run(None, fed)[0] for provider in ("CPU", "Reference"))
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5 * max(1, np.abs(exact).max(initial=0)))


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("k", [1, 3, E])
def test_activations(name: str, k: int, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without a second product that gates the first."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    for third in (False, True):
        _check(_model(*_plain(third=third), activation_type=name, k=k, normalize_routing_weights=int(third)))


@pytest.mark.parametrize("fusion", [0, 1, 2])
def test_swiglu_in_each_layout(fusion: int) -> None:
    """The linear half in fc3, alternating with the gate, or behind it."""
    weights = _plain(third=fusion == 0, doubled=fusion != 0)
    numbers = {"activation_alpha": 1.7, "activation_beta": 1.0, "swiglu_limit": 1.5}
    _check(_model(*weights, activation_type="swiglu", k=2, swiglu_fusion=fusion, **numbers))
    _check(
        _model(*(None if i in (1, 5) else w for i, w in enumerate(weights)), activation_type="swiglu", k=2, swiglu_fusion=fusion)
    )


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_of_few_bits(bits: int, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scaled by row or by block, with zero points or half the range."""
    monkeypatch.setenv("SARDONYX_ISA", isa)
    for zeros in (False, True):
        _check(_model(*_packed(bits, 0, zeros), op_type="QMoE", expert_weight_bits=bits, k=2, activation_type="silu"))


@pytest.mark.parametrize("zeros", [False, True])
def test_scales_by_block(zeros: bool) -> None:
    """Blocks of 16 elements and more."""
    fed = {"x": _draw(9, 32), "r": _draw(9, E)}
    generator = np.random.default_rng(1)
    layers: list[Any] = []
    for rows, columns in ((48, 32), (32, 48)):
        blocks = columns // 16
        layers += [generator.integers(0, 256, (E, rows, columns // 2), dtype=np.uint8), _draw(E, rows, blocks) / 20, None]
    points = [generator.integers(0, 256, (E, rows, count), dtype=np.uint8) for rows, count in ((48, 1), (32, 2))]
    inputs = [("x", fed["x"]), ("r", fed["r"]), *layers, None, None, None, *(points if zeros else [])]
    model = node_model("QMoE", inputs, k=3, block_size=16, activation_type="gelu")
    found, exact = (open_session(model, provider).run(None, fed)[0] for provider in ("CPU", "Reference"))
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5 * np.abs(exact).max())


def test_shares_that_are_given() -> None:
    """The router chooses, router_weights weigh."""
    mixing = np.abs(_draw(13, E))
    _check(_model(*_packed(4, 0, False), op_type="QMoE", k=2, mixing=mixing), m=mixing)


@pytest.mark.parametrize("tokens", [0, 1, 100])
def test_every_number_of_tokens(tokens: int) -> None:
    """Experts that nobody chose are passed over; a batch has three dimensions."""
    _check(_model(*_plain(), k=2), tokens)


def test_a_batch_of_sequences() -> None:
    """Has the shape of the input."""
    fed = {"x": _draw(2, 3, C), "r": _draw(6, E)}
    model = node_model("MoE", [*fed.items(), *_plain()], k=2)
    found, exact = (open_session(model, provider).run(None, fed)[0] for provider in ("CPU", "Reference"))
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)


def test_against_float64() -> None:
    """As the definition says."""
    weights, fed = _plain(), _feeds(7)
    w1, b1, w2, b2 = (np.asarray(w, np.float64) for w in weights)
    shares = np.exp(fed["r"].astype(np.float64))
    shares /= shares.sum(1, keepdims=True)
    exact = np.zeros((7, C))
    for t in range(7):
        for e in np.argsort(-fed["r"][t])[:2]:
            exact[t] += shares[t, e] * (w2[e] @ np.maximum(w1[e] @ fed["x"][t] + b1[e], 0) + b2[e])
    found = open_session(_model(*weights, k=2)).run(None, fed)[0]
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=2e-6)


def test_half_types_are_widened_with_weights_as_they_are() -> None:
    """A model in float16 is computed in float32."""
    fed = {name: array.astype(np.float16) for name, array in _feeds(6).items()}
    weights = [None if w is None else w.astype(np.float16) for w in _plain()]
    model = node_model("MoE", [*fed.items(), *weights], k=2)
    found, exact = (open_session(model, provider).run(None, fed)[0] for provider in ("CPU", "Reference"))
    np.testing.assert_allclose(found.astype(np.float32), exact.astype(np.float32), rtol=4e-3, atol=4e-3)


def test_threads_and_batches_do_not_change_bits() -> None:
    """Each token is computed as it is alone."""
    for model in (_model(*_plain(third=True), k=3), _model(*_packed(4, 0, True), op_type="QMoE", k=3)):
        fed, session = _feeds(40), open_session(model)
        whole = open_session(model, threads=2).run(None, fed)[0]
        for place in (0, 17, 39):
            alone = session.run(None, {name: array[place : place + 1] for name, array in fed.items()})[0]
            assert_same_bits(alone, whole[place : place + 1])


def test_hostile_routers_choose_real_experts() -> None:
    """NaN and infinities give NaN, and read nothing out of bounds."""
    fed = _feeds(4)
    fed["r"][0], fed["r"][1], fed["r"][2] = np.nan, np.inf, -np.inf
    found = open_session(_model(*_plain(), k=E)).run(None, fed)[0]
    assert np.isnan(found[:3]).all()
    assert np.isfinite(found[3]).all()


def test_a_router_needs_a_row_for_each_token() -> None:
    """As many as the input has."""
    model = node_model("MoE", [("x", _draw(4, C)), ("r", _draw(4, E)), *_plain()], shapes={"x": ["T", C], "r": ["S", E]})
    with pytest.raises(InvalidArgument, match="router_probs has shape"):
        open_session(model).run(None, {"x": _draw(4, C), "r": _draw(3, E)})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"k": E + 1}, "of the experts"),
        ({"activation_type": "swiglu"}, "no fc3"),
        ({"activation_type": "tanh"}, "'tanh'"),
    ],
)
def test_what_is_left_to_others(change: dict[str, Any], reason: str) -> None:
    """The reference provider says what is wrong with it."""
    assert reason in declined_of(_model(*_plain(), **change))


def test_quantized_weights_that_are_left_to_others() -> None:
    """Blocks that are no power of two, and shapes that do not fit."""
    plain = _packed(4, 0, False)
    assert "in blocks of 12" in declined_of(_model(*plain, op_type="QMoE", block_size=12))
    assert "scales" in declined_of(_model(plain[0], plain[4], *plain[2:], op_type="QMoE"))
