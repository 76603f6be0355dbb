"""The table of the standard's schemas."""

import marshal
import subprocess
import sys
from pathlib import Path

import onnx.defs
import pytest

from sardonyx.ops import schema_table
from sardonyx.ops.schema_table import SchemaTable, read_schemas, table

_PROGRAM = """
import sys
from sardonyx.ops.schema_table import table
assert table().find("", "Conv", 13).since_version == 11
sys.exit("onnx.defs" in sys.modules)
"""


def test_every_schema_finds_its_way_into_the_table_and_back() -> None:
    """All versions of all operators are found under their own version."""
    known = table()
    for schema in onnx.defs.get_all_schemas_with_history():
        found = known.find(schema.domain, schema.name, schema.since_version)
        assert found is not None
        assert (found.since_version, found.max_inputs, found.is_deprecated) == (
            schema.since_version,
            schema.max_input,
            schema.deprecated,
        )


def test_the_table_keeps_what_the_standard_says_in_plain_data() -> None:
    """It survives being written and read."""
    packed = read_schemas()
    assert marshal.loads(marshal.dumps(packed)) == packed


def test_a_frozen_application_has_schemas_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no records of what was installed."""
    monkeypatch.setattr(schema_table, "installed_version", lambda package: None)
    table.cache_clear()
    assert table().find("", "Relu", 14) is not None
    table.cache_clear()


def test_versions_are_listed_newest_first() -> None:
    """Relu changed at 6, 13 and 14."""
    assert table().versions("", "Relu") == [14, 13, 6, 1]


def test_an_operator_is_unknown_before_its_first_version_and_in_other_domains() -> None:
    """There is no schema to find."""
    assert table().find("", "Gelu", 19) is None
    assert table().find("ai.onnx.ml", "Relu", 14) is None
    assert SchemaTable({}).find("", "Relu", 14) is None


def test_the_second_process_does_not_load_onnx(tmp_path: Path) -> None:
    """The first one leaves the table on disk; a damaged table is read anew."""

    def loads_onnx() -> bool:
        environment = {"SARDONYX_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": ":".join(sys.path)}
        return bool(subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, check=False).returncode)

    assert [loads_onnx(), loads_onnx()] == [True, False]
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert loads_onnx()


def test_the_newest_version_of_a_domain_is_that_of_its_newest_operator() -> None:
    """As the installed package has it; 0 for a domain without operators."""
    assert table().newest("") == onnx.defs.onnx_opset_version()
    assert table().newest("no.such") == 0
