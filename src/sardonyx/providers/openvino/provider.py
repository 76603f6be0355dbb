"""The OpenVINO provider: claims what OpenVINO says it can run, and has it compile its partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sardonyx.errors import EPFail, InvalidArgument
from sardonyx.formats.program_file import read_program, write_program
from sardonyx.ir import Graph, Value
from sardonyx.partition.as_model import base_versions, write_nodes
from sardonyx.provider import HOST, Body, Capability, Claims, GraphView, Layout, Memory, Partition, Program
from sardonyx.providers.openvino.options import settings_of
from sardonyx.providers.openvino.oracle import core, first_line, oracle_for
from sardonyx.providers.openvino.program import OpenVinoProgram
from sardonyx.providers.openvino.tensors import is_large, share_constants, signature_of

__all__ = ["NAME", "OpenVinoProvider", "create"]

NAME = "OpenVINOExecutionProvider"


class OpenVinoProvider:
    """Runs its claims on a device of OpenVINO; tensors live on the host."""

    name = NAME
    preferred_layout = Layout.NCHW
    memory: Memory = HOST
    preferred_operators = frozenset(["DequantizeLinear", "QuantizeLinear"])

    def __init__(self, device: str, properties: Mapping[str, object]) -> None:
        """Make a provider for `device`; `properties` are OpenVINO's, of any type that it takes."""
        self._device, self._properties = device, dict(properties)

    def capabilities(self, view: GraphView) -> Claims:
        """Claim each node that OpenVINO reads and its device supports."""
        reasons = oracle_for(self._device).reasons(view.nodes, base_versions(view.graph))
        declined = {node: reason for node, reason in reasons.items() if reason is not None}
        return Claims([Capability((node,)) for node in view.nodes if node not in declined], declined)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> OpenVinoProgram:
        """Have OpenVINO read and compile `partition`; large weights are shared with it."""
        weights = [value.constant.numpy() for value in partition.constants if value.constant is not None and is_large(value)]
        values = partition.inputs, partition.constants, partition.outputs, base_versions(partition.nodes)
        try:
            model = core().read_model(write_nodes(partition.nodes, *values, is_large))
            kept = share_constants(model, weights)
            compiled = core().compile_model(model, self._device, self._properties)
        except RuntimeError as error:
            nodes = f"{len(partition.nodes)} nodes, from {partition.nodes[0]!r} to {partition.nodes[-1]!r}, but cannot compile them"
            raise EPFail(f"OpenVINO claimed {nodes} as {partition.name} for {self._device}: {first_line(error)}") from error
        return OpenVinoProgram(partition.name, compiled, signature_of(partition.inputs), signature_of(partition.outputs), kept)

    def save(self, partition: Partition, program: Program) -> bytes | None:
        """Return the model as OpenVINO exports it, and the types of its inputs and outputs.

        None where its device exports nothing.
        """
        graph = Graph("partition", [Value("", value.type) for value in (*partition.inputs, *partition.outputs)])
        try:
            model = program.compiled.export_model().getvalue() if isinstance(program, OpenVinoProgram) else None
        except RuntimeError:
            return None
        about = {"device": self._device, "inputs": len(partition.inputs)}
        return write_program(about, graph, objects={"model": model}) if model else None

    def load(self, partition: Partition, content: memoryview) -> OpenVinoProgram:
        """Return the program of an exported model.

        Raises EPFail where OpenVINO, in this version on this device, does not import it.
        """
        file = read_program(content)
        values, count = signature_of(file.graph.inputs), int(file.about["inputs"])
        try:
            compiled = core().import_model(bytes(file.objects["model"]), self._device, self._properties)
        except RuntimeError as error:
            what = f"partition {partition.name}, compiled for {file.about['device']}"
            raise EPFail(f"OpenVINO cannot import {what}, {first_line(error)}; make the context anew") from error
        return OpenVinoProgram(partition.name, compiled, values[:count], values[count:])

    def compatibility_info(self) -> str:
        """Return the device, and the version of OpenVINO's plug-in for it; another one imports nothing."""
        return f"{self._device} {[item.build_number for item in core().get_versions(self._device).values()]}"


def create(options: Mapping[str, str]) -> OpenVinoProvider:
    """Make the provider from what `settings_of` reads; raises InvalidArgument for wrong options and devices that are not there."""
    device, properties = settings_of(options)
    try:
        core().get_property(device, "SUPPORTED_PROPERTIES")
    except RuntimeError as error:
        raise InvalidArgument(f"device_type {device!r}: {first_line(error)}; there are {core().available_devices}") from error
    return OpenVinoProvider(device, properties)
