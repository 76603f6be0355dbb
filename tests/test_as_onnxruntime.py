"""Other packages' `import onnxruntime`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from sardonyx.version import ONNXRUNTIME_API


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_every_form_of_import_gives_sardonyx() -> None:
    """The package, its modules, and names of these."""
    code = """
import sardonyx.as_onnxruntime
import onnxruntime, sardonyx
import onnxruntime.capi._pybind_state as C
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from onnxruntime.capi import onnxruntime_inference_collection
from onnxruntime import backend
assert onnxruntime.InferenceSession is sardonyx.InferenceSession
assert InvalidArgument is sardonyx.InvalidArgument
assert C is sys.modules["sardonyx.capi._pybind_state"] if (sys := __import__("sys")) else 0
assert sardonyx.capi.__spec__.name == "sardonyx.capi"
print(onnxruntime.__version__)
"""
    assert _run(code).startswith("1.")


def test_the_package_is_found_as_one_that_is_installed() -> None:
    """Packages ask `importlib.util.find_spec` before they import, look beside its file, and import it anew."""
    code = """
import sardonyx.as_onnxruntime
import importlib, importlib.util, os, sys
import onnxruntime
spec = importlib.util.find_spec("onnxruntime")
assert spec is onnxruntime.__spec__ and spec.name == onnxruntime.__package__ == "onnxruntime"
assert os.path.isdir(os.path.join(os.path.dirname(onnxruntime.__file__), "capi"))
assert importlib.reload(onnxruntime) is onnxruntime
made = sys.modules.pop("onnxruntime")
import onnxruntime
assert onnxruntime is made and onnxruntime.__spec__ is spec
print(onnxruntime.InferenceSession.__module__)
"""
    assert _run(code) == "sardonyx.session.inference_session"


def test_the_record_of_the_distribution_is_found() -> None:
    """By importlib.metadata, with the version of the API."""
    code = """
import sardonyx.as_onnxruntime
from importlib.metadata import version, distribution
from sardonyx.version import ONNXRUNTIME_API
assert version("onnxruntime") == ONNXRUNTIME_API
assert distribution("onnxruntime").metadata["Name"] == "onnxruntime"
print(version("numpy") != ONNXRUNTIME_API)
"""
    assert _run(code) == "True"


def test_what_sardonyx_does_not_have_is_missing() -> None:
    """As a module that is not found."""
    code = """
import sardonyx.as_onnxruntime
try:
    import onnxruntime.nothing_of_the_kind
except ModuleNotFoundError:
    print("missing")
"""
    assert _run(code) == "missing"


def test_an_imported_onnxruntime_is_left_alone() -> None:
    """A later request fails, and says what to do."""
    pytest.importorskip("onnxruntime")
    code = """
import onnxruntime
try:
    import sardonyx.as_onnxruntime
except RuntimeError as error:
    print("before it" in str(error))
