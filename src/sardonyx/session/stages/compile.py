"""From partitions to an executor: bodies before the nodes that hold them, one program for each partition, and a plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array, OnnxValue
from sardonyx.errors import EPFail, SardonyxError, blamed, describe, located, locating
from sardonyx.ir import Graph, Value
from sardonyx.partition.contexts import is_context
from sardonyx.partition.part import Cut
from sardonyx.provider import HOST, Body, Program
from sardonyx.runtime.executor import Executor
from sardonyx.runtime.plan import CopyStep, Plan, make_plan
from sardonyx.runtime.run_step import copy
from sardonyx.session.context.load import ContextLoader, refuse_to_compile
from sardonyx.session.context.model import ContextTarget, KeptProgram, context_target, keep_program, write_context
from sardonyx.session.execution import executor_for
from sardonyx.session.model_files import read_attributes
from sardonyx.session.providers import check_program
from sardonyx.session.settings.settings import Settings
from sardonyx.session.stages.assign import Assigned, AssignedGraph
from sardonyx.session.stages.native_body import native_body
from sardonyx.trace import event

if TYPE_CHECKING:
    from sardonyx.session.profiling.profiler import Profiler

__all__ = ["Compiled", "compile_model"]


@dataclasses.dataclass(frozen=True, slots=True)
class Compiled:
    """A model that can be run; nothing of its graphs is left but what programs hold."""

    executor: Executor
    """What runs it."""
    plan: Plan
    """The plan of its main graph."""
    body_plans: tuple[Plan, ...] = ()
    """The plans of the graphs inside its nodes."""
    bodies: tuple[Executor, ...] = ()
    """What runs the graphs inside its nodes."""


def compile_model(
    assigned: Assigned, settings: Settings, defaults: Mapping[str, Array], profiler: Profiler | None = None
) -> Compiled:
    """Compile the partitions of a model and plan its runs.

    Args:
        assigned: whose model is taken over, and taken apart in the end.
        settings: of the session; where they say so, the compiled model is written.
        defaults: inputs that were initializers, for the model that is written.
        profiler: records the steps of runs, where there is one.

    Raises:
        SardonyxError: a provider failed to compile its part, or what was compiled before cannot be loaded.
    """
    model = assigned.model.take("compile_model")
    with locating(f"model {model.label}"):
        target = context_target(model, settings.context)
        compiler = _Compiler(ContextLoader(model, settings.context, settings.load), target, settings, profiler)
        main = compiler.compile_graph(assigned.main)
        copies = sum(graph.copy_count for graph in assigned.main.walk())
        event("placement.done", model=model.label, placements=assigned.placements, copies=copies)
        if target is not None:
            write_context(model, target, compiler.kept, defaults, settings.load)
        read_attributes(model.graph)
        model.dismantle()  # programs hold what they need of weights, packed or as they are
    return Compiled(main.executor, main.plan, tuple(compiler.body_plans), tuple(compiler.executors))


class _Compiler:
    """Makes the programs of one model."""

    def __init__(self, loader: ContextLoader, target: ContextTarget | None, settings: Settings, profiler: Profiler | None) -> None:
        self._loader, self._target, self._settings, self._profiler = loader, target, settings, profiler
        self._bodies: dict[Graph, Body] = {}
        self.kept: list[KeptProgram] = []
        """What a compiled model is written of."""
        self.body_plans: list[Plan] = []
        """Those of the graphs inside nodes."""
        self.executors: list[Executor] = []
        """What runs the graphs inside nodes."""

    def compile_graph(self, assigned: AssignedGraph) -> _PlannedGraph:
        for body in assigned.bodies:
            planned = self.compile_graph(body)
            executor = native_body(planned.executor, body.graph.inputs, len(body.graph.outputs))
            planned = dataclasses.replace(planned, executor=executor)
            self._bodies[body.graph] = planned
            self.body_plans.append(planned.plan)
            self.executors.append(planned.executor)
        captures, entering = assigned.captures, assigned.entering
        plan = make_plan(assigned.graph, captures, assigned.stages, self._program_of, entering)
        copies = [
            CopyStep(captures.index(move.value), place, HOST, move.target, move.provider, ())
            for place, move in enumerate(entering, len(captures))
        ]
        return _PlannedGraph(captures, executor_for(plan, self._settings.execution), plan, tuple(copies))

    def _program_of(self, part: Cut) -> Program:
        is_compiled = is_context(part.partition.nodes[0])
        program = self._loader.load(part) if is_compiled else self._compile_part(part)
        if self._profiler is None:
            return program
        return self._profiler.timed(program, part)

    def _compile_part(self, part: Cut) -> Program:
        provider, partition = part.provider, part.partition
        if self._settings.context.forbids_compiling:
            refuse_to_compile(part)
        try:
            program = provider.compile(partition, self._bodies.__getitem__)
        except SardonyxError as error:
            raise blamed(located(error, f"{provider.name} compiling {partition.name}"), provider.name) from error
        except Exception as error:
            message = (
                f"{provider.name} claimed {len(partition.nodes)} nodes, beginning with {partition.nodes[0].place}, but failed to "
                f"compile them as {partition.name}: {describe(error)}"
            )
            raise blamed(EPFail(message), provider.name) from error
        check_program(program, provider, f"compiled {partition.name}")
        kept = None if self._target is None else keep_program(self._target, part, program)
        if kept is not None:
            self.kept.append(kept)
        return program


@dataclasses.dataclass(frozen=True, slots=True)
class _PlannedGraph:
    """A graph that is compiled; as a `Body` where it is one."""

    captures: tuple[Value, ...]
    executor: Executor
    plan: Plan
    copies: tuple[CopyStep, ...]

    def hold(self, captures: Sequence[OnnxValue]) -> Callable[[Sequence[OnnxValue]], list[OnnxValue]]:
        held = [*captures, *[None] * len(self.copies)]
        for step in self.copies:
            copy(step, held)
        return functools.partial(self.executor.run, captures=held)
