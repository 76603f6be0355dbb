"""A program that uses the whole API as a user writes it: mypy reads it with its strictest rules, and a test runs it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

import sardonyx as ort


def make_options(model: Path) -> ort.SessionOptions:
    """Return options of which every property was set, to what it was."""
    options = ort.SessionOptions()
    options.enable_cpu_mem_arena = options.enable_mem_pattern = options.enable_mem_reuse = True
    options.enable_profiling = False
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.execution_order = ort.ExecutionOrder.DEFAULT
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.inter_op_num_threads, options.intra_op_num_threads = 0, 1
    options.log_severity_level, options.log_verbosity_level, options.logid = 2, 0, "whole"
    options.optimized_model_filepath = str(model.with_name("optimized.onnx"))
    options.profile_file_prefix = "profile"
    options.use_deterministic_compute, options.use_per_session_threads = False, True
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    assert options.get_session_config_entry("session.record_ep_graph_assignment_info") == "1"
    options.add_free_dimension_override_by_name("unused", 3)
    options.add_free_dimension_override_by_denotation("UNUSED", 3)
    options.add_provider_for_devices(ort.get_ep_devices(), {})
    options.set_provider_selection_policy(ort.OrtExecutionProviderDevicePolicy.PREFER_CPU)
    assert options.has_providers()
    return options


def describe(session: ort.InferenceSession) -> list[str]:
    """Return what a session says about itself."""
    arguments: list[ort.NodeArg] = [*session.get_inputs(), *session.get_outputs(), *session.get_overridable_initializers()]
    meta: ort.ModelMetadata = session.get_modelmeta()
    subgraphs: list[ort.OrtEpAssignedSubgraph] = session.get_provider_graph_assignment_info()
    nodes = [node.op_type for subgraph in subgraphs for node in subgraph.get_nodes()]
    memory = [info.name for info in session.get_input_memory_infos()]
    options: dict[str, dict[str, str]] = session.get_provider_options()
    held: ort.MemoryReport = session.memory_report()
    process: ort.ProcessMemoryReport = ort.memory_report()
    sizes: list[int] = [held.total_bytes, process.resident_bytes, *(part.packed_bytes for part in process.sessions), ort.trim()]
    texts = [f"{argument.name} {argument.type} {argument.shape}" for argument in arguments]
    return [
        *texts,
        meta.graph_name,
        *nodes,
        *memory,
        *session.get_providers(),
        *map(str, sizes),
        *options,
        str(session.get_profiling_start_time_ns()),
    ]


def run_in_every_way(session: ort.InferenceSession, x: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[object]:
    """Return the output of the session's model for `x`, computed in each way that there is."""
    options = ort.RunOptions()
    options.log_severity_level, options.logid, options.only_execute_path_to_fetches = 2, "run", True
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    value = ort.OrtValue.ortvalue_from_numpy(x)
    binding: ort.IOBinding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", "cpu")
    session.run_with_iobinding(binding, options)
    fetched = ort.OrtValueVector()
    fed = ort.OrtValueVector()
    fed.push_back(value)
    session.run_with_ortvaluevector(options, ["x"], fed, ["y"], fetched, [ort.OrtDevice.make("cpu", 0)])
    handed: list[object] = []
    session.run_async(["y"], {"x": x}, lambda results, _user, error: handed.append(error or results[0]), None, options)
    found: list[object] = [
        session.run(None, {"x": x}, options)[0],
        session.run_with_ort_values(["y"], {"x": value})[0].numpy(),
        binding.copy_outputs_to_cpu()[0],
        binding.get_outputs()[0].numpy(),
        fetched[0].numpy(),
        asyncio.run(session.arun(["y"], {"x": x}))[0],
    ]
    return found


def use_values() -> list[str]:
    """Return texts of values of each kind."""
    dense = ort.OrtValue.ortvalue_from_shape_and_type([2, 2], np.float32)
    dense.update_inplace(np.eye(2, dtype=np.float32))
    narrow = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.uint16), 16)
    sparse = ort.SparseTensor.sparse_coo_from_numpy([3, 3], np.ones(1, np.float32), np.zeros(1, np.int64))
    held = ort.OrtValue.ort_value_from_sparse_tensor(sparse)
    again = ort.OrtValue.from_dlpack(dense)
    memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    texts = [value.data_type() for value in (dense, narrow, held, again)]
    return [*texts, str(sparse.format()), str(sparse.dense_shape()), memory.name, str(again.data_ptr() == dense.data_ptr())]


def use_process() -> list[str]:
    """Return what the process says about itself."""
    ort.set_default_logger_severity(3)
    ort.set_default_logger_verbosity(0)
    ort.set_default_logger_callback(None)
    ort.disable_telemetry_events()
    ort.set_seed(1)
    devices = [device.type.name for device in ort.get_hardware_devices()]
    known = [*ort.get_available_providers(), *ort.get_all_providers()]
    return [ort.__version__, ort.get_version_string(), ort.get_build_info(), ort.get_device(), *devices, *known]


def use_adapters(folder: Path) -> list[str]:
    """Return the names in an adapter that was written and read."""
    file = ort.AdapterFormat()
    file.set_adapter_version(1)
    file.set_parameters({"x": ort.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32))})
    file.export_adapter(folder / "own.adapter")
    adapter = ort.LoraAdapter()
    adapter.Load(folder / "own.adapter")
    options = ort.RunOptions()
    options.add_active_adapter(adapter)
    return list(ort.AdapterFormat.read_adapter(folder / "own.adapter").get_parameters())


def use_packages(model: Path, folder: Path) -> list[str]:
    """Return the names in a package of the model that was written and read, and of its session's outputs."""
    package = ort.ModelPackage()
    package.set_component_inline("only", '{"variants": {}}')
    package.set_variant("only", "cpu", '{"ep": "CPUExecutionProvider"}')
    package.set_variant_executor_info_inline("only", "cpu", "ort", '{"model_file": "model.onnx"}')
    package.commit(folder, ort.ModelPackageWriteMode.PRESERVE)
    (folder / "cpu").mkdir()
    (folder / "cpu" / "model.onnx").write_bytes(model.read_bytes())
    context = ort.ModelPackageContext(folder)
    chosen = context.select_component("only", ort.ModelPackageOptions(ort.SessionOptions()))
    session: ort.InferenceSession = chosen.create_session()
    return [*context.get_component_names(), chosen.get_selected_variant_name(), *(output.name for output in session.get_outputs())]


def catch_errors(session: ort.InferenceSession) -> list[str]:
    """Return the names of the errors that wrong calls raise."""
    names: list[str] = []
    try:
        session.run(["nothing"], {})
    except (ort.InvalidArgument, ort.Fail) as error:
        names.append(type(error).__name__)
    try:
        ort.InferenceSession("nothing.onnx")
    except ort.NoSuchFile as error:
        names.append(type(error).__name__)
    return names
