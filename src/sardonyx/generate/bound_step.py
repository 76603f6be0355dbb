"""A step whose arrays stay where they are, so that the session runs it as one call of machine code after the first ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.session.interface import SessionInterface
from sardonyx.values.ort_value import OrtValue

__all__ = ["BoundStep"]


class BoundStep:
    """A binding of one token a row to buffers that past and present share; it holds them until it is dropped."""

    def __init__(
        self, session: SessionInterface, feeds: Mapping[str, Array], caches: Mapping[str, Array], results: Mapping[str, Array]
    ) -> None:
        """Bind arrays.

        Args:
            session: the decoder's.
            feeds: name of an input -> what the next run reads; later ones give arrays of the same shapes and types.
            caches: name of an input -> the buffer of a cache.
            results: name of an output -> the array that takes it: the buffers of caches, and others.
        """
        self._session, self._feeds = session, {name: array.copy() for name, array in feeds.items()}
        self._results = list(results.values())
        self._binding = session.io_binding()
        for name, array in (self._feeds | dict(caches)).items():
            self._binding.bind_ortvalue_input(name, OrtValue.of(array))
        for name, array in results.items():
            self._binding.bind_ortvalue_output(name, OrtValue.of(array))

    def fits(self, session: SessionInterface, feeds: Mapping[str, Array], target: Array) -> bool:
        """Return whether it can run a session with arrays of these shapes, and fills `target`."""
        known = self._feeds
        is_same = session is self._session and any(target is array for array in self._results)
        return is_same and all(name in known and known[name].shape == array.shape for name, array in feeds.items())

    def run(self, feeds: Mapping[str, Array]) -> None:
        """Run with the contents of arrays that fit."""
        for name, array in feeds.items():
            np.copyto(self._feeds[name], array)
        self._session.run_with_iobinding(self._binding)
