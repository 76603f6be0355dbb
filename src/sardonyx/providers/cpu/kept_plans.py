"""Plans of steps as bytes, and plans that know what they return for the sizes that are most likely.

A plan is a function inside a lowering, which refers to what the lowering knew. Its bytes hold the function's code with these
things; the module that it comes from is imported when the function is read, which is not before other sizes come. Of the graph,
which programs outlive, it may refer to nodes and values as messages and types need them: without attributes, constants, and who
makes or reads a value.
"""

from __future__ import annotations

import functools
import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.codegen.target import Target
from sardonyx.errors import Fail
from sardonyx.forks import without_fork
from sardonyx.formats.plain_graph import PlainReader, PlainWriter
from sardonyx.ir import Expr, Graph, Node, Tensor, Value
from sardonyx.ir.shape import Dim
from sardonyx.providers.cpu.precision import Precision
from sardonyx.providers.cpu.recipes import Recipes
from sardonyx.providers.cpu.recorded import RecordedSizes
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.cpu.steps import Buffer
from sardonyx.sources import has_changed

__all__ = ["KeptFunction", "KeptFunctions", "Lowered", "NotKept", "write_function"]

_T = TypeVar("_T")
_OWN_MODULES = "sardonyx."
_PACKAGE = "sardonyx"
_DIM, _BUFFER, _LOWERING, _TARGET, _MODULE = range(5)
_MOST_ARRAY_BYTES = 4096
"""Plans compute with sizes: what refers to a larger array refers to weights."""


class NotKept(Exception):
    """Something cannot be kept, such as a plan that refers to a node."""


@dataclasses.dataclass(frozen=True, slots=True)
class Lowered:
    """What plans ask of the lowering that made them."""

    target: Target
    """What kernels are compiled for."""
    threads: int
    """How many threads run a step."""
    precision: Precision
    """What operands of products may be rounded to."""


class KeptFunction(Generic[_T]):
    """A function of sizes that knows its result for some, computes it for others, and is read when neither will do."""

    __slots__ = ("_asked", "_function", "_of_words", "_read", "_recipes", "_result", "_symbols")

    def __init__(
        self,
        symbols: Mapping[str, int] | None,
        result: _T | None,
        asked: Sequence[Dim],
        read: Callable[[], Callable[[Sizes], _T]],
        recipes: Recipes | None = None,
        of_words: Callable[[tuple[int, ...]], _T] | None = None,
    ) -> None:
        """Make the function.

        Args:
            symbols: sizes for which it knows its result; None for none.
            result: the result.
            asked: the dimensions whose sizes it asks for on the way, as the function itself would.
            read: returns the function itself.
            recipes: what computes its words for other sizes.
            of_words: makes a result of these words.
        """
        self._recipes, self._of_words = recipes, of_words
        self._symbols, self._result, self._asked, self._read = symbols, result, asked, read
        self._function: Callable[[Sizes], _T] | None = None

    def __call__(self, sizes: Sizes) -> _T:
        """Return the result for these sizes."""
        if sizes.symbols == self._symbols and not isinstance(sizes, RecordedSizes):
            for dim in self._asked:
                sizes(dim)
            return cast("_T", self._result)
        if self._function is None:
            if self._recipes is not None and self._of_words is not None:
                words = self._recipes.words(sizes)
                if words is not None:
                    return self._of_words(words)
            self._function = self._read()
        return self._function(sizes)


def write_function(function: Callable[..., Any], buffers: Mapping[Buffer, int], writer: PlainWriter) -> bytes:
    """Return a function as bytes; a lowering that it refers to becomes a `Lowered`.

    Args:
        function: a plan, or what a plan may refer to (Any: of whatever arguments).
        buffers: the numbers of buffers that are kept by themselves.
        writer: for dimensions.

    Raises:
        NotKept: it refers to what cannot be kept.
    """
    with without_fork():
        from sardonyx.providers.cpu.lowering import Lowering  # which programs that are restored do without

    stream = io.BytesIO()
    try:
        _Writer(stream, buffers, Lowering, writer).dump(function)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError, pickle.PicklingError) as error:
        raise NotKept(f"a plan: {error}") from error
    return stream.getvalue()


