"""The part of onnxruntime's session interface that follows from `run`: OrtValues, bindings, and what has no meaning on a CPU."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from sardonyx.arguments import as_list, as_mapping, as_text
from sardonyx.dtypes import ElementType, OnnxValue
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.forks import without_fork
from sardonyx.logs import report_callback
from sardonyx.session.feeds import kept_names
from sardonyx.session.run_options import RunOptions
from sardonyx.session.values import ModelMetadata, NodeArg

if TYPE_CHECKING:
    from sardonyx.session.io_binding import IOBinding
    from sardonyx.session.signatures import SignatureRunner
    from sardonyx.values.device import OrtDevice
    from sardonyx.values.hardware import OrtEpDevice
    from sardonyx.values.memory_info import OrtMemoryInfo
    from sardonyx.values.ort_value import OrtValue
    from sardonyx.values.ort_value_vector import OrtValueVector

__all__ = ["Callback", "SessionInterface"]

Callback: TypeAlias = Callable[[list[OnnxValue], Any, str], object]
"""f(results, user_data, error) of `run_async`; results and user data are Any by their kinds."""
_DYNAMIC_OPTIONS = {"ep.dynamic.workload_type": ("Default", "Efficient")}


class SessionInterface(abc.ABC):
    """Methods of a session that compute by `compute`."""

    @abc.abstractmethod
    def compute_values(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, OnnxValue],
        run_options: RunOptions | None,
        targets: Mapping[str, OnnxValue] | None = None,
    ) -> list[OnnxValue]:
        """Compute outputs, in arrays of the caller's where `targets` names them; see `run`."""

    @abc.abstractmethod
    def checked_input(self, name: str, value: OnnxValue) -> OnnxValue:
        """Return what `run` makes of a value fed to the input `name`."""

    @abc.abstractmethod
    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that a feed must have."""

    @abc.abstractmethod
    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the initializers that a feed may override."""

    @abc.abstractmethod
    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""

    @abc.abstractmethod
    def get_modelmeta(self) -> ModelMetadata:
        """Return the metadata of the model's file."""

    @abc.abstractmethod
    def signature_session(self, index: int) -> SessionInterface:
        """Return a session of another graph of the model's file."""

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return signature -> the names of its inputs and outputs; empty for a model that has no signatures."""
        found = _signatures().signatures_of(self.get_modelmeta().custom_metadata_map)
        return {key: {side: list(entry[side]) for side in ("inputs", "outputs")} for key, entry in found.items()}

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return what runs a signature, inputs by keyword, and returns its outputs by name.

        Args:
            signature_key: the signature; may be left out where there is one only.

        Raises:
            InvalidArgument: the model has no such signature, or the session can read its file no more.
        """
        module = _signatures()
        found = module.signatures_of(self.get_modelmeta().custom_metadata_map)
        key = module.chosen(found, signature_key if signature_key is None else as_text("signature_key", signature_key))
        session: SessionInterface = self
        if any(not name for name in found[key]["inputs"].values()) or not any(found[key]["outputs"].values()):
            session = self.signature_session(found[key]["subgraph"])
            found = module.signatures_of(session.get_modelmeta().custom_metadata_map)
        runner: SignatureRunner = module.SignatureRunner(key, session, found[key]["inputs"], found[key]["outputs"])
        return runner

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, OnnxValue],
        callback: Callback,
        user_data: object,
        run_options: RunOptions | None = None,
    ) -> None:
        """Compute outputs on a thread of the process's pool, and return at once.

        Args:
            output_names: as for `run`.
            input_feed: as for `run`; the arrays must not change before `callback` is called.
            callback: f(results, user_data, error), called at the end: with the outputs and "", or with [] and the error's text.
            user_data: handed to `callback`.
            run_options: as for `run`.

        Raises:
            InvalidArgument: the names or the feed do not fit the model.
            TypeError: `callback` cannot be called.
        """
        if not callable(callback):
            raise TypeError(f"callback is a function of the results, user_data and an error, got {callback!r:.100}")
        names = kept_names(output_names)
        checked = self.checked_feed(names, input_feed)
        with without_fork():
            from sardonyx.session.callbacks import submit  # with a pool of threads, which few programs need

        submit(_compute_and_hand_over, functools.partial(self.compute_values, names, checked, run_options), callback, user_data)

    async def arun(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, OnnxValue], run_options: RunOptions | None = None
    ) -> list[OnnxValue]:
        """Compute outputs on a thread of the process's pool; a task that is cancelled ends its run.

        Args:
            output_names: as for `run`.
            input_feed: as for `run`.
            run_options: as for `run`.

        Returns:
            As for `run`.
        """
        options = RunOptions() if run_options is None else run_options
        with without_fork():
            import asyncio  # a third of the time of `import sardonyx`

            from sardonyx.session.callbacks import submit

        names = kept_names(output_names)
        checked = self.checked_feed(names, input_feed)
        done = submit(self.compute_values, names, checked, options)
        try:
            return await asyncio.wrap_future(done)
        except asyncio.CancelledError:
            options.terminate = True
            raise

    @abc.abstractmethod
    def checked_feed(self, output_names: Sequence[str] | None, input_feed: Mapping[str, OnnxValue]) -> Mapping[str, OnnxValue]:
        """Return a feed as `run` takes it; raises InvalidArgument where it, or a name, does not fit the model."""

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Compute outputs from OrtValues; none of them is copied.

        Args:
            output_names: as for `run`.
            input_dict_ort_values: input name -> value.
            run_options: as for `run`.

        Returns:
            A value for each output.

        Raises:
            InvalidArgument: a value is no OrtValue, or as for `run`.
        """
        kind = _ort_value()
        as_mapping("input_dict_ort_values", input_dict_ort_values)
        for name, value in input_dict_ort_values.items():
            if not isinstance(value, kind):
                raise InvalidArgument(f"run_with_ort_values takes an OrtValue for {name!r}, got {type(value).__name__}")
        feed = {name: value.value for name, value in input_dict_ort_values.items()}
        return [kind.of(result) for result in self.compute_values(output_names, feed, run_options)]

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Compute what is bound, into the memory that is bound.

        Where an output has none, the run allocates it, and later runs of the same binding may write it again, as onnxruntime's do.

        Args:
            iobinding: made by `io_binding` of this session.
            run_options: as for `run`.

        Raises:
            InvalidArgument: the binding is another session's, an input is missing, or bound memory does not fit a result.
        """
        try:
            native = iobinding.native_run
        except AttributeError:
            raise TypeError(f"iobinding is an IOBinding, got {iobinding!r:.100}") from None
        if run_options is None and native is not None:
            native(self, iobinding)
        else:
            self.run_bound_in_python(iobinding, run_options)

    def run_bound_in_python(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Compute what is bound, and have later runs of the binding made by machine code where they can be."""
        if iobinding.session is not self:
            raise InvalidArgument("IOBinding must be used with the session that created it.")
        names = list(iobinding.bound_outputs)
        if not names:
            raise InvalidArgument("no output is bound: call bind_output or bind_ortvalue_output before run_with_iobinding")
        targets = {name: target.value for name, target in iobinding.bound_outputs.items() if target is not None}
        feed = {name: value.value for name, value in iobinding.bound_inputs.items()}
        results = self.compute_values(names, feed, run_options, targets)
        given, kind = iobinding.bound_outputs, _ort_value()
        iobinding.store({name: given[name] or kind.of(result) for name, result in zip(names, results, strict=True)})
        if run_options is None:
            iobinding.native_run = self.native_binding(feed, dict(zip(names, results, strict=True)))

    def native_binding(self, feed: Mapping[str, OnnxValue], targets: Mapping[str, OnnxValue]) -> Callable[..., None] | None:
        """Return what computes the same again without Python; None where nothing does."""
        return None

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: OrtValueVector,
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[OrtDevice],
    ) -> None:
        """Compute outputs from a vector of values, and append them to `fetches`.

        Args:
            run_options: as for `run`.
            feed_names: the inputs' names.
            feeds: a value for each.
            fetch_names: the outputs' names.
            fetches: takes the outputs.
            fetch_devices: the CPU for each output.

        Raises:
            InvalidArgument: the names are more or fewer than the values, or as for `run`.
        """
        feed_names, fetch_names = as_list("feed_names", feed_names), as_list("fetch_names", fetch_names)
        values, fetch_devices = as_list("feeds", feeds), as_list("fetch_devices", fetch_devices)
        if not hasattr(fetches, "push_back"):
            raise TypeError(f"fetches is an OrtValueVector, got {fetches!r:.100}")
        if len(feed_names) != len(values) or len(fetch_names) != len(fetch_devices):
            raise InvalidArgument(
                f"{len(feed_names)} feed names for {len(values)} feeds, {len(fetch_names)} outputs for {len(fetch_devices)} devices"
            )
        for device in fetch_devices:
            if not getattr(device, "is_cpu", False):
                raise InvalidArgument(f"fetch_devices has the CPU for each output, got {device!r:.100}")
        for value in self.run_with_ort_values(fetch_names, dict(zip(feed_names, values, strict=True)), run_options):
            fetches.push_back(value)

    def io_binding(self) -> IOBinding:
        """Return an empty binding of this session."""
        with without_fork():
            from sardonyx.session.io_binding import IOBinding  # with values and devices, which a session that is run lacks

        return IOBinding(self)

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: ElementType,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """Return a tensor whose content is left open; see `OrtValue.ortvalue_from_shape_and_type`."""
        return _ort_value().ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return for each input the memory that it is taken from: the host's."""
        return _memory_infos(len(self.get_inputs()))

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return for each output the memory that it lies in: the host's."""
        return _memory_infos(len(self.get_outputs()))

    def get_input_epdevices(self) -> list[OrtEpDevice | None]:
        """Return for each input the device that it is taken from: the processor."""
        with without_fork():
            from sardonyx.values.hardware import get_ep_devices  # as for `io_binding`

        return [get_ep_devices()[0] for _ in self.get_inputs()]

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Accept options that may change while a session lives: the CPU provider has none that would change its work.

        Raises:
            InvalidArgument: `ep.dynamic.workload_type` is neither "Default" nor "Efficient".
            Fail: there are no options.
        """
        if not as_mapping("options", options):
            raise Fail("set_ep_dynamic_options needs at least one option")
        for key, text in options.items():
            if key in _DYNAMIC_OPTIONS and text not in _DYNAMIC_OPTIONS[key]:
                raise InvalidArgument(f"{key} is one of {', '.join(_DYNAMIC_OPTIONS[key])}, got {text!r}")

    def get_tuning_results(self) -> list[OnnxValue]:
        """Return an empty list: kernels are not chosen by timing them."""
        return []

    def set_tuning_results(self, results: Sequence[OnnxValue], *, error_on_invalid: bool = False) -> None:
        """Accept results of tuning, which have no effect.

        Raises:
            Fail: there are some, and `error_on_invalid` is set.
        """
        if results and error_on_invalid:
            raise Fail("tuning results of other engines have no meaning here")

    @abc.abstractmethod
    def get_profiling_start_time_ns(self) -> int:
        """Return when profiling began, in nanoseconds; 0 without profiling."""

    @abc.abstractmethod
    def end_profiling(self) -> str:
        """Return the name of the profile's file; empty without profiling."""

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:  # noqa: B027  nothing to do, here and in subclasses
        """Accept the call: no graph is captured on a CPU."""


def _compute_and_hand_over(compute: Callable[[], list[OnnxValue]], callback: Callback, user_data: object) -> None:
    """Compute, and call back from this thread with the outputs or with the error's text; what the function raises is reported."""
    try:
        given: tuple[list[OnnxValue], str] = compute(), ""
    except Exception as error:  # noqa: BLE001  whatever ends the run is what the caller is to be told
        given = [], str(error)
    try:
        callback(given[0], user_data, given[1])
    except Exception:  # noqa: BLE001  a user's function may raise anything, and nobody waits for it
        report_callback(callback, "the callback of run_async raised")


@functools.cache
def _ort_value() -> type[OrtValue]:
    with without_fork():
        from sardonyx.values.ort_value import OrtValue  # as for `io_binding`

    return OrtValue


def _memory_infos(count: int) -> list[OrtMemoryInfo]:
    with without_fork():
        from sardonyx.values.hardware import cpu_memory_info  # as for `io_binding`

    return [cpu_memory_info() for _ in range(count)]


def _signatures() -> Any:
    """Return the module of signatures, which few models have: Any, for a module."""
    with without_fork():
        from sardonyx.session import signatures
    return signatures
