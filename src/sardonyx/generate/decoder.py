"""A decoder's session, or the two of a model that computes its first run by a graph of its own, run token by token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.generate.bound_step import BoundStep
from sardonyx.generate.cache import GrowingCache, SharedCache, empty_past
from sardonyx.generate.feeds import make_feeds, padded
from sardonyx.generate.signature import Signature
from sardonyx.generate.state import State
from sardonyx.session.inference_session import InferenceSession
from sardonyx.session.interface import SessionInterface
from sardonyx.session.io_binding import IOBinding
from sardonyx.session.run_options import RunOptions
from sardonyx.values.ort_value import OrtValue

__all__ = ["Decoder"]


class Decoder:
    """Reads tokens and gives logits; keeps no state between calls but scratch memory, and is not for two threads at a time."""

    def __init__(
        self,
        session: InferenceSession,
        signature: Signature,
        *,
        first: tuple[InferenceSession, Signature] | None = None,
        shares_caches: bool = False,
        inputs: Mapping[str, Array] | None = None,
        longest: int | None = None,
    ) -> None:
        """Take sessions.

        Args:
            session: the decoder that is run once per token.
            signature: what its inputs and outputs are.
            first: the one that is run for the prompt, where it is another: it takes no past, and gives out all caches.
            shares_caches: whether past and present may be one buffer with space for more tokens than there are.
            inputs: name -> what is fed to this input in every run.
            longest: how many tokens, prompt and result, a row may have; None where the model does not say.
        """
        self.session, self.signature = session, signature
        self.longest = longest
        self._first = first
        self._inputs = dict(inputs or {})
        self._is_merged = "cache_branch" in signature.roles
        own = [slot for slot in signature.caches if not slot.is_cross and slot.past and slot.present]
        self._own, self._cross = own, [slot for slot in signature.caches if slot not in own]
        lacking = [slot.past for slot in self._cross if slot.past and slot.key not in self._made_by_first()]
        if lacking:
            raise InvalidArgument(
                f"the decoder takes {lacking}, which hold the encoder's keys and values, and no graph computes them; load a "
                "folder with "
                "decoder_model.onnx beside decoder_with_past_model.onnx, or with decoder_model_merged.onnx"
            )
        self.shares_caches = shares_caches and bool(own)
        sessions = [session] if first is None else [session, first[0]]
        self._bindings = {id(item): item.io_binding() for item in sessions}
        self._known = {id(item): {value.name for value in item.get_inputs()} for item in sessions}
        self._options = RunOptions()
        self._logits: Array | None = None

    def _made_by_first(self) -> set[str]:
        """Return the keys of the encoder's caches that the first run of a row computes."""
        signature = self.signature if self._is_merged else None if self._first is None else self._first[1]
        return set() if signature is None else {slot.key for slot in signature.caches if slot.present}

    @property
    def has_cache(self) -> bool:
        """Whether former tokens need not be read again."""
        return bool(self._own)

    @property
    def vocabulary(self) -> int | None:
        """How many tokens have a logit; None where the model leaves it open."""
        return self.signature.vocabulary

    @property
    def places_rows(self) -> bool:
        """Whether rows of different lengths can share a batch."""
        return not self.has_cache or self.shares_caches or self.signature.places_rows

    @property
    def takes_states(self) -> bool:
        """Whether it reads the states of an encoder."""
        return any("encoder_states" in signature.roles for signature in self._signatures()) or bool(self._cross)

    def names_of(self, roles: Iterable[str]) -> dict[str, str]:
        """Return key of ROLES -> the input of that purpose, for those of `roles` that a graph of this decoder takes."""
        found: dict[str, str] = {}
        for signature in self._signatures():
            found |= {role: signature.roles[role].name for role in roles if role in signature.roles}
        return found

    def start(self, rows: Sequence[Sequence[int]], fixed: Mapping[str, Array] | None = None) -> tuple[State, Array]:
        """Read prompts.

        Args:
            rows: the tokens of each row, at least one.
            fixed: input name -> what it is fed in every run, the rows as its first axis.

        Returns:
            The state after them, and the logits of what follows, float32 (rows, vocabulary).

        Raises:
            InvalidArgument: a prompt is empty or too long, a token is none, or rows of different lengths cannot share a batch.
        """
        self.check(rows)
        if self.has_cache and len({len(row) for row in rows}) > 1 and (self.shares_caches or not self.places_rows):
            return self._start_one_by_one(rows, fixed or {})
        state = State([[] for _ in rows], self._empty_cache(len(rows)), fixed)
        if not self.has_cache:
            return state, self._read(state, rows)
        tokens = padded(rows, 0, left=True)
        state.padding = tokens.shape[1] - np.array([len(row) for row in rows], np.int64)
        logits = self._run(state, tokens)
        state.ids = [list(row) for row in rows]
        return state, logits[:, -1].copy()

    def _start_one_by_one(self, rows: Sequence[Sequence[int]], fixed: Mapping[str, Array]) -> tuple[State, Array]:
        if not self.places_rows:
            raise InvalidArgument(
                f"rows of {sorted({len(row) for row in rows})} tokens cannot share a batch of this model, which takes no "
                "attention_mask with position_ids; run rows of one length at a time"
            )
        parts = [
            self.start([row], {name: array[place : place + 1] for name, array in fixed.items()}) for place, row in enumerate(rows)
        ]
        states = [state for state, _ in parts]
        return states[0].joined(states[1:]), np.concatenate([logits for _, logits in parts])

    def step(self, state: State, tokens: Sequence[int]) -> Array:
        """Read one more token of each row.

        Returns:
            The logits of what follows, float32 (rows, vocabulary), in memory that the next step writes again.

        Raises:
            InvalidArgument: a token is none, or a row has reached the model's range.
        """
        return self.extend(state, [[token] for token in tokens])[:, -1]

    def extend(self, state: State, rows: Sequence[Sequence[int]]) -> Array:
        """Read more tokens, as many of each row.

        Returns:
            Logits, float32 (rows, n, vocabulary), of what follows the last n tokens; n is 1 where the model gives no more.

        Raises:
            InvalidArgument: the rows differ in length, a token is none, or a row has reached the model's range.
        """
        self.check(rows, state)
        if not self.has_cache:
            return self._read(state, rows)[:, None]
        logits = self._run(state, np.array(rows, np.int64))
        for row, more in zip(state.ids, rows, strict=True):
            row.extend(more)
        return logits

    def check(self, rows: Sequence[Sequence[int]], state: State | None = None) -> None:
        """Raise InvalidArgument where rows cannot be read after a state: empty, with unknown tokens, beyond the model's range."""
        vocabulary = self.vocabulary
        for place, row in enumerate(rows):
            if not row:
                raise InvalidArgument(
                    f"row {place} is empty; a decoder needs a token to begin with, such as the one that begins texts"
                )
            if vocabulary is not None and not (min(row) >= 0 and max(row) < vocabulary):
                token = next(token for token in row if not 0 <= token < vocabulary)
                raise InvalidArgument(
                    f"row {place} has the token {token}, and the model a vocabulary of {vocabulary}, 0 to {vocabulary - 1}; "
                    "the tokenizer "
                    "is of another model"
                )
            length = len(row) + (0 if state is None else len(state.ids[place]))
            if self.longest is not None and length > self.longest:
                raise InvalidArgument(
                    f"row {place} has {length} tokens, and the model reads {self.longest} at most; shorten the prompt"
                )

    def _signatures(self) -> list[Signature]:
        return [self.signature] if self._first is None else [self._first[1], self.signature]

    def _empty_cache(self, rows: int) -> GrowingCache | SharedCache | None:
        if not self.has_cache:
            return None
        return SharedCache(self._own, rows) if self.shares_caches else GrowingCache(self._own, rows)

    def _read(self, state: State, rows: Sequence[Sequence[int]]) -> Array:
        """Read whole rows, padded behind, by a decoder without caches; returns the logits after each row's last token."""
        whole = [[*row, *more] for row, more in zip(state.ids, rows, strict=True)]
        tokens = padded(whole, 0, left=False)
        feeds = self._fixed(self.session, state) | make_feeds(self.signature, state, tokens, uses_cache=False)
        (found,) = self.session.run([self.signature.roles["logits"].name], feeds)
        state.ids, logits = whole, _shaped(found, len(rows))
        return logits[:, 0] if logits.shape[1] == 1 else logits[np.arange(len(rows)), [len(row) - 1 for row in whole]]

    def _fixed(self, session: SessionInterface, state: State) -> dict[str, Array]:
        known = self._known[id(session)]
        return {name: array for name, array in (self._inputs | state.fixed).items() if name in known}

    def _run(self, state: State, tokens: Array) -> Array:
        """Run the tokens that follow; returns logits, float32 (rows, T or 1, vocabulary)."""
        cache = state.cache
        assert cache is not None
        session, signature = (self.session, self.signature) if state.is_used or self._first is None else self._first
        target = self._logits_target(signature, *tokens.shape)
        if isinstance(cache, SharedCache) and state.is_used and target is not None:
            self._run_step(cache, state, tokens, target)
            return _shaped(target, len(tokens))
        binding = self._bindings[id(session)]
        try:
            results = self._run_bound(binding, signature, state, tokens)
        finally:
            binding.clear_binding_inputs()
            binding.clear_binding_outputs()
        if not state.is_used:
            crossing = [slot for slot in signature.caches if slot.is_cross and slot.present]
            state.cross |= {slot.key: (results[slot.present], slot.batch_axis) for slot in crossing}
        cache.advance(tokens.shape[1])
        state.is_used = True
        return _shaped(results[signature.roles["logits"].name], len(tokens))

    def _run_step(self, cache: SharedCache, state: State, tokens: Array, target: Array) -> None:
        """Run one token a row by a binding that is kept with the buffers of the caches; the logits go to `target`."""
        presents = cache.targets(1)
        feeds = self._fixed(self.session, state) | make_feeds(self.signature, state, tokens, uses_cache=True)
        if cache.step is None or not cache.step.fits(self.session, feeds, target):
            results = {**presents, self.signature.roles["logits"].name: target}
            cache.step = BoundStep(self.session, feeds, cache.feeds(), results)
        cache.step.run(feeds)
        cache.advance(1)

    def _run_bound(self, binding: IOBinding, signature: Signature, state: State, tokens: Array) -> dict[str, Array]:
        """Bind all inputs, caches and logits, and run; returns name of an output -> its array."""
        assert state.cache is not None
        targets = state.cache.targets(tokens.shape[1])
        feeds = self._fixed(binding.session, state) | make_feeds(signature, state, tokens, uses_cache=True)
        for name, array in feeds.items():
            binding.bind_ortvalue_input(name, OrtValue.of(array))
        self._bind_caches(binding, signature, state, targets)
        logits = signature.roles["logits"].name
        target = self._logits_target(signature, *tokens.shape)
        if target is None:
            binding.bind_output(logits)
        else:
            binding.bind_ortvalue_output(logits, OrtValue.of(target))
        for slot in signature.caches:
            if slot.is_cross and slot.present and not state.is_used:
                binding.bind_output(slot.present)
        binding.session.run_with_iobinding(binding, self._options)
        return {name: value.value for name, value in zip(binding.bound_outputs, binding.get_outputs(), strict=True)}

    def _bind_caches(self, binding: IOBinding, signature: Signature, state: State, targets: Mapping[str, Array]) -> None:
        """Bind what a graph has of the caches: a first run by a graph of its own takes none."""
        assert state.cache is not None
        held = state.cache.feeds()
        pasts = {slot.key: held[slot.past] for slot in self._own}
        presents = {slot.key: targets[slot.present] for slot in self._own}
        if self._is_merged and not state.is_used:
            pasts = {slot.key: empty_past(slot, state.rows, 1) for slot in self._own}
        for slot in signature.caches:
            if slot.is_cross:
                if slot.past:
                    past = state.cross[slot.key][0] if slot.key in state.cross else empty_past(slot, state.rows, 1)
                    binding.bind_ortvalue_input(slot.past, OrtValue.of(past))
                continue
            if slot.past:
                binding.bind_ortvalue_input(slot.past, OrtValue.of(pasts[slot.key]))
            if slot.present:
                binding.bind_ortvalue_output(slot.present, OrtValue.of(presents[slot.key]))

    def _logits_target(self, signature: Signature, rows: int, count: int) -> Array | None:
        """Return memory for the logits of one token a row, kept from step to step; None where the run is to allocate it."""
        value = signature.roles["logits"]
        vocabulary = signature.vocabulary
        if count != 1 or vocabulary is None or value.type != "tensor(float)" or len(value.shape) not in (2, 3):
            return None
        shape = (rows, vocabulary) if len(value.shape) == 2 else (rows, 1, vocabulary)
        if self._logits is None or self._logits.shape != shape:
            self._logits = np.empty(shape, np.float32)
        return self._logits


def _shaped(logits: object, rows: int) -> Array:
    """Return logits as float32 (rows, T, vocabulary), which need not be a copy."""
    array = np.asarray(logits)
    return np.asarray(array.reshape(rows, -1, array.shape[-1]), np.float32)
