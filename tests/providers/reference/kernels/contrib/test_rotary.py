"""RotaryEmbedding and MRotaryEmbedding of com.microsoft."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.run_op import run_op

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument

B, N, S, D = 2, 2, 3, 6
Q = np.random.default_rng(1).standard_normal((B, S, N * D)).astype(np.float32)


def run(op_type: str, *inputs: Any, **options: Any) -> Any:
    return run_op(op_type, *inputs, domain="com.microsoft", **options)


def heads(x: Array) -> Array:
    return x.reshape(*x.shape[:2], N, -1).swapaxes(1, 2)


CACHE = np.cos(np.arange(30).reshape(10, 3)).astype(np.float32), np.sin(np.arange(30).reshape(10, 3)).astype(np.float32)


def test_RotaryEmbedding_starts_at_one_position_or_takes_them_all() -> None:
    """A single position counts on; rank 3 and rank 4 give the same."""
    one = run("RotaryEmbedding", Q, np.array([4]), *CACHE)
    all_of_them = run("RotaryEmbedding", heads(Q), np.array([[4, 5, 6]] * B), *CACHE)
    np.testing.assert_array_equal(heads(one), all_of_them)
    turned = (heads(Q)[..., :3] + 1j * heads(Q)[..., 3:]) * np.exp(1j * np.arange(12, 21).reshape(3, 3))
    np.testing.assert_allclose(all_of_them, np.concatenate([turned.real, turned.imag], axis=-1), rtol=1e-4, atol=1e-5)


def test_RotaryEmbedding_may_rotate_a_part_of_each_head() -> None:
    """rotary_embedding_dim needs num_heads, since the caches no longer tell the head size."""
    y = run(
        "RotaryEmbedding", Q, np.array([0]), CACHE[0][:, :2], CACHE[1][:, :2], rotary_embedding_dim=4, num_heads=N, interleaved=1
    )
    np.testing.assert_array_equal(heads(y)[..., 4:], heads(Q)[..., 4:])


@pytest.mark.parametrize(
    ("positions", "cache", "message"),
    [
        (np.array([8]), CACHE, "hold positions 0 to 9"),
        (np.zeros((B, 2), np.int64), CACHE, "position_ids has shape"),
        (np.array([0]), (CACHE[0], CACHE[1][:4]), "caches"),
    ],
)
def test_RotaryEmbedding_names_bad_inputs(positions: Array, cache: tuple[Array, Array], message: str) -> None:
    """Positions stay inside the caches, whose shapes agree."""
    with pytest.raises(InvalidArgument, match=message):
        run("RotaryEmbedding", Q, positions, *cache)


@pytest.mark.parametrize(("layout", "streams"), [(0, [0, 1, 2]), (1, [0, 1, 2])])
def test_MRotaryEmbedding_takes_each_angle_from_its_stream(layout: int, streams: list[int]) -> None:
    """With one angle per stream both layouts agree; with equal streams it is RotaryEmbedding."""
    positions = np.array([[[0, 1, 2]] * B, [[3, 4, 5]] * B, [[7, 8, 9]] * B])
    y = run("MRotaryEmbedding", Q, positions, *CACHE, mrope_section=(1, 1, 1), mrope_layout=layout)
    angles = np.arange(30).reshape(10, 3)[positions][streams, :, :, [0, 1, 2]].transpose(1, 2, 0)[:, None]
    turned = (heads(Q)[..., :3] + 1j * heads(Q)[..., 3:]) * np.exp(1j * angles)
    np.testing.assert_allclose(heads(y), np.concatenate([turned.real, turned.imag], axis=-1), rtol=1e-4, atol=1e-5)
    same = np.repeat(positions[:1], 3, axis=0)
    np.testing.assert_array_equal(
        run("MRotaryEmbedding", Q, same, *CACHE, mrope_section=(1, 1, 1), mrope_layout=layout),
        run("RotaryEmbedding", Q, positions[0], *CACHE),
    )


@pytest.mark.parametrize(
    ("positions", "section", "message"),
    [
        (np.zeros((2, B, S), np.int64), (1, 1, 1), "position_ids has shape"),
        (np.zeros((3, B, S), np.int64), (1, 1, 2), "sum to 3"),
        (np.zeros((3, B, S), np.int64), (3,), "three counts"),
    ],
)
def test_MRotaryEmbedding_names_bad_arguments(positions: Array, section: tuple[int, ...], message: str) -> None:
    """The message holds what was found."""
    with pytest.raises(InvalidArgument, match=message):
        run("MRotaryEmbedding", Q, positions, *CACHE, mrope_section=section)
