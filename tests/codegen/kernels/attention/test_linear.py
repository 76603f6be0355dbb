"""Linear attention: a recurrence over states."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.attention.linear import LinearAttentionCode, LinearAttentionParams, write_linear_attention
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

CODES = [
    LinearAttentionCode(past, decays, corrects) for past in (False, True) for decays in (False, True) for corrects in (False, True)
]


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Of all forms."""
    engine, module = Engine(target), Module(target)
    for code in CODES:
        write_linear_attention(module, f"linear_{code.name}", code)
    engine.add(module)
    return engine


def expected(q: Array, k: Array, v: Array, state: Array, decay: Array | None, beta: Array | None, scale: float) -> list[Array]:
    """Outputs (B, T, O, V) and the last state, in float64."""
    heads = max(q.shape[2], k.shape[2])
    outputs = np.zeros((*q.shape[:2], heads, v.shape[3]))
    for t in range(q.shape[1]):
        state = state if decay is None else state * decay[:, t, :, :, None]
        written = v[:, t]
        if beta is not None:
            written = beta[:, t, :, None] * (written - np.einsum("bmk,bmkv->bmv", k[:, t], state))
        state = state + np.einsum("bmk,bmv->bmkv", k[:, t], written)
        q_heads, states = q[:, t].repeat(heads // q.shape[2], 1), state.repeat(heads // k.shape[2], 1)
        outputs[:, t] = scale * np.einsum("bok,bokv->bov", q_heads, states)
    return [outputs, state]


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
@pytest.mark.parametrize(("N", "M"), [(2, 2), (4, 2), (1, 3)])
@pytest.mark.parametrize(("K", "V"), [(1, 1), (5, 16), (8, 63), (3, 64), (7, 129)])
@pytest.mark.parametrize("together", [1, 2])
def test_against_float64(engine: Engine, code: LinearAttentionCode, N: int, M: int, K: int, V: int, together: int) -> None:
    """Every form; as many heads of queries as of states, more, and fewer; columns around vectors and blocks."""
    B, T, rng = 2, 4, np.random.default_rng(K)
    q, k, v = (rng.standard_normal((B, T, *size)).astype(np.float32) / 2 for size in ((N, K), (M, K), (M, V)))
    past = rng.standard_normal((B, M, K, V)).astype(np.float32)
    decay = rng.uniform(0.5, 1, (B, T, M, (1, K)[M % 2])).astype(np.float32)
    beta = rng.uniform(0, 1, (B, T, (M, 1)[N % 2])).astype(np.float32)
    params = LinearAttentionParams(B, T, N, M, K, V, decay.shape[3], beta.shape[2], 0.25, together)
    outputs, states = np.full((B, T, max(N, M), V), 7, np.float32), np.full((B, M, K, V), 7, np.float32)
    work = np.zeros(params.work(K, together), np.float32)
    further = [array for array, is_there in ((past, code.has_past), (decay, code.decays), (beta, code.corrects)) if is_there]
    call(engine, f"linear_{code.name}", [q, k, v, outputs, states, work, *further], params.words(), 0, params.tasks())
    wide = [x.astype(np.float64) for x in (q, k, v, past * code.has_past, decay, beta)]
    wanted = expected(*wide[:4], wide[4] if code.decays else None, wide[5] if code.corrects else None, 0.25)
    for found, exact in zip((outputs, states), wanted, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)


def test_no_steps_give_the_past(engine: Engine) -> None:
    """The state is written all the same."""
    params, past = LinearAttentionParams(1, 0, 1, 1, 2, 3, 1, 1, 1.0, 1), np.arange(6, dtype=np.float32)
    empty, states, work = np.zeros(0, np.float32), np.zeros(6, np.float32), np.zeros(params.work(2, 1), np.float32)
    call(engine, "linear_p", [empty, empty, empty, empty, states, work, past], params.words(), 0, params.tasks())
    assert states.tolist() == past.tolist()


def test_a_part_goes_on_where_the_last_one_ended(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few steps a task walks, bits are the same."""
    rng, results = np.random.default_rng(0), []
    q, k, v = (rng.standard_normal((1, 9, 2, 4)).astype(np.float32) for _ in range(3))
    for elements in (1, 8 * 3, 1 << 21):
        monkeypatch.setattr("sardonyx.codegen.kernels.attention.linear._TASK_ELEMENTS", elements)
        params = LinearAttentionParams(1, 9, 2, 2, 4, 4, 1, 1, 1.0, 2)
        outputs, states = np.zeros((1, 9, 2, 4), np.float32), np.zeros((1, 2, 4, 4), np.float32)
        work = np.zeros(params.work(4, 2), np.float32)
        call(engine, "linear_n", [q, k, v, outputs, states, work], params.words(), 0, params.tasks())
        results.append(outputs.tobytes() + states.tobytes())
    assert len(set(results)) == 1
