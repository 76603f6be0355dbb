"""Schemas of FlatBuffers as Python tables."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.formats.flat.schema import Kind, Schema

SCHEMA = Schema(
    "Test",
    b"TEST",
    "Root",
    enums={"Color": "byte: RED GREEN DARK=-3 DARKER"},
    unions={"Any": "First Second Rare=250"},
    structs={"Pair": "first:uint second:long"},
    tables={
        "Root": "version:int=3 color:Color=GREEN rate:float=0.5 any:Any name:string! parts:[Root] data:[ubyte]@16 pairs:[Pair] pair:Pair",
        "First": "x:int",
    },
)


def test_fields_have_kinds() -> None:
    """Numbers, enumerations, unions, texts, tables, structs, and vectors of these."""
    found = {name: field.kind for name, field in SCHEMA.fields("Root").items()}
    assert found == {
        "version": Kind.NUMBER,
        "color": Kind.NUMBER,
        "rate": Kind.NUMBER,
        "any": Kind.UNION,
        "name": Kind.TEXT,
        "parts": Kind.TABLES,
        "data": Kind.NUMBERS,
        "pairs": Kind.STRUCTS,
        "pair": Kind.STRUCT,
    }


def test_a_union_takes_two_slots() -> None:
    """Its code, and its table behind it."""
    fields = SCHEMA.fields("Root")
    assert [fields[name].slot for name in ("version", "color", "rate", "any", "name")] == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(("field", "default"), [("version", 3), ("color", 1), ("rate", 0.5), ("name", 0)])
def test_defaults_are_numbers(field: str, default: float) -> None:
    """Those of enumerations are given by name or number."""
    assert SCHEMA.fields("Root")[field].default == default


def test_marks_are_read() -> None:
    """`!` for required fields, `@` for alignment."""
    fields = SCHEMA.fields("Root")
    assert [name for name, field in fields.items() if field.required] == ["name"]
    assert fields["data"].alignment == 16


def test_structs_are_padded_as_c_pads_them() -> None:
    """The long of a pair is at byte 8."""
    assert SCHEMA.fields("Root")["pairs"].dtype == np.dtype(
        {"names": ["first", "second"], "formats": ["<u4", "<i8"], "offsets": [0, 8], "itemsize": 16}
    )


def test_enumerations_count_from_0_and_unions_from_1() -> None:
    """A given number is where counting goes on from."""
    assert SCHEMA.enum("Color") == {0: "RED", 1: "GREEN", -3: "DARK", -2: "DARKER"}
    assert SCHEMA.union("Any") == {1: "First", 2: "Second", 250: "Rare"}
    assert SCHEMA.codes("Any")["Rare"] == 250
    assert SCHEMA.codes("Color")["DARKER"] == -2


def test_a_table_that_is_not_listed_has_no_fields() -> None:
    """As most of a union's have none."""
    assert SCHEMA.fields("Second") == {}


def test_an_extension_takes_the_place_of_what_has_its_name() -> None:
    """And leaves the schema that it extends as it is."""
    wider = SCHEMA.extended(
        "Wider", b"WIDE", enums={"Color": f"{SCHEMA.text('Color')} BLUE=7"}, unions={}, tables={"First": "y:int"}
    )
    assert (wider.enum("Color")[7], list(wider.fields("First")), list(SCHEMA.fields("First"))) == ("BLUE", ["y"], ["x"])
    assert wider.text("Any") == SCHEMA.text("Any")
