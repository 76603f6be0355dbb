"""Ranges of tensors from calibration data.

    calibrator = create_calibrator("model.onnx", calibrate_method=CalibrationMethod.Entropy)
    calibrator.collect_data(reader)                     runs the model on each feed that the reader gives
    calibrator.compute_data()["tensor"].range_value     (lowest, highest)

MinMax keeps the extremes, which the model itself computes; Entropy and Percentile keep a histogram of each tensor, and leave
out rare large values; Distribution finds how values are spread, `avg_std`, by which float8 is scaled.
"""

from __future__ import annotations

import abc
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType, OnnxValue
from sardonyx.errors import InvalidArgument
from sardonyx.formats import onnx as onnx_format
from sardonyx.formats.protos import Message
from sardonyx.ir import Graph, Model, Node, Tensor, Value
from sardonyx.ops.infer import infer_graph
from sardonyx.optimize.edit import Names, clone_model, overridable_values, tensor_of
from sardonyx.quantization.collectors import CalibrationDataCollector, HistogramCollector
from sardonyx.quantization.quant_utils import CalibrationMethod
from sardonyx.quantization.tensors_data import (
    CalibrationCacheEncoder,
    TensorData,
    TensorsData,
    load_tensors_data,
    save_tensors_data,
)
from sardonyx.session.inference_session import InferenceSession
from sardonyx.tools.models import Given, read

__all__ = [
    "CalibraterBase",
    "CalibrationCacheEncoder",
    "CalibrationDataCollector",
    "CalibrationDataReader",
    "CalibrationMethod",
    "DistributionCalibrater",
    "EntropyCalibrater",
    "HistogramCalibrater",
    "HistogramCollector",
    "MinMaxCalibrater",
    "PercentileCalibrater",
    "TensorData",
    "TensorsData",
    "create_calibrator",
    "load_tensors_data",
    "open_model",
    "save_tensors_data",
]

_FLOATS = (DataType.FLOAT, DataType.FLOAT16)
_METHODS = {
    "entropy": CalibrationMethod.Entropy,
    "percentile": CalibrationMethod.Percentile,
    "distribution": CalibrationMethod.Distribution,
}
_CHANNEL_AXIS, _AXES_ARE_AN_INPUT = 1, 18
_MOST_BYTES = 1 << 30
"""Larger models are written to a file before a session opens them."""


class CalibrationDataReader(abc.ABC):
    """Gives the feeds of calibration, one after the other; a subclass says what they are."""

    @abc.abstractmethod
    def get_next(self) -> Mapping[str, OnnxValue] | None:
        """Return the next feed, input name -> value; None after the last one."""

    def __iter__(self) -> CalibrationDataReader:
        return self

    def __next__(self) -> Mapping[str, OnnxValue]:
        feed = self.get_next()
        if feed is None:
            raise StopIteration
        return feed

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not say how many feeds it has")

    def set_range(self, start_index: int, end_index: int) -> None:
        """Give the feeds of these numbers only, where a subclass can."""
        raise NotImplementedError(f"{type(self).__name__} cannot give a part of its feeds")


