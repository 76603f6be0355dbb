"""The encoder before a decoder: run once per prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.generate.feeds import padded
from sardonyx.generate.signature import ROLES
from sardonyx.session.inference_session import InferenceSession

__all__ = ["Encoder"]

_STATES = ("last_hidden_state", "encoder_hidden_states", "hidden_states")
_FEATURES = ("input_features", "audio_features", "input_values", "pixel_values", "inputs_embeds")


class Encoder:
    """The session of an encoder, of token ids (T5) or of features (Whisper)."""

    def __init__(self, session: InferenceSession, pad: int = 0) -> None:
        """Take a session.

        Args:
            session: the encoder's.
            pad: the token behind shorter rows.

        Raises:
            InvalidArgument: it takes neither tokens nor features.
        """
        self._session, self._pad = session, pad
        inputs = {value.name: value for value in session.get_inputs()}
        outputs = [value.name for value in session.get_outputs()]
        self._ids = next((inputs[name] for name in ROLES["ids"] if name in inputs), None)
        self._mask = next((inputs[name] for name in ROLES["mask"] if name in inputs), None)
        self._features = next((inputs[name] for name in _FEATURES if name in inputs), None)
        self._states = next((name for name in _STATES if name in outputs), outputs[0])
        if self._ids is None and self._features is None:
            raise InvalidArgument(
                f"the encoder takes {list(inputs)}; known are token ids {ROLES['ids'][:1]} and features {_FEATURES}"
            )

    @property
    def reads_tokens(self) -> bool:
        """Whether prompts are token ids; otherwise they are features."""
        return self._features is None

    def encode_tokens(self, rows: Sequence[Sequence[int]]) -> dict[str, Array]:
        """Return key of ROLES -> what decoders are fed: "encoder_states", (rows, T, E), and "encoder_mask", int64 (rows, T)."""
        assert self._ids is not None
        if any(not row for row in rows):
            raise InvalidArgument("a prompt is empty; an encoder needs a token, such as the one that ends texts")
        tokens = padded(rows, self._pad, left=False)
        mask = (np.arange(tokens.shape[1]) < np.array([len(row) for row in rows])[:, None]).astype(np.int64)
        feeds = {self._ids.name: _typed(tokens, self._ids.type)}
        if self._mask is not None:
            feeds[self._mask.name] = _typed(mask, self._mask.type)
        elif len({len(row) for row in rows}) > 1:
            raise InvalidArgument(
                "the encoder takes no attention_mask, so rows of different lengths cannot share a batch; run them one by one"
            )
        (states,) = self._session.run([self._states], feeds)
        return {"encoder_states": np.asarray(states), "encoder_mask": mask}

    def encode_features(self, features: Array, others: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """Return key of ROLES -> what decoders are fed, for features with the rows as their first axis."""
        assert self._features is not None
        feeds = {self._features.name: _typed(np.asarray(features), self._features.type), **(others or {})}
        if self._mask is not None and self._mask.name not in feeds:
            feeds[self._mask.name] = _typed(np.ones((len(features), np.shape(features)[-1]), np.int64), self._mask.type)
        (states,) = self._session.run([self._states], feeds)
        array = np.asarray(states)
        return {"encoder_states": array, "encoder_mask": np.ones(array.shape[:2], np.int64)}

    @property
    def feature_rank(self) -> int:
        """How many dimensions features have, the rows included; 0 where the model does not say."""
        return 0 if self._features is None else len(self._features.shape)


def _typed(array: Array, kind: str) -> Array:
    return np.ascontiguousarray(array, DataType.parse(kind.removeprefix("tensor(").removesuffix(")")).numpy)