"""
    assert _run(code) == "True"


def test_the_distribution_of_that_name_is_sardonyx(tmp_path: Path) -> None:
    """Its module has the names, and other folders' sub-packages; its version is that of the interface."""
    package = Path(__file__).parents[1] / "packages" / "onnxruntime"
    (tmp_path / "onnxruntime" / "extra").mkdir(parents=True)
    (tmp_path / "onnxruntime" / "__init__.py").write_text("")
    (tmp_path / "onnxruntime" / "extra" / "__init__.py").write_text("answer = 42\n")
    code = "import onnxruntime, onnxruntime.extra; print(onnxruntime.InferenceSession.__module__, onnxruntime.extra.answer)"
    path = os.pathsep.join([str(package), str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout.split() == ["sardonyx.session.inference_session", "42"], done.stderr
    assert f'version = "{ONNXRUNTIME_API}"' in (package / "pyproject.toml").read_text()


def test_the_distribution_of_that_name_is_typed(tmp_path: Path) -> None:
    """A type checker finds the types of sardonyx, and a name that is not there."""
    pytest.importorskip("mypy")
    root = Path(__file__).parents[1]
    program = tmp_path / "program.py"
    program.write_text("import onnxruntime as ort\nreveal_type(ort.InferenceSession('m').get_providers())\nort.nothing\n")
    shutil.copytree(root / "packages" / "onnxruntime" / "onnxruntime", tmp_path / "site" / "onnxruntime")
    environment = {**os.environ, "MYPYPATH": os.pathsep.join([str(tmp_path / "site"), str(root / "src")])}
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file=",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path),
        str(program),
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert [line.split(": ", 1)[1] for line in found.stdout.splitlines()[:2]] == [
        'note: Revealed type is "list[str]"',
        'error: Module has no attribute "nothing"  [attr-defined]',
    ], found.stdout + found.stderr
    assert (tmp_path / "site" / "onnxruntime" / "py.typed").is_file()


def test_what_few_need_is_imported_when_it_is_asked_for() -> None:
    """As by sardonyx itself; a name that it lacks is none of the other's either."""
    code = """
import sys
import sardonyx.as_onnxruntime
import onnxruntime
assert "sardonyx.custom_ops.function" not in sys.modules
assert onnxruntime.op is sys.modules["sardonyx.custom_ops.function"].op
try:
    onnxruntime.nothing
except AttributeError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "module 'onnxruntime' has no attribute 'nothing'\n"


def test_sub_packages_of_an_installed_onnxruntime_run_on_sardonyx(tmp_path: Path) -> None:
    """Those that sardonyx has none of; the compiled part of the other is not imported."""
    folder = tmp_path / "onnxruntime"
    (folder / "tooling").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('the other onnxruntime was imported')")
    (folder / "tooling" / "__init__.py").write_text("from onnxruntime import InferenceSession\n")
    code = """
import sardonyx.as_onnxruntime
import onnxruntime.tooling
import onnxruntime.capi
print(onnxruntime.tooling.InferenceSession.__module__, onnxruntime.capi.__name__)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert found.stdout == "sardonyx.session.inference_session sardonyx.capi\n"


def test_tools_are_ours_where_no_onnxruntime_is_installed() -> None:
    """Under both of onnxruntime's names; where one is installed its own sub-packages count."""
    code = (
        "import sardonyx.as_onnxruntime\n"
        "import onnxruntime\n"
        "onnxruntime.__path__ = []\n"
        "from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference\n"
        "from onnxruntime.tools import onnx_model_utils\n"
        "from onnxruntime.transformers.float16 import convert_float_to_float16\n"
        "from onnxruntime.transformers.optimizer import optimize_model\n"
        "from sardonyx.tools import float16, symbolic_shape_infer\n"
        "assert SymbolicShapeInference is symbolic_shape_infer.SymbolicShapeInference\n"
        "assert convert_float_to_float16 is float16.convert_float_to_float16\n"
        "print(onnx_model_utils.__name__, optimize_model.__module__)\n"
    )
    assert _run(code) == "sardonyx.tools.onnx_model_utils sardonyx.tools.optimizer"


def test_tools_of_an_installed_onnxruntime_count(tmp_path: Path) -> None:
    """They are the user's; ours are not put in their place."""
    folder = tmp_path / "onnxruntime"
    (folder / "tools").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "tools" / "__init__.py").write_text("MARK = 1\n", encoding="utf-8")
    code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport sardonyx.as_onnxruntime\nfrom onnxruntime.tools import MARK\nprint(MARK)\n"
    assert _run(code) == "1"


def test_tools_run_as_modules_under_onnxruntimes_names(tmp_path: Path) -> None:
    """As `python -m onnxruntime.tools.…` does."""
    text = '<ir_version: 10, opset_import: ["" : 21]>g (float[n] x) => (y) { y = Relu(x) }'
    source, target = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    onnx.save(onnx.parser.parse_model(text), source)
    code = (
        "import runpy, sys\n"
        "import sardonyx.as_onnxruntime\n"
        "import onnxruntime\n"
        "onnxruntime.__path__ = []\n"
        f"sys.argv = ['infer', '--input', {source!r}, '--output', {target!r}]\n"
        "runpy.run_module('onnxruntime.tools.symbolic_shape_infer', run_name='__main__')\n"
    )
    _run(code)
    assert onnx.load(target).graph.output[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_all_names_are_listed() -> None:
    """Also those that are imported when they are first asked for."""
    code = "import sardonyx.as_onnxruntime, onnxruntime; print({'OrtValue', 'InferenceSession', 'capi'} <= set(dir(onnxruntime)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_the_module_says_which_package_it_is() -> None:
    """As onnxruntime's does, with no version of CUDA."""
    code = (
        "import sardonyx.as_onnxruntime, onnxruntime as o; print(o.package_name, o.version == o.__version__, repr(o.cuda_version))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "onnxruntime True ''\n"
