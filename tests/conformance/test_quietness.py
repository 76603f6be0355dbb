"""What a session does to the machine: no network, and no file written but in the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.models import model

from sardonyx.formats.onnx import save

TEXT = "graph(x: float[n, 8]) -> (y) {\nw: float[8, 8] = ...\na = MatMul(x, w)\nb = Relu(a)\ny = com.microsoft.QuickGelu(b)\n}"

CODE = """
import json, os, sys
events = []
def hook(name, details):
    if name == "open" and isinstance(details[0], (str, bytes)):
        path, mode, flags = details
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND))
        events.append(["write" if writes else "read", os.path.abspath(os.fsdecode(path))])
    elif name.startswith(("socket.", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.")):
        events.append(["network", f"{name} {details}"])
    elif name in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.copyfile"):
        events.append(["write", os.path.abspath(os.fsdecode(details[0]))])
sys.addaudithook(hook)
import numpy as np
import sardonyx as ort
session = ort.InferenceSession(sys.argv[1])
for count in (3, 5, 3):
    session.run(None, {"x": np.ones((count, 8), np.float32)})
binding = session.io_binding()
binding.bind_cpu_input("x", np.ones((3, 8), np.float32))
binding.bind_output("y")
session.run_with_iobinding(binding)
session.run_async(None, {"x": np.ones((3, 8), np.float32)}, lambda *results: None, None)
ort.enable_telemetry_events()
del session, binding
print(json.dumps(events))
"""


@pytest.mark.parametrize("compiles", ["", "inline"])
def test_nothing_is_sent_and_nothing_written_but_the_cache(compiles: str, tmp_path: Path) -> None:
    """With an empty cache, in a process of its own that reports every file and socket; telemetry cannot be switched on."""
    source, cache = tmp_path / "model.onnx", tmp_path / "cache"
    save(model(TEXT), source)
    inherited = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in os.environ}
    environment = inherited | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(tmp_path / "home"),
        "SARDONYX_CACHE_DIR": str(cache),
        "SARDONYX_COMPILE": compiles,
    }
    command = [sys.executable, "-c", CODE, str(source)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    events = json.loads(found.stdout.splitlines()[-1])
    assert not [what for kind, what in events if kind == "network"]
    written = {what for kind, what in events if kind == "write"}
    strangers = {path for path in written if not Path(path).is_relative_to(cache) and path != os.devnull}
    assert not strangers
    assert written
    assert [kind for kind, what in events if what == str(source)] == ["read"] * sum(what == str(source) for _, what in events)
    assert {path.name for path in tmp_path.iterdir()} == {"model.onnx", "cache"}
