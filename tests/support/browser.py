"""A headless Chromium by plain WebDriver, for tests of pages; where none is installed tests are skipped."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --force-device-scale-factor=1"
).split()
_WAIT_S = 30.0
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing_browser() -> str:
    """Why pages cannot be tried in a browser here; "" where they can."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} not installed" if lacking else ""


class Browser:
    """One window."""

    def __init__(self, address: str, session: str) -> None:
        self._base = f"{address}/session/{session}"

    def open(self, page: Path, fragment: str = "") -> None:
        """Open a file, anew."""
        self._post("url", {"url": "about:blank"})
        self._post("url", {"url": f"{page.as_uri()}{fragment}"})

    def size(self, width: int, height: int) -> None:
        """Give the page's area a size in CSS pixels."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name: str) -> None:
        """Prefer "light" or "dark"."""
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def devtools(self, command: str, **params: Any) -> Any:
        return self._post("goog/cdp/execute", {"cmd": command, "params": params})

    def script(self, text: str, *arguments: Any) -> Any:
        """Run JavaScript, the body of a function."""
        return self._post("execute/sync", {"script": text, "args": list(arguments)})

    def find(self, selector: str) -> list[str]:
        return [item[_ELEMENT] for item in self._post("elements", {"using": "css selector", "value": selector})]

    def click(self, selector: str) -> None:
        """Click the first element of a CSS selector as a user does."""
        self._post(f"element/{self.find(selector)[0]}/click", {})

    def keys(self, selector: str, text: str) -> None:
        """Type into an element."""
        self._post(f"element/{self.find(selector)[0]}/value", {"text": text})

    def press(self, key: str) -> None:
        """Press one key, wherever the focus is."""
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._post("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self, selector: str) -> str:
        return str(
            self.script("return [...document.querySelectorAll(arguments[0])].map((item) => item.textContent).join('\\n')", selector)
        )

    def problems(self) -> list[str]:
        """What the page said on the console that is an error."""
        found = self._post("se/log", {"type": "browser"})
        return [item["message"] for item in found if item["level"] == "SEVERE"]

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self._get("screenshot")))

    def _post(self, verb: str, body: dict[str, Any]) -> Any:
        return _call(f"{self._base}/{verb}", body)

    def _get(self, verb: str) -> Any:
        return _call(f"{self._base}/{verb}", None)


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser with an empty profile in `folder`, until the block ends."""
    port = _free_port()
    driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address)
        options = {
            "binary": shutil.which("chromium"),
            "args": [*FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size=1280,900"],
        }
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}
        session = _call(f"{address}/session", {"capabilities": wanted})["sessionId"]
        try:
            yield Browser(address, session)
        finally:
            _call(f"{address}/session/{session}", None, "DELETE")
    finally:
        driver.terminate()
        driver.wait(timeout=_WAIT_S)


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def _wait(address: str) -> None:
    end = time.monotonic() + _WAIT_S
    while True:
        try:
            if _call(f"{address}/status", None)["ready"]:
                return
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def _call(url: str, body: dict[str, Any] | None, method: str = "") -> Any:
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url, content, {"Content-Type": "application/json"}, method=method or ("GET" if body is None else "POST")
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(json.load(error)["value"]["message"]) from error
