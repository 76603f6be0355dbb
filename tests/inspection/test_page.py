"""The page of a model, as text and in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inspection.test_collect import GATE, rows
from support.browser import Browser, chromium, missing_browser
from support.models import model

from sardonyx.cli.inspect import describe
from sardonyx.inspection import inspect_model, render_page
from sardonyx.ir import Model

HOSTILE = '</script><script>window.broken = 1</script><img src=x onerror="window.broken = 1">&amp;\u2028'


def scoped(layers: int) -> Model:
    """A chain of layers with names as exporters write them."""
    lines, value = [], "x"
    for layer in range(layers):
        lines += [
            f'g{layer} = Sigmoid({value}) @"/net/layer.{layer}/act/Sigmoid"',
            f'h{layer} = Mul({value}, g{layer}) @"/net/layer.{layer}/act/Mul"',
        ]
        lines += [f'v{layer} = Softmax(h{layer}) @"/net/layer.{layer}/Softmax"']
        value = f"v{layer}"
    return model("graph(x: float[n, 4]) -> (" + value + ": float[n, 4]) {\n" + "\n".join(lines) + "\n}")


def page_of(held: Model, profile: Path | None = None) -> str:
    return render_page(inspect_model(held, describe, feed=rows, profile=profile))


def data_of(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_page_holds_the_model_and_asks_for_nothing() -> None:
    """Its data is JSON in a script that is none; no address is in it but names of vocabularies."""
    page = page_of(model(GATE))
    assert [node["op"] for node in data_of(page)["after"]["nodes"]] == ["Swish", "Softmax"]
    assert set(re.findall(r"https?://[^\"' )]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src &#x27;none&#x27;" in page
    assert not re.findall(r"<(?:link|img|iframe)\b|@import|\burl\(", page)


def test_names_of_a_model_cannot_end_the_script() -> None:
    """Nor open a tag; they come back as they were."""
    held = model(GATE)
    for node in held.graph:
        node.name = HOSTILE
    held.path = None
    held.graph.name = HOSTILE
    page = page_of(held)
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert data_of(page)["before"]["nodes"][0]["name"] == HOSTILE


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for the tests of this module."""
    if missing_browser():
        pytest.skip(missing_browser())
    with chromium(tmp_path_factory.mktemp("browser")) as made:
        made.size(1280, 900)
        yield made


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The page of 20 layers, with a profile."""
    profile = tmp_path / "profile.json"
    step = {
        "name": "a_kernel_time",
        "cat": "Node",
        "ts": 12,
        "dur": 30,
        "tid": 1,
        "args": {"op_name": "Softmax", "provider": "CPU", "flops": 3000, "bytes": 1000},
    }
    profile.write_text(json.dumps([{"name": "model_run", "cat": "Session", "ts": 10, "dur": 40, "tid": 1, "args": {}}, step]))
    path = tmp_path / "page.html"
    path.write_text(page_of(scoped(20), profile), encoding="utf-8")
    return path


def test_every_tab_opens(browser: Browser, page: Path) -> None:
    """By a click, without an error on the console and without text that is an object."""
    browser.open(page)
    for name, text in {
        "graph": "As it runs (40)",
        "changes": "fuse_swish 20",
        "placement": "main_0",
        "memory": "arena",
        "profile": "Softmax",
        "overview": "nodes as given",
    }.items():
        browser.click(f"#tab-{name}")
        shown = browser.text(f"#panel-{name}")
        assert text in shown
        assert "[object" not in shown
        assert "undefined" not in shown
    assert browser.problems() == []


def test_groups_unfold_by_clicks(browser: Browser, page: Path) -> None:
    """In the outline; all of them by a button, and all fold again."""
    browser.open(page, "#graph")
    browser.click("#fold")
    assert len(browser.find(".outline .row")) == 1
    browser.click(".outline .row")
    layers = len(browser.find(".outline .row"))
    assert layers == 21
    browser.click("#unfold")
    assert len(browser.find(".outline .row[data-node]")) == 40
    assert browser.problems() == []


def test_a_search_finds_a_node_by_keys(browser: Browser, page: Path) -> None:
    """A slash, some words and Enter select it, in the drawing and with its details."""
    browser.open(page)
    browser.press("/")
    browser.keys("#search", "layer.13 softmax")
    assert "/net/layer.13/Softmax" in browser.text(".hits")
    browser.press("\ue007")
    assert "/net/layer.13/Softmax" in browser.text(".detail")
    assert "CPU" in browser.text(".detail")
    assert len(browser.find(".unit.on")) == 1
    assert browser.problems() == []


def test_a_node_leads_to_what_it_was(browser: Browser, page: Path) -> None:
    """From a Swish to the Sigmoid before optimization, and to the rule."""
    browser.open(page, "#graph")
    browser.press("/")
    browser.keys("#search", "swish\ue007")
    assert "fuse_swish" in browser.text(".detail")
    browser.script("[...document.querySelectorAll('.detail .link')].find((item) => item.textContent.startsWith('Sigmoid')).click()")
    assert "Sigmoid" in browser.text(".detail h2")
    assert browser.script("return document.querySelector('[data-side=before]').getAttribute('aria-pressed')") == "true"


def test_the_precision_of_products_is_shown(browser: Browser, tmp_path: Path) -> None:
    """In a column, on the overview and beside a node; a page without products has none of these."""
    text = "graph(x: float[n, 4]) -> (y: float[n, 4]) {\nw: float[4, 4] = ... 1\na = MatMul(x, w) @product\ny = Exp(a) @end\n}"
    found = inspect_model(model(text), describe, feed=rows)
    path = tmp_path / "page.html"
    path.write_text(render_page(found), encoding="utf-8")
    browser.open(path, "#placement")
    assert "precision" in browser.text("#panel-placement th").split("\n")
    assert "float32" in browser.text("#panel-placement td").split("\n")
    browser.keys("#panel-placement input", "float32")
    assert "1 node" in browser.text("#panel-placement p")
    browser.click("#panel-placement button.link")
    assert "multiplies in float32" in browser.text("#panel-graph")
    browser.click("#tab-overview")
    assert "Precision of products" in browser.text("#panel-overview h2")
    assert browser.problems() == []


def test_a_rule_filters_the_changes(browser: Browser, page: Path) -> None:
    """Rows of others go."""
    browser.open(page, "#changes")
    browser.click("[data-rule=fuse_swish]")
    assert "20 rows of fuse_swish" in browser.text("#panel-changes")


def test_a_block_of_memory_says_what_it_is(browser: Browser, page: Path) -> None:
    """When it is clicked."""
    browser.open(page, "#memory")
    browser.script("document.querySelector('.block').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert "steps" in browser.text("#panel-memory p[aria-live]")


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_their_width(browser: Browser, page: Path, width: int, scheme: str) -> None:
    """Nothing sticks out to the side, in light and in dark."""
    browser.size(width, 900)
    browser.scheme(scheme)
    for name in ("overview", "graph", "changes", "placement", "memory", "profile"):
        browser.open(page, f"#{name}")
        assert browser.script("return document.documentElement.scrollWidth <= innerWidth"), name
        assert browser.script("const tab = document.querySelector('section.on'); return tab.scrollWidth <= tab.clientWidth"), name
    dark = browser.script("return getComputedStyle(document.body).backgroundColor") == "rgb(23, 22, 20)"
    assert dark == (scheme == "dark")
    browser.size(1280, 900)


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    """In every tab."""
    held = scoped(3)
    for node in held.graph:
        node.name = f"{HOSTILE}/{node.name}"
    path = tmp_path / "hostile.html"
    path.write_text(page_of(held), encoding="utf-8")
    browser.open(path)
    for name in ("graph", "changes", "placement", "memory", "profile"):
        browser.click(f"#tab-{name}")
    assert browser.script("return window.broken === undefined && document.querySelectorAll('img').length === 0")
    assert browser.problems() == []


def test_a_model_without_a_session_has_a_page(browser: Browser, tmp_path: Path) -> None:
    """With its graph, and what is wrong."""
    path = tmp_path / "broken.html"
    path.write_text(page_of(model("graph(x: float[2]) -> (y: float[2]) {\ny = none.Such(x) @odd\n}")), encoding="utf-8")
    browser.open(path)
    assert "no session can be made" in browser.text(".note")
    for name in ("graph", "changes", "placement", "memory", "profile"):
        browser.click(f"#tab-{name}")
    assert len(browser.find(".unit[data-node]")) == 1
    assert browser.problems() == []


def test_thousands_of_nodes_without_scopes_fold_by_their_order(browser: Browser, tmp_path: Path) -> None:
    """The drawing stays small, and a node is found and shown within seconds."""
    lines = ["v0 = Neg(x)"] + [f"v{index} = {('Softmax', 'Neg')[index % 2]}(v{index - 1}) @n{index}" for index in range(1, 3001)]
    text = "graph(x: float[n, 4]) -> (v3000: float[n, 4]) {\n" + "\n".join(lines) + "\n}"
    path = tmp_path / "long.html"
    path.write_text(page_of(model(text)), encoding="utf-8")
    browser.open(path, "#graph")
    assert len(browser.find(".outline .row")) < 100
    browser.press("/")
    browser.keys("#search", "n2345\ue007")
    assert "n2345" in browser.text(".detail")
    browser.click("#unfold")
    assert len(browser.find(".unit")) < 200
    assert browser.problems() == []


def test_values_of_attributes_with_long_names_have_room(browser: Browser, tmp_path: Path) -> None:
    """The names take less than half of the line."""
    names = ["a_name_of_an_attribute_that_is_longer_than_the_whole_column_of_details", "to"]
    attributes = ", ".join(f"{name} = [{', '.join(map(str, range(99)))}]" for name in names)
    path = tmp_path / "long.html"
    path.write_text(page_of(model(f"graph(x: float[n]) -> (y) {{\ny = my.Long(x) {{{attributes}}}\n}}")), encoding="utf-8")
    browser.open(path, "#graph")
    browser.click(".outline .row")
    widths = browser.script("return [...document.querySelectorAll('.detail dd')].map((item) => item.getBoundingClientRect().width)")
    assert len(widths) == 4
    assert min(widths) > 120
    assert "99 items: [0, 1, 2" in browser.text(".detail")


def test_a_single_scope_of_many_is_unfolded_at_first(browser: Browser, tmp_path: Path) -> None:
    """Its parts are what there is to see."""
    path = tmp_path / "many.html"
    path.write_text(page_of(scoped(100)), encoding="utf-8")
    browser.open(path, "#graph")
    assert len(browser.find(".outline .row")) == 101
    assert browser.problems() == []
