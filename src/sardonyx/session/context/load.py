"""Loading models whose partitions are compiled already: from nodes, from files beside the model, or from a callback."""

from __future__ import annotations

import base64
from pathlib import Path

from sardonyx import config
from sardonyx import lazy_dataclasses as dataclasses
from sardonyx.dtypes import Array
from sardonyx.errors import EPFail, InvalidArgument, InvalidGraph, ModelRequiresCompilation, SardonyxError, blamed, located
from sardonyx.formats.external_data import ExternalData
from sardonyx.formats.program_copy import Compared, TakenProgram, take_program
from sardonyx.ir import Model, Node
from sardonyx.partition.contexts import fit_program
from sardonyx.partition.part import Cut
from sardonyx.provider import KeepsPrograms, Partition, Program
from sardonyx.session.context.data import read_by
from sardonyx.session.context.seal import noted_digest, seal_problem
from sardonyx.session.context.weights import SourceModel
from sardonyx.session.providers import blaming, check_program
from sardonyx.session.settings.keys import CONTEXT_TRUST
from sardonyx.session.settings.settings import ContextSettings, LoadSettings
from sardonyx.trace import span

__all__ = ["ContextLoader", "refuse_to_compile"]

_MOST_CHARACTERS = 1024
"""The longest name of a file."""


class ContextLoader:
    """Loads the compiled partitions of one model; each file is read once."""

    def __init__(self, model: Model, settings: ContextSettings, load: LoadSettings) -> None:
        """Prepare to load, reading nothing yet; `load` says how models are read that weights were left in."""
        self._folder = _folder(model, settings.path)
        self._is_trusted = settings.is_trusted
        self._compared = Compared.ALL if settings.checks_weights else Compared.SAMPLES if config.maps_weights() else Compared.SUMS
        self._read, self._most_bytes = settings.read_data, settings.most_read_bytes
        self._files = ExternalData(self._folder, model.path)
        self._given: dict[str, memoryview] = {}
        self._source = SourceModel(settings.source, self._folder, load)

    def load(self, part: Cut) -> Program:
        """Return the program of an EPContext node, from its provider.

        Raises:
            EPFail: the content is damaged, another one's, for another version or device, or not trusted.
            NoSuchFile, InvalidArgument, InvalidGraph: it has none, or its file is not there or lies outside the model's folder.
            Fail: the callback that reads failed.
        """
        (node,), provider = part.partition.nodes, part.provider
        what = f"EPContext node {node.name!r}"
        if not isinstance(provider, KeepsPrograms):
            raise EPFail(f"{provider.name} keeps no programs, but is to load node {node.name!r}")
        try:
            content, pages = self._content(node, what)
            taken = take_program(content, self._compared, pages)
            self._check(node, taken, what)
            with span("context.load", partition=part.partition.name), blaming(provider, f"load {what}"):
                program = provider.load(self._with_weights(part.partition, node, taken), taken.content)
            check_program(program, provider, f"loaded {what}")
            return fit_program(program, part.partition)
        except SardonyxError as error:
            raise located(blamed(error, provider.name), what) from error

    def _check(self, node: Node, taken: TakenProgram, what: str) -> None:
        notes = node.text("notes", "")
        if noted_digest(notes) not in ("", taken.digest.hex()):
            raise EPFail(
                f"{what} was written with another content than the program that it has now: files were swapped, damaged or written "
                "anew; restore the file, or make the context anew"
            )
        problem = "" if self._is_trusted else seal_problem(taken.digest, notes)
        if problem:
            raise EPFail(
                f"{what} holds machine code that was not compiled by this user on this machine, or that has changed ({problem}); "
                f"make the context anew, or, if you trust where it comes from, set the config entry {CONTEXT_TRUST.name} to 1"
            )

    def _content(self, node: Node, what: str) -> tuple[memoryview, Array | None]:
        """Return a program, and the sums of its pages as far as they are known."""
        text, mode = node.text("ep_cache_context", ""), node.integer("embed_mode", 1)
        if not node.flag("main_context", True):
            raise InvalidGraph(f"{what} has main_context 0: its program is in another node, which sardonyx never writes")
        if not text or mode not in (0, 1):
            raise InvalidGraph(f"{what} has {text!r:.40} as its ep_cache_context and {mode!r:.40} as embed_mode; make it anew")
        if mode:
            return memoryview(_decoded(text, what)), None
        (whole, pages), size = self._whole(text, what), node.integer("max_size", 0)
        if not 0 <= size <= len(whole):
            raise EPFail(f"{what} needs {size!r} bytes of {text!r}, which has {len(whole)}; restore it, or make the context anew")
        return whole[:size] if size else whole, pages

    def _whole(self, name: str, what: str) -> tuple[memoryview, Array | None]:
        if self._read is None and self._folder is None:
            raise InvalidArgument(
                f"{what} has its program in the file {name!r:.100}, but the model comes from memory; set the config entry "
                "ep.context_file_path to a path beside that file"
            )
        if len(name) > _MOST_CHARACTERS:
            raise InvalidGraph(f"{what} names a file of {len(name)} characters, beginning with {name[:40]!r}; make it anew")
        if self._read is None:
            return self._files.whole(name, what)
        if name not in self._given:
            self._given[name] = read_by(self._read, self._most_bytes, name)
        return self._given[name], None

    def _with_weights(self, partition: Partition, node: Node, taken: TakenProgram) -> Partition:
        names = taken.elsewhere
        given = self._source.values(names, node.text("onnx_model_filename", "")) if names else []
        return dataclasses.replace(partition, constants=(*partition.constants, *taken.weights, *given))


def refuse_to_compile(part: Cut) -> None:
    """Raise ModelRequiresCompilation for a partition that its provider could have kept a program of.

    Programs of a node alone cannot always be kept: one reads sizes from elements, or is a loop that grows its results.
    """
    if isinstance(part.provider, KeepsPrograms) and not part.partition.units[0].alone:
        raise ModelRequiresCompilation(
            f"{part.provider.name} would compile {part.partition.name}, {len(part.partition.nodes)} nodes, but "
            "session.disable_model_compile is set; give a model that was written with ep.context_enable"
        )


def _folder(model: Model, context_path: str) -> Path | None:
    """Return where files are looked for: beside the model, or beside the path that the options give one that comes from memory."""
    if model.path is not None:
        return model.path.parent
    return Path(context_path).parent if context_path else None


def _decoded(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise EPFail(f"{what} holds what is no base64 text ({error}); make the context anew") from error
