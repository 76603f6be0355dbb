"""The provider of a session's custom operators: claims exactly their nodes, and is asked first."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sardonyx.custom_ops.catalog import Catalog
from sardonyx.custom_ops.definition import Kernel, Site
from sardonyx.custom_ops.program import CustomProgram
from sardonyx.custom_ops.runner_names import runner_on
from sardonyx.errors import RuntimeException, SardonyxError, describe, located
from sardonyx.ir import Graph, Node, TensorType
from sardonyx.ir.replaced import original_domain
from sardonyx.ops.schema import place_of
from sardonyx.partition.explain import NO_CUSTOM_OPERATOR
from sardonyx.provider import HOST, Body, Capability, Claims, GraphView, Layout, Memory, Partition, Provider

__all__ = ["LAST_NAME", "NAME", "CustomOperatorsProvider"]

NAME = runner_on("")
"""The provider's name in reports; it is none that a session can be asked for."""
LAST_NAME = "CustomOperatorsLeft"
"""The name of the one that is asked after the others."""


class CustomOperatorsProvider:
    """Runs the custom operators of one session, each by its definition, in one memory: the host's, or a device's."""

    preferred_layout = Layout.NCHW

    def __init__(
        self, catalog: Catalog, config: Mapping[str, str], *, is_first: bool = True, device: Provider | None = None
    ) -> None:
        """Make the provider of the operators in `catalog`; `config` are the session's config entries.

        One that is not asked first takes the nodes that are left, among them those that a kernel of their own does not suit. With
        `device` it is the operators for this provider, whose memory and stream they share.
        """
        self._catalog, self._config, self._is_first = catalog, dict(config), is_first
        self.name = NAME if is_first else LAST_NAME
        self.memory: Memory = HOST
        self._device, self._stream = "", None
        if device is not None:
            self.name, self.memory, self._device = runner_on(device.name), device.memory, device.name
            self._stream = getattr(device, "stream", None)

    def capabilities(self, view: GraphView) -> Claims:
        """Claim every node that a definition serves."""
        claims, declined = [], {}
        for node in view.nodes:
            found = self._catalog.find(node, self._device)
            if found is None:
                declined[node] = f"{NO_CUSTOM_OPERATOR} of {self._device}" if self._device else NO_CUSTOM_OPERATOR
            elif found.create is None:
                declined[node] = "an expression, which other providers compute"
            elif found.cpu_kernel is not None and self._is_first:
                declined[node] = "the CPU provider is asked before, for the operator's own kernel"
            else:
                claims.append(Capability((node,)))
        return Claims(claims, declined)

    def compile(self, partition: Partition, bodies: Callable[[Graph], Body]) -> CustomProgram:
        """Make a kernel for each node of `partition`."""
        kernels = [self._kernel(node) for node in partition.nodes]
        return CustomProgram(partition.nodes, kernels, partition.inputs, partition.constants, partition.outputs, self.memory)

    def _kernel(self, node: Node) -> Kernel:
        definition = self._catalog.find(node, self._device)
        if definition is None or definition.create is None:
            raise RuntimeException(f"{place_of(node)}: its types changed since it was claimed")
        try:
            return definition.create(_site_of(node, self._config, self._stream))
        except SardonyxError as error:
            raise located(error, place_of(node)) from error
        except Exception as error:
            raise RuntimeException(f"{place_of(node)}: {definition.owner or 'its definition'} failed: {describe(error)}") from error


def _site_of(node: Node, config: Mapping[str, str], stream: object) -> Site:
    return Site(
        name=node.name,
        domain=original_domain(node.domain),
        op_type=node.op_type,
        version=node.version,
        attributes=dict(node.attributes),
        input_names=tuple("" if value is None else value.name for value in node.inputs),
        output_names=tuple(value.name or ("?" if value.use_count else "") for value in node.outputs),
        input_types=tuple(
            value.type if value is not None and isinstance(value.type, TensorType) else None for value in node.inputs
        ),
        output_types=tuple(value.type if isinstance(value.type, TensorType) else None for value in node.outputs),
        constants={
            index: value.constant.numpy()
            for index, value in enumerate(node.inputs)
            if value is not None and value.constant is not None
        },
        config=config,
        stream=stream,
    )
