"""The model between two stages: one stage at a time owns it, and may change it."""

from __future__ import annotations

from sardonyx.errors import Fail
from sardonyx.ir import Model

__all__ = ["OwnedModel"]


class OwnedModel:
    """A model that the next stage takes over; whoever comes later gets an error, not a model that has been changed."""

    __slots__ = ("_functions", "_given", "_model", "_taken_by", "label")

    def __init__(self, model: Model) -> None:
        """Hand over `model`, which the caller does not use any more."""
        self._model: Model | None = model
        self._given, self._functions = model, tuple(model.functions.values())
        self._taken_by = ""
        self.label = model.label
        """What messages call the model."""

    def view(self) -> Model:
        """Return the model, for reading; raises Fail where a stage has taken it."""
        if self._model is None:
            raise Fail(f"model {self.label} was taken over by the stage {self._taken_by!r}; load it again")
        return self._model

    def take(self, stage: str) -> Model:
        """Return the model, to be changed by the caller, which is called `stage`; raises Fail where another has taken it."""
        model = self.view()
        self._model, self._taken_by = None, stage
        return model

    def dismantle(self) -> None:
        """Free the graphs of a model that is no longer needed, whichever stage has it; its label stays."""
        for function in self._functions:  # optimization takes them out of the model
            function.graph.dismantle()
        self._given.dismantle()
