"""A model ready to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.formats.files import FileStamp
from sardonyx.ir import Value
from sardonyx.partition.explain import Placement, SaysPrecisions, with_precisions
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.plan import Plan, ProgramStep
from sardonyx.session.stages.provider_list import ProviderList
from sardonyx.session.values import ModelMetadata, NodeArg

if TYPE_CHECKING:
    from sardonyx.optimize.report import Report
    from sardonyx.session.decisions.data_files import DataFile
    from sardonyx.session.memory.stats import MemoryRecorder

__all__ = ["Built", "explained"]


@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Built:
    """A model ready to run; sessions may share it."""

    label: str
    """What messages call the model."""
    metadata: ModelMetadata
    """What its file says about itself."""
    inputs: tuple[Value, ...]
    """The inputs that a feed may name, with those that have a default."""
    declared: tuple[NodeArg, ...]
    """The outputs as the model declares them, with what it leaves open as it was inferred."""
    defaults: Mapping[str, Array]
    """Input -> what it is where the feed leaves it out: initializers that a feed may override."""
    executor: Executor
    """What runs it."""
    bodies: tuple[Executor, ...]
    """What runs the graphs inside its nodes."""
    plans: tuple[Plan, ...]
    """Of its graphs, with their programs."""
    placements: Sequence[Placement]
    """Who runs each node, and why others do not; `explain` says more."""
    providers: ProviderList
    """The session's, and those that failed and were left out."""
    report: Callable[[], Report]
    """Returns what the optimizer did, in this session or in the one before that decided it."""
    recorder: MemoryRecorder | None
    """The per-run recorder of what nodes need of memory, where the settings ask for it."""
    stamps: Mapping[Path, FileStamp]
    """What the model's files were when it was read."""
    data: tuple[DataFile, ...] | None = None
    """The files beside the model's own, by which sessions share what is built; None where they do not."""
    has_contexts: bool = False
    """Whether programs were read from files of compiled models, which `stamps` does not have."""

    def explain(self) -> list[Placement]:
        """Return `placements` with the precisions that programs say of their products."""
        return explained(self.placements, self.plans)


def explained(placements: Sequence[Placement], plans: Iterable[Plan]) -> list[Placement]:
    """Return placements with the precisions that the programs of plans say of their products."""
    steps = [step for plan in plans for step in plan.steps if isinstance(step, ProgramStep)]
    known = {step.name: step.program.precisions for step in steps if isinstance(step.program, SaysPrecisions)}
    return with_precisions(placements, known)
