"""Programs of the CPU provider as plain data and arrays, from which another process makes them again without lowering anything.

    keep_program(program, target) ─► KeptProgram: data, arrays          restore_program(kept, …) ─► a program with the same steps

The data has the machine code of kernels and a binding for the sizes of the model, 1 for each that is open (`ready.py`), by which a
session runs at once. Behind these are buffers by number and steps with the numbers of theirs, which are made when they are needed:
for other sizes, for reports and for errors. The arrays are constants, packed weights first. What a step's plan returns where each
open size is 1 is in the data, and recipes for others; where no recipe holds, the plan itself is read. A Loop whose scan outputs are
as long as only the run shows, and a node whose size elements of its inputs say, have what they know of themselves beside these.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sardonyx.cancellation import checked
from sardonyx.codegen.run.elf import Code, is_supported, laid_out
from sardonyx.codegen.target import Target
from sardonyx.config import guards_memory
from sardonyx.dtypes import Array, DataType
from sardonyx.errors import SardonyxError
from sardonyx.forks import without_fork
from sardonyx.formats.plain_graph import KeptProgram, Plain, PlainReader, PlainWriter
from sardonyx.ir import Dim, Tensor, TensorType, Value
from sardonyx.providers.cpu.kept_plans import KeptFunction, KeptFunctions, Lowered, NotKept, write_function
from sardonyx.providers.cpu.library import driver_for, library_for
from sardonyx.providers.cpu.planner import NotZero, Planner
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.program import CpuProgram, Facts, Linked
from sardonyx.providers.cpu.ready import plan_ready, read_ready
from sardonyx.providers.cpu.rebind import TracedSizes
from sardonyx.providers.cpu.recipes import Recipes, likely_sizes, write_recipes
from sardonyx.providers.cpu.sizes import Sizes, solvable_symbols
from sardonyx.providers.cpu.steps import RANDOM_SOURCE, STATUS, Buffer, Control, KernelLaunch, Mark, Move
from sardonyx.providers.cpu.storage import Home, Storage

if TYPE_CHECKING:
    from sardonyx.providers.cpu.loop_program import LoopProgram, OpenLoop
    from sardonyx.providers.cpu.sized_program import SizedProgram
    from sardonyx.providers.cpu.value_sizes import ValueSizes

__all__ = ["keep_program", "restore_program"]

_T = TypeVar("_T")
_DTYPES = {int(dtype): dtype for dtype in DataType}


def keep_program(given: CpuProgram | LoopProgram | SizedProgram, target: Target, precision: Precision) -> KeptProgram:
    """Return what a program is made of.

    Args:
        given: a program of this target.
        target: what it was compiled for.
        precision: what it was lowered with.

    Raises:
        NotKept: it has something that cannot be kept, or the cache lacks the machine code of a kernel.
    """
    program = given if isinstance(given, CpuProgram) else given.program
    loop: OpenLoop | None = getattr(given, "loop", None)
    sizes: ValueSizes | None = getattr(given, "sizes", None)
    storage, inputs, outputs = program.storage, program.inputs, program.outputs
    objects = library_for(target).objects(dict.fromkeys(step.symbol for step in storage.steps))
    if objects is None:
        raise NotKept("the machine code of a kernel is not in the cache")
    shown = solvable_symbols([shape for _, shape in inputs])
    names = tuple(sorted({*shown, *(() if loop is None else loop.capacities), *(() if sizes is None else sizes.symbols)}))
    writer = _Writer(storage, program.packs, names)
    read = [buffer for buffer, (home, _) in storage.homes.items() if home is Home.INPUT]
    later = (tuple(map(writer.buffer, read)), tuple(map(writer.buffer, outputs)), writer.steps, tuple(writer.buffers))
    plain = (
        tuple(_code_of(objects)) if is_supported() else None,
        () if is_supported() else tuple(objects.items()),
        tuple((name, writer.shape(shape)) for name, shape in inputs),
        (len(outputs), program.makes_outputs, tuple(program.shares)),
        tuple(program.precisions),
        tuple((item.place, writer.dim(item.size), writer.dim(item.copied)) for item in program.not_zero),
        precision.name,
        len(program.packs),
        names,
        None if loop is None else _plain_loop(loop),
        None if sizes is None else _plain_sizes(sizes, writer),
        plan_ready(program.planner, dict.fromkeys(names, 1), writer.array),
        marshal.dumps(later),
    )
    return KeptProgram(plain, writer.arrays)


def restore_program(
    kept: KeptProgram, target: Target, threads: int, *, flush: bool = False
) -> CpuProgram | LoopProgram | SizedProgram:
    """Return the program that was kept, for the same target and number of threads; with `flush` denormal numbers are zero.

    It is put into memory when it is first bound, and its steps are made when somebody asks for them, or for sizes that it is not
    ready for.

    Raises:
        LookupError, TypeError, ValueError: it is not as it was written.
    """
    code, objects, declared, about, precisions, not_zero, precision, packs, names, loop, values, ready, later = kept.plain
    count, is_counted, shares = about
    plain, arrays = PlainReader(_no_tensor), kept.arrays
    shapes = [_shape(plain, shape) for _, shape in declared]
    zeros = [NotZero(place, _dim(plain, size), _dim(plain, copied)) for place, size, copied in not_zero]

    def link() -> Linked:
        library, runner = library_for(target), driver_for(target)
        kernels, engines = library.link(dict(objects)) if code is None else library.link_code(Code(*code))

        def make_planner() -> Planner:
            reader = _Reader(arrays, plain, names, Lowered(target, threads, Precision[precision]))
            outputs, storage = reader.read(*marshal.loads(later))
            return Planner(storage, shapes, outputs, kernels, runner, threads, zeros)

        usable = None if ready is None or guards_memory() else read_ready(ready, kernels, arrays, threads, flush=flush)
        return Linked(engines, runner, make_planner, usable)

    program = CpuProgram(
        [Value(name, TensorType(DataType.UNDEFINED, shape)) for (name, _), shape in zip(declared, shapes, strict=True)],
        Facts(count, is_counted, frozenset(shares), arrays),
        link,
        arrays[:packs],
        zeros,
    )
    program.lies_in_one_block, program.flushes_denormals, program.precisions = True, flush, precisions
    if values is not None:
        return _sized_program(program, plain, arrays, *values)
    return program if loop is None else _loop_program(program, plain, *loop)


def _code_of(objects: Mapping[str, bytes]) -> Code:
    """Return the machine code of kernels as one block, with nothing in it known by name but these."""
    code = laid_out(objects.values())
    return code._replace(symbols=tuple((name, place) for name, place in code.symbols if name in objects))


def _plain_loop(loop: OpenLoop) -> Plain:
    trips = loop.trips if loop.trips is None or isinstance(loop.trips, int) else (int(loop.trips.reshape(-1)[0]),)
    return loop.place, trips, loop.is_exact, tuple(loop.capacities), tuple(loop.stacked), tuple(loop.open_dims.items())


def _loop_program(
    program: CpuProgram,
    plain: PlainReader,
    place: str,
    trips: Plain,
    is_exact: bool,
    capacities: Plain,
    stacked: Plain,
    dims: Plain,
) -> LoopProgram:
    with without_fork():
        from sardonyx.providers.cpu.loop_program import LoopProgram, OpenLoop  # which few sessions need

    most = np.array(trips, np.int64) if isinstance(trips, tuple) else trips
    names = frozenset(str(_dim(plain, name)) for name in capacities)
    return LoopProgram(program, OpenLoop(place, most, is_exact, names, frozenset(stacked), dict(dims)))


def _plain_sizes(sizes: ValueSizes, writer: _Writer) -> Plain:
    given = tuple(
        item if item is None or isinstance(item, int) else (writer.array(np.ascontiguousarray(item)),) for item in sizes.given
    )
    return sizes.op_type, sizes.where, given, writer.shape(sizes.shape)


def _sized_program(
    program: CpuProgram, plain: PlainReader, arrays: Sequence[Array], op_type: str, where: str, given: Plain, shape: Plain
) -> SizedProgram:
    with without_fork():
        from sardonyx.providers.cpu.sized_program import SizedProgram  # which few sessions need
        from sardonyx.providers.cpu.value_sizes import ValueSizes

    found = tuple([arrays[item[0]] if isinstance(item, tuple) else item for item in given])
    return SizedProgram(program, ValueSizes(op_type, where, found, _shape(plain, shape)))


class _Writer:
    """Gives buffers and arrays their numbers."""

    def __init__(self, storage: Storage, packs: Sequence[Array], names: Sequence[str]) -> None:
        self.arrays: list[Array] = []
        self.buffers: list[Plain] = []
        self._plain = PlainWriter({})
        self._numbers: dict[Buffer, int] = {STATUS: 0, RANDOM_SOURCE: 1}
        self._places: dict[int, int] = {}
        self._marks: dict[Mark, int] = {}
        self._guess: dict[str, int] = dict.fromkeys(names, 1)
        self._likely = likely_sizes(names) if names else []
        for pack in packs:
            self.array(pack)
        for step in checked(storage.steps):
            for buffer in step.buffers:
                self.buffer(buffer)
        self.steps = tuple(map(self._step, checked(storage.steps)))

    def dim(self, dim: Dim) -> Plain:
        return self._plain.dim(dim)

    def shape(self, shape: Sequence[Dim]) -> Plain:
        return tuple(map(self.dim, shape))

    def buffer(self, buffer: Buffer) -> int:
        """Return the number of a buffer, whose base has a lower one."""
        found = self._numbers.get(buffer)
        if found is not None:
            return found
        plain = (
            int(buffer.dtype),
            self.shape(buffer.shape),
            None if buffer.constant is None else self.array(buffer.constant),
            None if buffer.base is None else self.buffer(buffer.base),
            self.dim(buffer.offset),
            None if buffer.pitch is None else self.dim(buffer.pitch),
            None if buffer.count is None else self.buffer(buffer.count),
            buffer.counted,
        )
        self.buffers.append(plain)
        self._numbers[buffer] = len(self.buffers) + 1
        return self._numbers[buffer]

    def array(self, array: Array) -> int:
        """Return the number of a constant."""
        if not array.flags.c_contiguous:
            raise NotKept("a constant is not dense")
        place = self._places.get(id(array))
        if place is None:
            place = self._places[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return place

    def _step(self, step: KernelLaunch) -> Plain:
        return (
            step.name,
            step.place,
            step.symbol,
            tuple(map(self.buffer, step.buffers)),
            step.writes,
            self._plan(step),
            step.in_place,
            step.pitched,
            step.nodes,
            step.failure,
            step.together,
            tuple(map(int, step.scalars)),
            None if step.unless is None else self._function(step.unless, bool, lambda made: (int(bool(made)),)),
            step.shares,
            None if step.control is None else self._control(step.control),
        )

    def _control(self, control: Control) -> Plain:
        moves = None
        if control.moves is not None:
            moves = tuple([(self.buffer(to.buffer), to.role, self.dim(to.number), self.dim(to.step_bytes)) for to in control.moves])
        return self._mark(control.mark), self._mark(control.target), control.is_beyond, moves

    def _mark(self, mark: Mark) -> int:
        return self._marks.setdefault(mark, len(self._marks))

    def _plan(self, step: KernelLaunch) -> Plain:
        return self._function(step.plan, lambda made: (tuple(map(int, made[0])), int(made[1])), lambda made: (*made[0], made[1]))

    def _function(
        self, function: Callable[[Sizes], _T], plain: Callable[[_T], Plain], words: Callable[[_T], tuple[int, ...]]
    ) -> Plain:
        """Return what a function gives where each open size is 1, what it asks for then, and, where sizes are open, its bytes.

        Beside these are recipes, of the words that `words` makes of a result.
        """
        traced = TracedSizes(self._guess)
        try:
            known = plain(function(traced)), tuple(map(self.dim, traced.take_asked()))
        except (SardonyxError, ArithmeticError, LookupError):  # no size of 1 is possible
            known = None
        if not self._guess:
            return known, b"", b""
        recipes = write_recipes(lambda sizes: words(function(sizes)), self._likely)
        return known, write_function(function, self._numbers, self._plain), recipes


class _Reader:
    """Makes buffers and steps again."""

    def __init__(self, arrays: Sequence[Array], plain: PlainReader, names: Sequence[str], lowered: Lowered) -> None:
        self._plain = plain
        self._arrays = arrays
        self._guess = {str(_dim(plain, name)): 1 for name in names}
        self.buffers = [STATUS, RANDOM_SOURCE]
        self._marks: dict[int, Mark] = {}
        self._functions = KeptFunctions(self.buffers, lowered, self._plain)

    def read(
        self, inputs: Sequence[int], outputs: Sequence[int], steps: Sequence[Plain], buffers: Sequence[Plain]
    ) -> tuple[list[Buffer], Storage]:
        """Return the buffers of outputs, and where all buffers lie, with the steps."""
        for buffer in checked(buffers):
            self.buffers.append(self._buffer(*buffer))
        made = [self.buffers[number] for number in outputs]
        launches = tuple([self.step(*step) for step in checked(steps)])
        return made, Storage(launches, [self.buffers[number] for number in inputs], [buffer.root for buffer in made])

    def dim(self, plain: Plain) -> Dim:
        return _dim(self._plain, plain)

    def shape(self, plain: Plain) -> tuple[Dim, ...]:
        return _shape(self._plain, plain)

    def _buffer(
        self,
        dtype: int,
        shape: Plain,
        constant: int | None,
        base: int | None,
        offset: Plain,
        pitch: Plain,
        count: int | None,
        counted: int,
    ) -> Buffer:
        return Buffer(
            _DTYPES[dtype],
            self.shape(shape),
            None if constant is None else self._arrays[constant],
            None if base is None else self.buffers[base],
            self.dim(offset),
            None if pitch is None else self.dim(pitch),
            None if count is None else self.buffers[count],
            counted,
        )

    def step(
        self,
        name: str,
        place: str,
        symbol: str,
        buffers: Sequence[int],
        writes: tuple[int, ...],
        plan: Plain,
        in_place: tuple[int, ...],
        pitched: bool,
        nodes: tuple[int, ...],
        failure: str,
        together: int,
        scalars: tuple[int, ...],
        unless: Plain,
        shares: tuple[tuple[int, int], ...],
        control: Plain,
    ) -> KernelLaunch:
        return KernelLaunch(
            name=name,
            place=place,
            symbol=symbol,
            buffers=tuple([self.buffers[number] for number in buffers]),
            writes=writes,
            plan=self._function(_plan_of, *plan),
            in_place=in_place,
            pitched=pitched,
            nodes=nodes,
            failure=failure,
            together=together,
            scalars=scalars,
            unless=None if unless is None else self._function(_flag_of, *unless),
            shares=shares,
            control=None if control is None else self._control(*control),
        )

    def _control(self, mark: int, target: int, is_beyond: bool, moves: Sequence[Plain] | None) -> Control:
        moved = None if moves is None else tuple([self._move(*move) for move in moves])
        return Control(self._mark(mark), self._mark(target), is_beyond, moved)

    def _move(self, buffer: int, role: int, number: Plain, step_bytes: Plain) -> Move:
        return Move(self.buffers[buffer], role, self.dim(number), self.dim(step_bytes))

    def _mark(self, number: int) -> Mark:
        return self._marks.setdefault(number, Mark())

    def _function(self, of_words: Callable[[Plain], _T], known: Plain, content: bytes, recipes: bytes) -> Callable[[Sizes], _T]:
        read, others = self._functions.add(content), Recipes(recipes, self._plain.dim) if recipes else None
        if known is None:
            return KeptFunction(None, None, (), read, others, of_words)
        result, asked = known
        return KeptFunction(self._guess, result, self.shape(asked), read, others, of_words)


def _plan_of(words: tuple[int, ...]) -> tuple[Sequence[int], int]:
    return words[:-1], words[-1]


def _flag_of(words: tuple[int, ...]) -> bool:
    return bool(words[0])


def _dim(reader: PlainReader, plain: Plain) -> Dim:
    return plain if type(plain) is int else reader.dim(plain)


def _shape(reader: PlainReader, plain: Plain) -> tuple[Dim, ...]:
    return tuple([dim if type(dim) is int else reader.dim(dim) for dim in plain])


def _no_tensor(*about: object) -> Tensor:
    raise ValueError(f"a program refers to a tensor of the model: {about}")