class CalibraterBase(abc.ABC):
    """Runs a model on calibration data, and keeps what the ranges of its tensors follow from."""

    def __init__(
        self,
        model_path: Given | Model,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "",
        symmetric: bool = False,
        use_external_data_format: bool = False,
        per_channel: bool = False,
        *,
        tensors: Sequence[str] | None = None,
    ) -> None:
        """Prepare the model.

        Args:
            model_path: a path, an onnx.ModelProto, or a model of ours, which stays as it is.
            op_types_to_calibrate: operators whose inputs and outputs are looked at; None for all.
            augmented_model_path: accepted; no file is written.
            symmetric: whether ranges have 0 in their middle.
            use_external_data_format: accepted.
            per_channel: whether each index along the second axis has a range of its own, where the class finds such.
            tensors: names of the tensors instead.

        Raises:
            SardonyxError: the model cannot be read.
        """
        self.model = clone_model(model_path) if isinstance(model_path, Model) else read(model_path)
        self.symmetric, self.per_channel = symmetric, per_channel
        self.providers: Sequence[str] = ["CPUExecutionProvider"]
        infer_graph(self.model)
        wanted = _float_values(self.model, op_types_to_calibrate)
        if tensors is not None:
            chosen = frozenset(tensors)
            wanted = [value for value in _float_values(self.model, None) if value.name in chosen]
        self._values = wanted
        self._asked: list[str] = []
        self._session: InferenceSession | None = None

    @property
    def tensors_to_calibrate(self) -> list[str]:
        """The names of the tensors whose ranges are looked for."""
        return [value.name for value in self._values]

    def set_execution_providers(self, execution_providers: Sequence[str] = ("CPUExecutionProvider",)) -> None:
        """Run on these from now on."""
        self.providers, self._session = list(execution_providers), None

    def augment_graph(self) -> None:
        """Put into `model` what runs are asked for; `collect_data` does it by itself."""
        if not self._asked:
            self._asked = [_give_out(self.model.graph, value) for value in self._augment()]

    def get_augment_model(self) -> Message:
        """Return the model that runs, as an onnx.ModelProto."""
        self.augment_graph()
        return onnx_format.to_proto(self.model)

    def create_inference_session(self) -> None:
        """Open the session that runs; `collect_data` does it by itself."""
        self.augment_graph()
        if self._session is None:
            self._session = open_model(self.model, self.providers)

    def collect_data(self, data_reader: Iterable[Mapping[str, OnnxValue]]) -> None:
        """Run the model on each feed.

        Raises:
            ValueError: there is no feed.
            SardonyxError: a feed does not fit the model.
        """
        self.create_inference_session()
        is_empty = True
        for feed in data_reader:
            is_empty = False
            assert self._session is not None
            self._take(self._session.run(self._asked, dict(feed)) if self._asked else [])
        if is_empty:
            raise ValueError("the calibration data is empty: the reader gave no feed")

    @abc.abstractmethod
    def _augment(self) -> list[Value]:
        """Put nodes into the model that help, and return the values that runs are asked for."""

    @abc.abstractmethod
    def _take(self, results: Sequence[Array]) -> None:
        """Take what a run gave."""

    @abc.abstractmethod
    def compute_data(self) -> TensorsData:
        """Return the ranges; raises ValueError where no data was collected."""

    def _data(self, method: CalibrationMethod, ranges: Sequence[tuple[Array, Array]]) -> TensorsData:
        if len(ranges) < len(self._values):
            raise ValueError("no calibration data was collected: call collect_data first")
        found = {}
        for value, (low, high) in zip(self._values, ranges, strict=True):
            most = np.maximum(np.abs(low), np.abs(high))
            found[value.name] = (-most, most) if self.symmetric else (low, high)
        return TensorsData(method, found)


class MinMaxCalibrater(CalibraterBase):
    """The least and the greatest value of each tensor over all data, or a moving average of those of each feed."""

    def __init__(
        self,
        model_path: Given | Model,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "",
        symmetric: bool = False,
        use_external_data_format: bool = False,
        moving_average: bool = False,
        averaging_constant: float = 0.01,
        max_intermediate_outputs: int | None = None,
        per_channel: bool = False,
        *,
        tensors: Sequence[str] | None = None,
    ) -> None:
        """Prepare the model.

        Args:
            model_path: as of CalibraterBase, like the other arguments that it has.
            op_types_to_calibrate: see there.
            augmented_model_path: see there.
            symmetric: see there.
            use_external_data_format: see there.
            moving_average: whether extremes are averaged over feeds.
            averaging_constant: the weight of the newest feed in the average, from 0 to 1.
            max_intermediate_outputs: accepted; extremes are kept, not outputs.
            per_channel: whether each index along the second axis has a range of its own.
            tensors: see there.

        Raises:
            InvalidArgument: the constant is not from 0 to 1.
        """
        if not 0 <= averaging_constant <= 1:
            raise InvalidArgument(f"averaging_constant is from 0 to 1, got {averaging_constant}")
        super().__init__(
            *(model_path, op_types_to_calibrate, augmented_model_path, symmetric, use_external_data_format, per_channel),
            tensors=tensors,
        )
        self._newest = averaging_constant if moving_average else None
        self._ranges: list[tuple[Array, Array]] = []

    def _augment(self) -> list[Value]:
        names = Names.of(self.model)
        kinds = ("ReduceMin", "ReduceMax")
        return [_reduced(self.model, value, kind, names, self.per_channel) for value in self._values for kind in kinds]

    def _take(self, results: Sequence[Array]) -> None:
        pairs = list(zip(results[::2], results[1::2], strict=True))
        if not self._ranges:
            self._ranges = pairs
        elif self._newest is None:
            self._ranges = [
                (np.minimum(low, new_low), np.maximum(high, new_high))
                for (low, high), (new_low, new_high) in zip(self._ranges, pairs, strict=True)
            ]
        else:
            self._ranges = [
                (low + self._newest * (new_low - low), high + self._newest * (new_high - high))
                for (low, high), (new_low, new_high) in zip(self._ranges, pairs, strict=True)
            ]

    def compute_data(self) -> TensorsData:
        """Return the ranges; raises ValueError where no data was collected."""
        return self._data(CalibrationMethod.MinMax, self._ranges)