class KeptFunctions:
    """Functions as bytes, all of which are read when one is asked for: sizes that one step does not know, others do not either."""

    def __init__(self, buffers: Sequence[Buffer], lowered: Lowered, reader: PlainReader) -> None:
        """Make an empty list.

        Args:
            buffers: by number; may grow until functions are read.
            lowered: in the place of the lowering.
            reader: for dimensions.
        """
        self._buffers, self._lowered, self._reader = buffers, lowered, reader
        self._contents: list[bytes] = []
        self._functions: list[Callable[..., Any]] | None = None

    def add(self, content: bytes) -> Callable[[], Callable[..., Any]]:
        """Add what `write_function` returned; return what reads it.

        The bytes run code, in a process with the same sources and version of Python: they come from where machine code comes from.
        """
        self._contents.append(content)
        return functools.partial(self._get, len(self._contents) - 1)

    def _get(self, number: int) -> Callable[..., Any]:
        if self._functions is None:
            modules = _Modules()
            readers = (_Reader(content, self._buffers, self._lowered, self._reader, modules) for content in self._contents)
            with without_fork():
                self._functions = [reader.load() for reader in readers]
        return self._functions[number]


class _Modules:
    """Modules by name, imported where they are not, from the files that this process began with."""

    def __init__(self) -> None:
        self._is_checked = False

    def find(self, name: str) -> types.ModuleType:
        found = sys.modules.get(name)
        if found is None:
            if not self._is_checked and has_changed(_PACKAGE):
                raise Fail(
                    f"sizes that are new to this session need the module {name}, but files of sardonyx were changed since this "
                    "process imported it; start the process anew"
                )
            self._is_checked = True
            found = importlib.import_module(name)
        return found


class _Writer(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, buffers: Mapping[Buffer, int], low: type, writer: PlainWriter) -> None:
        super().__init__(stream, protocol=5)
        self._buffers, self._low, self._plain = buffers, low, writer

    def persistent_id(self, item: Any) -> Any:  # as pickle has it
        if isinstance(item, Expr):
            return _DIM, self._plain.dim(item)
        if isinstance(item, Buffer) and item in self._buffers:
            return _BUFFER, self._buffers[item]
        if isinstance(item, self._low):
            return _LOWERING, 0
        if isinstance(item, Target):
            return _TARGET, 0
        if isinstance(item, types.ModuleType):
            return _MODULE, item.__name__
        return None

    def reducer_override(self, item: Any) -> Any:  # as pickle has it
        if isinstance(item, (Graph, Tensor)):
            raise NotKept(f"a plan refers to {item!r}")
        if isinstance(item, Value):
            return Value, (item.name, item.type)
        if isinstance(item, Node):
            return _node, (item.op_type, item.domain, item.version, item.name, tuple(item.inputs), tuple(item.outputs))
        if getattr(item, "nbytes", 0) > _MOST_ARRAY_BYTES:
            raise NotKept(f"a plan refers to {item.nbytes} bytes of elements")
        if isinstance(item, types.FunctionType) and "<" in item.__qualname__:
            if not item.__module__.startswith(_OWN_MODULES):
                raise NotKept(f"a plan of {item.__module__}")
            cells = tuple(cell.cell_contents for cell in item.__closure__ or ())
            about = sys.modules[item.__module__], marshal.dumps(item.__code__), item.__defaults__, item.__kwdefaults__
            return _function, (*about, cells)
        return NotImplemented


class _Reader(pickle.Unpickler):
    def __init__(self, content: bytes, buffers: Sequence[Buffer], lowered: Lowered, reader: PlainReader, modules: _Modules) -> None:
        super().__init__(io.BytesIO(content))
        self._buffers, self._lowered, self._plain, self._modules = buffers, lowered, reader, modules

    def find_class(self, module: str, name: str) -> Any:  # as pickle has it
        self._modules.find(module)
        return super().find_class(module, name)

    def persistent_load(self, key: Any) -> Any:  # as pickle has it
        kind, about = key
        if kind == _MODULE:
            return self._modules.find(about)
        if kind == _DIM:
            return self._plain.dim(about)
        if kind == _BUFFER:
            return self._buffers[about]
        return self._lowered if kind == _LOWERING else self._lowered.target


def _node(op_type: str, domain: str, version: int, name: str, inputs: tuple[Value | None, ...], outputs: tuple[Value, ...]) -> Node:
    return Node(op_type, inputs, outputs, domain=domain, version=version, name=name)


def _function(
    module: types.ModuleType,
    code: bytes,
    defaults: tuple[object, ...] | None,
    named: dict[str, object] | None,
    cells: tuple[object, ...],
) -> types.FunctionType:
    """Return a function of a module, with what it refers to."""
    made = types.FunctionType(marshal.loads(code), module.__dict__, None, defaults, tuple(map(types.CellType, cells)))
    made.__kwdefaults__ = named
    return made
