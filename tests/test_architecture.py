"""The structure of the code that import contracts cannot see."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "sardonyx").rglob("*.py"))
MODULES = [path for path in SOURCES if path.name not in ("__init__.py", "__main__.py")]
LIMIT = 500
MOST_FILES = 50


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=_shown)
def test_every_module_has_its_test_twin(path: Path) -> None:
    """A module src/sardonyx/a/b.py is tested by tests/a/test_b.py."""
    inner = path.relative_to(ROOT / "src" / "sardonyx")
    twin = ROOT / "tests" / inner.parent / f"test_{inner.name}"
    assert twin.is_file(), f"write {_shown(twin)}"


def test_no_file_is_over_the_limit() -> None:
    """No source or test file has more than 500 lines."""
    files = [*SOURCES, *(ROOT / "tests").rglob("*.py")]
    assert not [_shown(path) for path in files if len(path.read_text(encoding="utf-8").splitlines()) > LIMIT]


def test_the_environment_is_read_in_config_only() -> None:
    """`os.environ` and `os.getenv` occur in config.py and nowhere else."""
    texts = {_shown(path): path.read_text(encoding="utf-8") for path in SOURCES}
    readers = {name for name, text in texts.items() if "os.environ" in text or "os.getenv" in text}
    assert readers == {"src/sardonyx/config.py"}


def test_every_module_says_what_it_is() -> None:
    """Each module begins with a docstring."""
    assert not [_shown(path) for path in SOURCES if ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None]


def test_what_sessions_import_has_lazy_dataclasses() -> None:
    """The packages that a session of a known model imports take dataclasses from `lazy_dataclasses`, whose classes cost less."""
    folders = ("codegen", "providers/cpu", "session", "runtime", "partition", "ir", "ops", "formats", "values")
    texts = {path: path.read_text(encoding="utf-8").splitlines() for folder in folders for path in _modules_in(folder)}
    eager = {
        _shown(path)
        for path, lines in texts.items()
        for line in lines
        if line.startswith(("import dataclasses", "from dataclasses"))
    }
    assert not eager


def _modules_in(folder: str) -> list[Path]:
    return [path for path in SOURCES if path.is_relative_to(ROOT / "src/sardonyx" / folder)]


def test_families_name_the_files_of_every_package() -> None:
    """The operators' families are the paths of the reference kernels and of the shape functions."""
    from sardonyx.ops.families import FAMILIES

    packages = [ROOT / "src/sardonyx" / name for name in ("providers/reference/kernels", "ops/shapes")]
    assert not [family for family in FAMILIES for package in packages if not (package / f"{family}.py").is_file()]


def test_no_folder_is_over_the_limit() -> None:
    """No package has more than 50 modules."""
    counts = Counter(path.parent for path in SOURCES)
    assert not [_shown(folder) for folder, count in counts.items() if count > MOST_FILES]


COMPARES_VERSIONS = {
    "formats/onnx_write.py": "a file says where a node's version is not the one that it imports",
    "ir/text_print.py": "so does the text form",
    "optimize/passes/raise_opset.py": "rewrites nodes for another version",
    "optimize/passes/write_older.py": "rewrites nodes for another version",
    "optimize/rewrite.py": "asks whether a file can import the version of a node",
    "partition/as_model.py": "makes a model, with what it imports",
    "session/context/model.py": "makes a model, with what it imports",
}
"""Module -> why it compares versions of nodes; the folder ops/ says what they mean."""


def _compares_versions(tree: ast.AST) -> list[int]:
    """The lines that compare a `version` of something."""
    operands = [
        (node.lineno, part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        for part in (side.elts if isinstance(side, ast.Tuple) else [side])
    ]
    called = [(line, part.func if isinstance(part, ast.Call) else part) for line, part in operands]
    return [line for line, part in called if isinstance(part, ast.Attribute) and part.attr == "version"]


def test_versions_of_operators_are_compared_in_ops_only() -> None:
    """What changed in an operator from one version to another is said by its view (`ops/views/`), and read from there."""
    package = ROOT / "src" / "sardonyx"
    modules = {str(path.relative_to(package)): path for path in SOURCES if package / "ops" not in path.parents}
    found = {name for name, path in modules.items() if _compares_versions(ast.parse(path.read_text(encoding="utf-8")))}
    assert found == set(COMPARES_VERSIONS)


def test_every_folder_is_named_in_the_architecture() -> None:
    """A new package has a line there that says what lives in it."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "sardonyx"
    folders = {path.parent.relative_to(package) for path in SOURCES if path.parent != package}
    parts = {folder for folder in folders if f"`{folder}/`" not in text and f"`{folder.name}/`" not in text}
    assert not parts


NO_VERBS = frozenset(
    "What Whether Which Where Why How Who Whose When With Without The A An As For In It Its They Their Those These This That Every "
    "Each One Two All Both Some Any Of From By At Over Along On To Only Also Nothing Nobody There Names Makes Returns Gives".split()
)
"""First words of a docstring that is no imperative sentence."""


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is read as an attribute, whose docstring may be a noun."""
    return any("property" in (text := ast.unparse(line)) or text.endswith(".setter") for line in function.decorator_list)


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    """A function's docstring begins with a verb in the imperative: "Return …", not "What …", "Whether …" or "The …"."""
    found = [
        f"{_shown(path)}:{node.lineno} {node.name}: {text.splitlines()[0]}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not _is_property(node)
        if (text := ast.get_docstring(node)) and text.split()[0].rstrip(".,:;") in NO_VERBS
    ]
    assert not found, "\n".join(found)