class HistogramCalibrater(CalibraterBase):
    """Keeps a histogram of each tensor, from which its range follows."""

    def __init__(
        self,
        model_path: Given | Model,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "",
        use_external_data_format: bool = False,
        method: str = "percentile",
        symmetric: bool = False,
        num_bins: int = 128,
        num_quantized_bins: int = 2048,
        percentile: float = 99.999,
        scenario: str = "same",
        *,
        tensors: Sequence[str] | None = None,
    ) -> None:
        """Prepare the model.

        Args:
            model_path: as of CalibraterBase, like the other arguments that it has.
            op_types_to_calibrate: see there.
            augmented_model_path: see there.
            use_external_data_format: see there.
            method: as of HistogramCollector, like those that follow.
            symmetric: see there.
            num_bins: see there.
            num_quantized_bins: see there.
            percentile: see there.
            scenario: see there.
            tensors: names of the tensors to look at instead.

        Raises:
            InvalidArgument: an argument is none of these.
            SardonyxError: the model cannot be read.
        """
        super().__init__(
            model_path, op_types_to_calibrate, augmented_model_path, symmetric, use_external_data_format, tensors=tensors
        )
        self.collector = HistogramCollector(method, symmetric, num_bins, num_quantized_bins, percentile, scenario)

    def _augment(self) -> list[Value]:
        return self._values

    def _take(self, results: Sequence[Array]) -> None:
        self.collector.collect(dict(zip(self.tensors_to_calibrate, results, strict=True)))

    def compute_data(self) -> TensorsData:
        """Return the ranges; raises ValueError where no data was collected."""
        if not self._values:
            return TensorsData(_METHODS[self.collector.method], {})
        return TensorsData(_METHODS[self.collector.method], self.collector.compute_collection_result())


class EntropyCalibrater(HistogramCalibrater):
    """The range that loses least of a tensor's distribution, by the Kullback-Leibler divergence."""

    def __init__(
        self,
        model_path: Given | Model,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "",
        use_external_data_format: bool = False,
        method: str = "entropy",
        symmetric: bool = False,
        num_bins: int = 128,
        num_quantized_bins: int = 128,
        *,
        tensors: Sequence[str] | None = None,
    ) -> None:
        """Prepare the model; `num_bins` bins of a histogram of magnitudes are compared with `num_quantized_bins` levels."""
        super().__init__(
            *(model_path, op_types_to_calibrate, augmented_model_path, use_external_data_format, method, symmetric),
            *(num_bins, num_quantized_bins),
            tensors=tensors,
        )


class PercentileCalibrater(HistogramCalibrater):
    """The range that a percentage of all magnitudes lies in."""

    def __init__(
        self,
        model_path: Given | Model,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "",
        use_external_data_format: bool = False,
        method: str = "percentile",
        symmetric: bool = False,
        num_bins: int = 2048,
        percentile: float = 99.999,
        *,
        tensors: Sequence[str] | None = None,
    ) -> None:
        """Prepare the model; raises InvalidArgument where `percentile` is not from 0 to 100."""
        super().__init__(
            *(model_path, op_types_to_calibrate, augmented_model_path, use_external_data_format, method, symmetric),
            num_bins,
            percentile=percentile,
            tensors=tensors,
        )


class DistributionCalibrater(HistogramCalibrater):
    """The mean and the standard deviation of each tensor, by which float8 is scaled."""

    def __init__(
        self,
        model_path: Given | Model,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "",
        use_external_data_format: bool = False,
        method: str = "distribution",
        num_bins: int = 2048,
        scenario: str = "same",
        *,
        tensors: Sequence[str] | None = None,
    ) -> None:
        """Prepare the model; raises InvalidArgument where `num_bins` is less than 512, or the scenario is none."""
        super().__init__(
            *(model_path, op_types_to_calibrate, augmented_model_path, use_external_data_format, method, False, num_bins),
            scenario=scenario,
            tensors=tensors,
        )


