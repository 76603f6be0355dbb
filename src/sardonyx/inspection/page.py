"""The page: one file with its styles, its scripts and the data, which asks the network for nothing."""

from __future__ import annotations

import dataclasses
import html
import json
from importlib import resources

from sardonyx.inspection.collect import Inspection
from sardonyx.version import __version__

__all__ = ["render_page"]

_SCRIPTS = ("core.js", "layout.js", "graph.js", "changes.js", "memory.js", "profile.js", "main.js")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def render_page(found: Inspection) -> str:
    """Return the page of a model; text of the model, whatever it is, stays text."""
    title = html.escape(f"{found.label.rsplit('/', 1)[-1]} · sardonyx")
    scripts = "\n".join(_read(name) for name in _SCRIPTS)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{html.escape(_POLICY)}">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="sardonyx {__version__}">
<title>{title}</title>
<style>
{_read("page.css")}
</style>
</head>
<body>
<noscript>This page draws a model with JavaScript, which is switched off here; <code>sardonyx inspect</code> and
<code>sardonyx explain</code> print the same as text.</noscript>
<div id="app"></div>
<script type="application/json" id="data">{_escaped(found)}</script>
<script>
{scripts}
</script>
</body>
</html>
"""


def _escaped(found: Inspection) -> str:
    """Return the data as JSON in which nothing can end a script: `<`, `>` and `&` are escapes."""
    text = json.dumps(dataclasses.asdict(found), ensure_ascii=True, separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _read(name: str) -> str:
    return resources.files("sardonyx.inspection").joinpath("page_data", name).read_text(encoding="utf-8")
