"""The OpenVINO provider: claims what OpenVINO says it can run, and has it compile its partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sardonyx.errors import EPFail, InvalidArgument
from sardonyx.formats.program_file import read_program, write_program
from sardonyx.ir import Graph, Value
from sardonyx.provider import HOST, Body, Capability, Claims, GraphView, Layout, Memory, Partition, Program
from sardonyx.providers.openvino.convert import base_versions, is_large, share_constants, signature_of, to_onnx
from sardonyx.providers.openvino.options import settings_of
from sardonyx.providers.openvino.oracle import core, first_line, oracle_for
from sardonyx.providers.openvino.program import OpenVinoProgram

__all__ = ["NAME", "OpenVinoProvider", "create"]

NAME = "OpenVINOExecutionProvider"
"""The provider's name."""


class OpenVinoProvider:
    """Runs its claims on a device of OpenVINO; tensors live on the host."""

    name = NAME
    preferred_layout = Layout.NCHW
    memory: Memory = HOST
    quantized_operators = frozenset(["DequantizeLinear", "QuantizeLinear"])

    def __init__(self, device: str, properties: Mapping[str, Any]) -> None:
        """Make a provider for `device`; `properties` are OpenVINO's, of any type that it takes."""
        self._device = device
        self._properties = dict(properties)

    def capabilities(self, view: GraphView) -> Claims:
        """Claim each node that OpenVINO reads and its device supports."""
        reasons = oracle_for(self._device).reasons(view.nodes, base_versions(view.graph))
        claims = [Capability((node,)) for node in view.nodes if reasons[node] is None]
        return Claims(claims, {node: reason for node, reason in reasons.items() if reason is not None})

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> OpenVinoProgram:
        """Have OpenVINO read and compile `partition`; large weights are shared with it."""
        weights = [value.constant.numpy() for value in partition.constants if value.constant is not None and is_large(value)]
        written = to_onnx(partition.nodes, partition.inputs, partition.constants, partition.outputs, base_versions(partition.graph))
        try:
            model = core().read_model(written)
            share_constants(model, weights)
            compiled = core().compile_model(model, self._device, self._properties)
        except RuntimeError as error:
            first, last = partition.nodes[0], partition.nodes[-1]
            raise EPFail(
                f"OpenVINO claimed {len(partition.nodes)} nodes, from {first!r} to {last!r}, but cannot compile them as "
                f"{partition.name} for {self._device}: {first_line(error)}"
            ) from error
        return OpenVinoProgram(partition.name, compiled, signature_of(partition.inputs), signature_of(partition.outputs), weights)

    def save(self, partition: Partition, program: Program) -> bytes | None:
        """The model as OpenVINO exports it, and the types of its inputs and outputs; None where its device exports nothing."""
        exported = program.export() if isinstance(program, OpenVinoProgram) else None
        graph = Graph("partition", [Value("", value.type) for value in (*partition.inputs, *partition.outputs)])
        about = {"device": self._device, "inputs": len(partition.inputs)}
        return None if exported is None else write_program(about, graph, objects={"model": exported})

    def load(self, partition: Partition, content: memoryview) -> OpenVinoProgram:
        """The program of an exported model; raises EPFail where OpenVINO, in this version on this device, does not import it."""
        file = read_program(content)
        values, count = signature_of(file.graph.inputs), int(file.about["inputs"])
        try:
            compiled = core().import_model(bytes(file.objects["model"]), self._device, self._properties)
        except RuntimeError as error:
            made = f"partition {partition.name}, which was compiled for {file.about['device']}"
            raise EPFail(f"OpenVINO cannot import {made}: {first_line(error)}; make the context anew") from error
        return OpenVinoProgram(partition.name, compiled, values[:count], values[count:])


def create(options: Mapping[str, str]) -> OpenVinoProvider:
    """Make the provider.

    Args:
        options: those of `options.settings_of`.

    Raises:
        InvalidArgument: an option is unknown or wrong, or OpenVINO finds no such device.
    """
    device, properties = settings_of(options)
    try:
        core().get_property(device, "SUPPORTED_PROPERTIES")
    except RuntimeError as error:
        raise InvalidArgument(f"device_type {device!r}: {first_line(error)}; there are {core().available_devices}") from error
    return OpenVinoProvider(device, properties)