def create_calibrator(
    model: Given | Model,
    op_types_to_calibrate: Sequence[str] | None = None,
    augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    use_external_data_format: bool = False,
    providers: Sequence[str] | None = None,
    extra_options: Mapping[str, Any] | None = None,
    *,
    tensors: Sequence[str] | None = None,
) -> CalibraterBase:
    """Return a calibrator.

    Args:
        model: a path, an onnx.ModelProto, or a model of ours, which stays as it is.
        op_types_to_calibrate: operators whose inputs and outputs are looked at; None for all.
        augmented_model_path: accepted; no file is written.
        calibrate_method: how ranges follow from values.
        use_external_data_format: accepted.
        providers: what the model runs on; None for the CPU.
        extra_options: further arguments of the calibrator's class, such as symmetric, moving_average, num_bins, percentile,
            scenario.
        tensors: names of the tensors to look at instead.

    Raises:
        InvalidArgument: the method or an option is not known.
        SardonyxError: the model cannot be read.
    """
    kinds: Mapping[CalibrationMethod, type[CalibraterBase]] = {
        CalibrationMethod.MinMax: MinMaxCalibrater,
        CalibrationMethod.Entropy: EntropyCalibrater,
        CalibrationMethod.Percentile: PercentileCalibrater,
        CalibrationMethod.Distribution: DistributionCalibrater,
    }
    if calibrate_method not in kinds:
        raise InvalidArgument(f"calibrate_method is one of {', '.join(kind.name for kind in kinds)}, got {calibrate_method}")
    try:
        made = kinds[calibrate_method](
            model, op_types_to_calibrate, augmented_model_path, tensors=tensors, **dict(extra_options or {})
        )
    except TypeError as error:
        raise InvalidArgument(f"extra_options of {calibrate_method.name}: {error}") from error
    if providers:
        made.set_execution_providers(providers)
    return made


def open_model(model: Model, providers: Sequence[str]) -> InferenceSession:
    """Return a session of a model of ours, which a file in a temporary folder holds meanwhile where it is large."""
    size_bytes = sum(value.constant.size_bytes for value in model.graph.initializers.values() if value.constant is not None)
    if size_bytes < _MOST_BYTES:
        return InferenceSession(onnx_format.to_bytes(model), providers=list(providers))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "model.onnx"
        onnx_format.save(model, path, external_data=True)
        return InferenceSession(path, providers=list(providers))


def _float_values(model: Model, operators: Sequence[str] | None) -> list[Value]:
    """Return the values of the main graph that are floats and no constants, next to some operators, in order."""
    found: dict[Value, None] = {}
    overridable = overridable_values(model)
    for node in model.graph:
        if operators is None or node.op_type in operators:
            for value in (*node.inputs, *node.outputs):
                if value is not None and value.name and value.dtype in _FLOATS and tensor_of(value, overridable) is None:
                    found[value] = None
    return list(found)


def _reduced(model: Model, value: Value, kind: str, names: Names, per_channel: bool) -> Value:
    """Add a reduction of a value to one element, or one for each index along its second axis, and return its result."""
    result, version = Value(names.fresh(f"{value.name}_{kind}")), model.opset_imports.get("", 1)
    inputs: list[Value | None] = [value]
    attributes: dict[str, int | list[int]] = {"keepdims": 0}
    if per_channel and value.shape is not None and len(value.shape) > 1:
        axes = [place for place in range(len(value.shape)) if place != _CHANNEL_AXIS]
        if version < _AXES_ARE_AN_INPUT:
            attributes["axes"] = axes
        else:
            inputs.append(
                model.graph.add_initializer(Tensor.from_array(np.array(axes, np.int64)), names.fresh(f"{result.name}_axes"))
            )
    model.graph.append(Node(kind, inputs, [result], attributes, version=version, name=result.name))
    return result


def _give_out(graph: Graph, value: Value) -> str:
    """Make a value an output of the graph, unless it is one, and return its name."""
    if value not in graph.outputs:
        graph.add_output(value)
    return value.name
